import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** A process as we wrote it down when it started. Pids are reused; pid and start time together are not. */
export interface ProcessIdentity {
  pid: number;
  startedAt: string;
}

export interface RunningProcess extends ProcessIdentity {
  command: string;
}

/** The process that has this pid now; zombies count as gone, since nothing of them runs any more. */
export function readProcess(pid: number): RunningProcess | undefined {
  return process.platform === 'linux' ? readFromProc(pid) : readFromPs(pid);
}

export function identify(pid: number): ProcessIdentity | undefined {
  const running = readProcess(pid);
  return running && { pid, startedAt: running.startedAt };
}

export function isRunning(written: ProcessIdentity): boolean {
  return readProcess(written.pid)?.startedAt === written.startedAt;
}

/** True only for the very process that was written down, still running the command that we gave it. */
export function isOurs(written: ProcessIdentity, markers: readonly string[], running = readProcess(written.pid)): boolean {
  return (
    running !== undefined &&
    running.startedAt === written.startedAt &&
    markers.length > 0 &&
    markers.every((marker) => running.command.includes(marker))
  );
}

function readFromProc(pid: number): RunningProcess | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The program's name, in brackets, may hold blanks and brackets itself: fields are counted from the last one.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [state, startedAt] = [fields[0], fields[19]];
    if (state === 'Z' || state === 'X' || startedAt === undefined) return undefined;
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').join(' ').trim();
    return { pid, startedAt, command };
  } catch {
    return undefined;
  }
}

function readFromPs(pid: number): RunningProcess | undefined {
  try {
    const columns = ['stat', 'lstart', 'command'].flatMap((column) => ['-o', `${column}=`]);
    const line = execFileSync('ps', ['-ww', '-p', String(pid), ...columns], {
      encoding: 'utf8',
      env: { ...process.env, LC_ALL: 'C' },
    });
    const match = /^(\S+)\s+(\S+\s+\S+\s+\S+\s+\S+\s+\S+)\s+(.*)$/m.exec(line.trim());
    if (!match || match[1]!.startsWith('Z')) return undefined;
    return { pid, startedAt: match[2]!, command: match[3]! };
  } catch {
    return undefined;
  }
}
