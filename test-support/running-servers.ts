export interface RunningServers {
  stop(): Promise<void>;
}

/** Jest loads setup and teardown as separate modules of one process: only the global object is common to both. */
const holder = globalThis as typeof globalThis & { punctualTestServers?: RunningServers };

export function holdRunningServers(servers: RunningServers): void {
  holder.punctualTestServers = servers;
}

export function takeRunningServers(): RunningServers | undefined {
  const servers = holder.punctualTestServers;
  delete holder.punctualTestServers;
  return servers;
}
