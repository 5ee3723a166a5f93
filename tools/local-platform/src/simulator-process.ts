import { join } from 'node:path';
import type { OwnedFolder } from '#local-stack/owned-folder';
import { pickPort } from '#local-stack/pick-port';
import { projectRoot } from '#local-stack/project-root';
import { ServerProcess } from '#local-stack/server-process';
import { waitUntil } from '#runtime/wait-until';
import type { ConfigurationInput } from '../../provider-simulator/src/configuration';
import { nodeFlags } from './node-flags';
import { SimulatorControl } from '../../provider-simulator/src/control-client';

export interface RunningSimulator {
  url: string;
  pid: number | undefined;
  control: SimulatorControl;
  stop(): Promise<void>;
}

/** The provider's stand-in as a process of its own. */
export async function startSimulatorProcess(
  folder: OwnedFolder,
  configuration: ConfigurationInput = {},
): Promise<RunningSimulator> {
  const port = await pickPort();
  const main = join(projectRoot(), 'dist', 'tools', 'provider-simulator', 'src', 'main.js');
  const server = new ServerProcess(folder, {
    name: 'provider-simulator',
    program: process.execPath,
    args: [...nodeFlags('provider-simulator'), main],
    cwd: projectRoot(),
    logFile: join(folder.path, 'logs', 'provider-simulator.log'),
    env: { ...process.env, SIMULATOR_PORT: String(port), SIMULATOR_CONFIG: JSON.stringify(configuration) },
    markers: [main],
    stopSignal: 'SIGTERM',
    orphanSignal: 'TERM',
    stopDeadlineMs: 5_000,
  });
  server.start();
  const control = new SimulatorControl(`http://127.0.0.1:${port}`);
  try {
    await waitUntil('the provider simulator to answer', () => {
      if (!server.isRunning) throw server.exitError();
      return control.isReady();
    });
  } catch (error) {
    await control.close();
    await server.stop();
    throw error;
  }
  return {
    url: control.url,
    pid: server.pid,
    control,
    stop: async () => {
      await control.close();
      await server.stop();
    },
  };
}
