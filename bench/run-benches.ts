import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { withServers } from './support/with-servers';

interface Bench {
  name: string;
  /** How a small iteration is asked for, where the bench is a program of its own and not a `run({ smoke })`. */
  smoke?: { args?: string[]; env?: NodeJS.ProcessEnv };
}

/** Every bench, in the order of results.md. */
const BENCHES: readonly Bench[] = [
  { name: 'ingest' },
  {
    name: 'release',
    smoke: { args: ['--iterations', '1', '--seconds', '1', '--rate', '50', '--numbers', '10', '--recipients', '50'] },
  },
  { name: 'gate' },
  { name: 'webhooks', smoke: { env: { WEBHOOK_BENCH_RATE: '200', WEBHOOK_BENCH_SECONDS: '1' } } },
  { name: 'status-join', smoke: { env: { JOIN_BENCH_MESSAGES: '1000', JOIN_BENCH_BATCH: '500' } } },
  { name: 'pace' },
  { name: 'steady' },
  { name: 'pipeline' },
];

/** `node run-benches.js [--smoke] [names…]`: all of them, or those that are named. Smoke is one small iteration, to see that they run. */
async function main(): Promise<void> {
  const smoke = process.argv.includes('--smoke');
  const named = process.argv.slice(2).filter((word) => !word.startsWith('--'));
  const unknown = named.filter((name) => !BENCHES.some((bench) => bench.name === name));
  if (unknown.length > 0) {
    throw new Error(`There is no bench called ${unknown.join(', ')}; there are ${BENCHES.map(({ name }) => name).join(', ')}.`);
  }
  await withServers(async () => {
    for (const bench of BENCHES.filter(({ name }) => named.length === 0 || named.includes(name))) {
      process.stdout.write(`\n== ${bench.name}\n`);
      await (bench.smoke === undefined ? runInside(bench.name, smoke) : runProgram(bench, smoke));
    }
  });
}

async function runInside(name: string, smoke: boolean): Promise<void> {
  const bench = (await import(join(__dirname, `${name}.js`))) as { run(options: { smoke: boolean }): Promise<void> };
  await bench.run({ smoke });
}

async function runProgram({ name, smoke: small }: Bench, smoke: boolean): Promise<void> {
  const child = spawn(process.execPath, [join(__dirname, `${name}.js`), ...((smoke && small?.args) || [])], {
    stdio: 'inherit',
    env: { ...process.env, ...(smoke ? small?.env : undefined) },
  });
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`the bench ${name} ended with ${code}`);
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
