import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { LocalStackError } from './local-stack-error';
import type { OwnedFolder } from './owned-folder';
import { runAs, type Account, type OrphanSignal } from './run-as';

export interface ServerCommand {
  name: string;
  program: string;
  args: string[];
  cwd: string;
  logFile: string;
  env?: NodeJS.ProcessEnv;
  account?: Account;
  /** Parts of the command line by which a later start recognises this server. */
  markers: string[];
  /** What asks the server to end in good order. */
  stopSignal: 'SIGTERM' | 'SIGINT';
  /** What the kernel sends when our process dies without having stopped the server. */
  orphanSignal: OrphanSignal;
  stopDeadlineMs: number;
}

const LOG_TAIL_LINES = 12;

/** One server process: started in its own session (Ctrl-C reaches only us), logged to a file, ended with us. */
export class ServerProcess {
  private child: ChildProcess | undefined;
  private ended: Promise<void> = Promise.resolve();
  private exit = '';
  private logStart = 0;

  constructor(
    private readonly folder: OwnedFolder,
    private readonly command: ServerCommand,
  ) {}

  get pid(): number | undefined {
    return this.isRunning ? this.child?.pid : undefined;
  }

  get isRunning(): boolean {
    return this.child !== undefined && this.child.exitCode === null && this.child.signalCode === null && this.exit === '';
  }

  start(): void {
    if (this.isRunning)
      throw new Error(`${this.command.name} already runs (pid ${this.pid}); stop it before it is started again`);
    const { name, cwd, logFile, env, markers, account, orphanSignal } = this.command;
    mkdirSync(dirname(logFile), { recursive: true });
    const log = openSync(logFile, 'a');
    this.logStart = statSync(logFile).size;
    const [program, args, identity] = runAs(account, this.command.program, this.command.args, orphanSignal);
    this.exit = '';
    const child = spawn(program, args, {
      cwd,
      env: env ?? process.env,
      detached: true,
      stdio: ['ignore', log, log],
      ...identity,
    });
    closeSync(log);
    this.child = child;
    living.add(child);
    this.ended = new Promise((resolve) => {
      const finish = (how: string): void => {
        this.exit = how;
        living.delete(child);
        resolve();
      };
      child.once('exit', (code, signal) => finish(signal === null ? `exit code ${code}` : `signal ${signal}`));
      child.once('error', (error) => finish(error.message));
    });
    if (child.pid !== undefined) this.folder.record(name, child.pid, markers);
  }

  /** Asks for a clean end and enforces it after the deadline. A paused server is woken first, or it could not answer. */
  async stop(): Promise<void> {
    if (this.isRunning) {
      this.signal('SIGCONT');
      this.signal(this.command.stopSignal);
      if (!(await this.endsWithin(this.command.stopDeadlineMs))) return this.kill();
    }
    this.folder.forget(this.command.name);
  }

  async kill(): Promise<void> {
    if (this.isRunning) {
      this.signal('SIGKILL');
      if (!(await this.endsWithin(10_000))) {
        throw new LocalStackError(
          'server_not_stopped',
          `${this.command.name} (pid ${this.pid}) does not end after SIGKILL. End it by hand before the next start.`,
        );
      }
    }
    this.folder.forget(this.command.name);
  }

  pause(): void {
    this.signal('SIGSTOP');
  }

  resume(): void {
    this.signal('SIGCONT');
  }

  /** What the log says since the latest start. */
  logSinceStart(): string {
    try {
      return readFileSync(this.command.logFile).subarray(this.logStart).toString('utf8');
    } catch {
      return '';
    }
  }

  exitError(): LocalStackError {
    return new LocalStackError(
      'server_exited',
      `${this.command.name} ended before it was ready (${this.exit}). ${this.logHint()}`,
    );
  }

  notReadyError(afterMs: number, cause: unknown): LocalStackError {
    const last = cause instanceof Error && cause.message !== '' ? ` The last answer was: ${cause.message}.` : '';
    return new LocalStackError(
      'server_not_ready',
      `${this.command.name} did not become ready within ${Math.round(afterMs / 1000)} s and is stopped again.${last} ` +
        `On a slow or busy machine try again. ${this.logHint()}`,
      { cause },
    );
  }

  private logHint(): string {
    const tail = this.logSinceStart().trimEnd().split('\n').slice(-LOG_TAIL_LINES).join('\n');
    const log = `Its log is ${this.command.logFile}`;
    return tail === '' ? `${log} (empty).` : `${log}; the last lines:\n${tail}`;
  }

  private signal(signal: NodeJS.Signals): void {
    if (this.isRunning) this.child?.kill(signal);
  }

  private endsWithin(deadlineMs: number): Promise<boolean> {
    let timer: NodeJS.Timeout;
    const tooLate = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(false), deadlineMs);
    });
    return Promise.race([this.ended.then(() => true), tooLate]).finally(() => clearTimeout(timer));
  }
}

/** Where the kernel cannot do it (no setpriv, a killed macOS parent), this still ends servers when our process exits by itself. */
const living = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of living) child.kill('SIGKILL');
});
