import { join } from 'node:path';
import type { OwnedFolder } from '#local-stack/owned-folder';
import { pickPort } from '#local-stack/pick-port';
import { projectRoot } from '#local-stack/project-root';
import { ServerProcess } from '#local-stack/server-process';
import { waitUntil } from '#runtime/wait-until';
import { request } from 'undici';
import { nodeFlags } from './node-flags';
import { waitOf } from './told-waits';

export type ServiceName = 'api' | 'scheduler' | 'sender' | 'receipts';

const START_DEADLINE_MS = 60_000;

/** One instance of a service as a process of its own, on a loopback port that it keeps over restarts. */
export class ServiceProcess {
  private constructor(
    readonly service: ServiceName,
    readonly name: string,
    readonly url: string,
    readonly logFile: string,
    private readonly process: ServerProcess,
  ) {}

  static async create(folder: OwnedFolder, service: ServiceName, name: string, env: NodeJS.ProcessEnv): Promise<ServiceProcess> {
    const port = await pickPort();
    const root = projectRoot();
    const main = join(root, 'dist', 'services', service, 'src', 'main.js');
    const telemetry = join(root, 'dist', 'libs', 'runtime', 'src', 'telemetry.js');
    const logFile = join(folder.path, 'logs', `${name}.log`);
    const server = new ServerProcess(folder, {
      name,
      program: process.execPath,
      args: [...nodeFlags(service), '-r', telemetry, main],
      cwd: root,
      logFile,
      env: { ...process.env, ...env, HOST: '127.0.0.1', PORT: String(port), INSTANCE_ID: name },
      markers: [main],
      stopSignal: 'SIGTERM',
      orphanSignal: 'TERM',
      stopDeadlineMs: 15_000,
    });
    return new ServiceProcess(service, name, `http://127.0.0.1:${port}`, logFile, server);
  }

  get pid(): number | undefined {
    return this.process.pid;
  }

  start(): void {
    this.process.start();
  }

  /** Ready to work, as the service itself says; `onWait` hears what it still waits for. */
  async untilReady(onWait: (waitsFor: string) => void = () => undefined): Promise<void> {
    await waitUntil(
      `${this.name} to be ready (its log: ${this.logFile})`,
      async () => {
        if (!this.process.isRunning) throw this.process.exitError();
        try {
          const { statusCode, body } = await request(`${this.url}/health/ready`);
          const text = await body.text();
          if (statusCode === 200) return true;
          onWait(waitOf(text));
        } catch {
          onWait('its first answer');
        }
        return false;
      },
      { deadlineMs: START_DEADLINE_MS, everyMs: 50 },
    );
  }

  async isReady(): Promise<boolean> {
    try {
      const { statusCode, body } = await request(`${this.url}/health/ready`);
      await body.dump();
      return statusCode === 200;
    } catch {
      return false;
    }
  }

  log(): string {
    return this.process.logSinceStart();
  }

  stop(): Promise<void> {
    return this.process.stop();
  }

  /** kill -9 */
  kill(): Promise<void> {
    return this.process.kill();
  }

  /** SIGSTOP: alive, and does nothing. */
  pause(): void {
    this.process.pause();
  }

  resume(): void {
    this.process.resume();
  }
}
