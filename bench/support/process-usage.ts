import { readFileSync } from 'node:fs';

/** Linux counts CPU time in hundredths of a second. */
const TICKS_PER_SECOND = 100;

export interface ProcessUsage {
  cpuSeconds: number;
  /** The most memory the process ever had resident. */
  peakMebibytes: number;
}

/** Of another process; on a machine that others use too, CPU time says more than the clock. Null where there is no /proc. */
export function usageOf(pid: number): ProcessUsage | null {
  try {
    // The name in parentheses may hold spaces: counted from behind it, user and system time are the 12th and 13th field.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const peak = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return { cpuSeconds: (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND, peakMebibytes: Number(peak) / 1_024 };
  } catch {
    return null;
  }
}

export function ownCpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}
