import { linkSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { LocalStackError } from './local-stack-error';
import { identify, isOurs, isRunning, type ProcessIdentity } from './process-identity';

/** A server as the owner wrote it down; every marker must be in its command line before anybody ends it. */
export interface RecordedServer extends ProcessIdentity {
  name: string;
  markers: string[];
}

interface OwnerRecord {
  owner: ProcessIdentity;
  servers: RecordedServer[];
}

const RECORD = 'owner.json';
const LEFTOVER_DEADLINE_MS = 10_000;

/**
 * A folder that one process at a time uses for servers. The record in it names the owner and each server that it started,
 * so that a later start can end what a killed owner left behind, and nothing else.
 */
export class OwnedFolder {
  private servers: RecordedServer[] = [];

  private constructor(
    readonly path: string,
    private readonly owner: ProcessIdentity,
  ) {}

  static async claim(path: string, options: { keep?: boolean } = {}): Promise<OwnedFolder> {
    const folder = new OwnedFolder(resolve(path), identify(process.pid) ?? { pid: process.pid, startedAt: '' });
    mkdirSync(folder.path, { recursive: true });
    for (let attempt = 0; attempt < 5; attempt++) {
      if (folder.tryCreate()) {
        if (options.keep !== true) emptyFolder(folder.path);
        return folder;
      }
      const found = readRecord(folder.path);
      if (found === undefined) {
        // Gone since the attempt above, or unreadable: records are written at once, so an unreadable one has no author.
        if (attempt > 1) rmSync(join(folder.path, RECORD), { force: true });
        continue;
      }
      if (isRunning(found.owner)) throw folder.inUse(found.owner.pid);
      await endLeftovers(found.servers);
      folder.removeStale(found);
    }
    throw new LocalStackError(
      'folder_in_use',
      `Several processes try to take over ${folder.path} at this moment. Wait until one of them has it, then start again.`,
    );
  }

  record(name: string, pid: number, markers: string[]): void {
    const identity = identify(pid);
    if (identity === undefined) return;
    this.servers = [...this.servers.filter((server) => server.name !== name), { name, markers, ...identity }];
    this.write();
  }

  forget(name: string): void {
    this.servers = this.servers.filter((server) => server.name !== name);
    this.write();
  }

  /** Gives the folder back; `remove` deletes it with all data. */
  release(options: { remove?: boolean } = {}): void {
    if (options.remove === true) rmSync(this.path, { recursive: true, force: true });
    else rmSync(join(this.path, RECORD), { force: true });
  }

  private inUse(pid: number): LocalStackError {
    const who = pid === process.pid ? `this process (pid ${pid}) already` : `the process with pid ${pid}`;
    return new LocalStackError(
      'folder_in_use',
      `The folder ${this.path} is in use by ${who}. Stop that one first ("kill ${pid}" ends it and its servers), or choose another folder.`,
    );
  }

  /** A link appears with its content at once, so that nobody ever reads a half-written record. */
  private tryCreate(): boolean {
    const draft = this.writeDraft();
    try {
      linkSync(draft, join(this.path, RECORD));
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
      throw error;
    } finally {
      rmSync(draft, { force: true });
    }
  }

  /** Two starts may find the same dead owner: whoever moves a record away that it did not read puts it back. */
  private removeStale(read: OwnerRecord): void {
    const aside = join(this.path, `${RECORD}.stale-${process.pid}`);
    try {
      renameSync(join(this.path, RECORD), aside);
      const moved = JSON.parse(readFileSync(aside, 'utf8')) as OwnerRecord;
      const same = moved.owner.pid === read.owner.pid && moved.owner.startedAt === read.owner.startedAt;
      if (!same) linkSync(aside, join(this.path, RECORD));
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      if (code !== 'ENOENT' && code !== 'EEXIST') throw error;
    } finally {
      rmSync(aside, { force: true });
    }
  }

  private write(): void {
    renameSync(this.writeDraft(), join(this.path, RECORD));
  }

  private writeDraft(): string {
    const draft = join(this.path, `${RECORD}.draft-${process.pid}`);
    const record: OwnerRecord = { owner: this.owner, servers: this.servers };
    writeFileSync(draft, JSON.stringify(record, null, 2));
    return draft;
  }
}

/** Ends what dead owners left running in these folders; folders with a living owner are not touched. */
export async function endLeftoversOf(paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    const found = readRecord(path);
    if (found !== undefined && !isRunning(found.owner)) await endLeftovers(found.servers);
  }
}

function readRecord(path: string): OwnerRecord | undefined {
  try {
    const record = JSON.parse(readFileSync(join(path, RECORD), 'utf8')) as OwnerRecord;
    return typeof record.owner?.pid === 'number' && Array.isArray(record.servers) ? record : undefined;
  } catch {
    return undefined;
  }
}

async function endLeftovers(servers: readonly RecordedServer[]): Promise<void> {
  const ours = servers.filter((server) => isOurs(server, server.markers));
  for (const server of ours) {
    try {
      process.kill(server.pid, 'SIGKILL');
    } catch {
      // It ended between the look and the signal, or belongs to another user: the wait below tells which.
    }
  }
  const deadline = Date.now() + LEFTOVER_DEADLINE_MS;
  for (const server of ours) {
    // Not by its command: a process that is ending has none any more, and still holds its ports.
    while (isRunning(server)) {
      if (Date.now() > deadline) {
        throw new LocalStackError(
          'server_not_stopped',
          `${server.name} (pid ${server.pid}) was left over by a start that was killed, and it does not end. End it with "kill -9 ${server.pid}" and start again.`,
        );
      }
      await new Promise((wake) => setTimeout(wake, 20));
    }
  }
}

function emptyFolder(path: string): void {
  for (const name of readdirSync(path)) {
    if (!name.startsWith(RECORD)) rmSync(join(path, name), { recursive: true, force: true });
  }
}
