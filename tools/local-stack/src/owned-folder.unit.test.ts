import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { waitUntil } from '#runtime/wait-until';
import { OwnedFolder } from './owned-folder';
import { identify, isOurs, isRunning, readProcess } from './process-identity';

let folder: string;
const children: ChildProcess[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'punctual-owned-'));
});

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

/** A process that runs until it is killed; the label is part of its command line. */
function startIdle(label: string): number {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 60_000)', label], { stdio: 'ignore' });
  children.push(child);
  return child.pid!;
}

/** The folder as a killed owner leaves it. */
function leaveBehind(servers: Array<{ pid: number; markers: string[]; startedAt?: string }>): void {
  const recorded = servers.map(({ pid, markers, startedAt }) => {
    return { name: `server ${pid}`, pid, markers, startedAt: startedAt ?? identify(pid)!.startedAt };
  });
  writeFileSync(
    join(folder, 'owner.json'),
    JSON.stringify({ owner: { pid: process.pid, startedAt: 'long ago' }, servers: recorded }),
  );
}

describe('a folder of servers', () => {
  it('belongs to one owner at a time, and the refusal names the pid', async () => {
    const owned = await OwnedFolder.claim(folder);
    await expect(OwnedFolder.claim(folder)).rejects.toMatchObject({
      code: 'folder_in_use',
      message: expect.stringContaining(`pid ${process.pid}`),
    });
    owned.release();
    const again = await OwnedFolder.claim(folder);
    again.release();
  });

  it('has one winner when several claim it at once', async () => {
    leaveBehind([]);
    const claims = await Promise.allSettled(Array.from({ length: 8 }, () => OwnedFolder.claim(folder)));
    expect(claims.filter((claim) => claim.status === 'fulfilled')).toHaveLength(1);
  });

  it('begins empty, unless the data is to be kept', async () => {
    writeFileSync(join(folder, 'data'), 'of the run before');
    const kept = await OwnedFolder.claim(folder, { keep: true });
    expect(existsSync(join(folder, 'data'))).toBe(true);
    kept.release();
    const fresh = await OwnedFolder.claim(folder);
    expect(existsSync(join(folder, 'data'))).toBe(false);
    fresh.release();
  });

  it('ends the servers that a killed owner left running', async () => {
    const pid = startIdle('left-over');
    await waitUntil('the process shows its command line', () => readProcess(pid)?.command.includes('left-over'));
    leaveBehind([{ pid, markers: ['left-over'] }]);
    const owned = await OwnedFolder.claim(folder);
    expect(readProcess(pid)).toBeUndefined();
    owned.release();
  });

  it.each([
    ['runs another command', { markers: ['somebody-elses-server'] }],
    ['has the pid but started at another time', { markers: ['bystander'], startedAt: '1' }],
    ['was written down without a marker', { markers: [] }],
  ])('never ends a process that %s', async (_, record) => {
    const pid = startIdle('bystander');
    await waitUntil('the process shows its command line', () => readProcess(pid)?.command.includes('bystander'));
    leaveBehind([{ pid, ...record }]);
    const owned = await OwnedFolder.claim(folder);
    expect(readProcess(pid)).toBeDefined();
    owned.release();
  });

  it('writes down each server that runs, and forgets it when it is stopped', async () => {
    const owned = await OwnedFolder.claim(folder);
    const pid = startIdle('recorded');
    owned.record('Redis', pid, ['recorded']);
    expect(JSON.parse(readFileSync(join(folder, 'owner.json'), 'utf8'))).toMatchObject({
      owner: { pid: process.pid },
      servers: [{ name: 'Redis', pid, markers: ['recorded'] }],
    });
    owned.forget('Redis');
    expect(JSON.parse(readFileSync(join(folder, 'owner.json'), 'utf8'))).toMatchObject({ servers: [] });
    owned.release();
  });

  it('can be claimed over a record that nobody can read', async () => {
    writeFileSync(join(folder, 'owner.json'), '{"owner":');
    const owned = await OwnedFolder.claim(folder);
    owned.release();
  });
});

describe('the identity of a process', () => {
  it('is its pid with its start time', () => {
    const self = identify(process.pid)!;
    expect(isRunning(self)).toBe(true);
    expect(isRunning({ ...self, startedAt: 'another time' })).toBe(false);
    expect(isOurs(self, ['node'])).toBe(true);
  });

  it('ends with the process', async () => {
    const pid = startIdle('short-lived');
    const identity = identify(pid)!;
    children.at(-1)!.kill('SIGKILL');
    await waitUntil('the process is gone', () => !isRunning(identity));
  });
});
