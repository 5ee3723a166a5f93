import { join, resolve } from 'node:path';
import { LocalStackError } from './local-stack-error';
import { projectRoot } from './project-root';
import { startLocalStack } from './start-local-stack';
import { stopOnSignals } from './stop-on-signals';

const USAGE = `Starts Kafka, PostgreSQL and Redis on loopback ports, prints their addresses and runs until Ctrl-C.

  npm run stack -- [--folder FOLDER] [--brokers 1|3] [--keep]

  --folder FOLDER  data and logs (default .punctual/stack)
  --brokers 1|3    Kafka brokers (default 1)
  --keep           start on the data of the run before

KAFKA_PORT, POSTGRES_PORT and REDIS_PORT choose ports; KAFKA_BROKERS, DATABASE_URL and REDIS_URL each replace a server.
`;

interface Settings {
  folder: string;
  kafkaBrokers: 1 | 3;
  keep: boolean;
}

async function run(settings: Settings): Promise<void> {
  const cancel = new AbortController();
  let started = false;
  let finish: () => void;
  const asked = new Promise<void>((resolve) => (finish = resolve));
  stopOnSignals(() => {
    tell(started ? 'Stopping ...' : 'Cancelling the start ...');
    cancel.abort();
    finish();
  });
  // A closed terminal or pipe must not end us before the servers are stopped.
  process.stdout.on('error', () => undefined);
  process.stderr.on('error', () => undefined);
  const stack = await startLocalStack({ ...settings, ports: portsFromEnvironment(), progress: tell, signal: cancel.signal });
  started = true;
  const exports = Object.entries(stack.env).map(([name, value]) => `export ${name}='${value}'\n`);
  process.stdout.write(exports.join(''));
  tell(`Data and logs are in ${settings.folder}. Ctrl-C stops what was started.`);
  // Without a server of our own nothing else would keep the process alive.
  const alive = setInterval(() => undefined, 60_000);
  await asked;
  clearInterval(alive);
  await stack.stop();
  tell('Stopped.');
}

function readArguments(args: readonly string[]): Settings | 'help' {
  const settings: Settings = { folder: join(projectRoot(), '.punctual', 'stack'), kafkaBrokers: 1, keep: false };
  for (let index = 0; index < args.length; index++) {
    const argument = args[index]!;
    const value = args[index + 1];
    if (argument === '--help' || argument === '-h') return 'help';
    else if (argument === '--keep') settings.keep = true;
    else if (argument === '--folder' && value !== undefined) settings.folder = resolve(args[++index]!);
    else if (argument === '--brokers' && (value === '1' || value === '3')) settings.kafkaBrokers = args[++index] === '3' ? 3 : 1;
    else throw new RangeError(`unknown or incomplete argument "${argument}"\n\n${USAGE}`);
  }
  return settings;
}

function portsFromEnvironment(): { kafka?: number; postgres?: number; redis?: number } {
  const port = (name: string): number | undefined => {
    const text = process.env[name];
    if (text === undefined || text === '') return undefined;
    const value = Number(text);
    if (Number.isInteger(value) && value > 0 && value < 65_536) return value;
    throw new RangeError(`${name} is "${text}", but a port is a whole number from 1 to 65535`);
  };
  return { kafka: port('KAFKA_PORT'), postgres: port('POSTGRES_PORT'), redis: port('REDIS_PORT') };
}

/** Progress goes to stderr, so that the output can be sourced by a shell. */
function tell(message: string): void {
  process.stderr.write(`${message}\n`);
}

async function main(): Promise<void> {
  try {
    const settings = readArguments(process.argv.slice(2));
    if (settings === 'help') process.stdout.write(USAGE);
    else await run(settings);
  } catch (error) {
    if (error instanceof LocalStackError && error.code === 'stopped_while_starting') return tell(error.message);
    tell(
      error instanceof LocalStackError || error instanceof RangeError ? error.message : String((error as Error).stack ?? error),
    );
    process.exitCode = 1;
  }
}

void main();
