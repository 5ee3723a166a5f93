import { join } from 'node:path';

/** Every bench, in the order of the table in results.md; each exports `run({ smoke })`. */
const BENCHES = ['ingest', 'release', 'gate', 'webhooks', 'status-join', 'pace', 'steady', 'pipeline'] as const;

/** `node run-benches.js [--smoke] [names…]`: all of them, or those that are named. Smoke is one small iteration, to see that they run. */
async function main(): Promise<void> {
  const smoke = process.argv.includes('--smoke');
  const named = process.argv.slice(2).filter((word) => !word.startsWith('--'));
  const unknown = named.filter((name) => !BENCHES.includes(name as never));
  if (unknown.length > 0) throw new Error(`There is no bench called ${unknown.join(', ')}; there are ${BENCHES.join(', ')}.`);
  for (const name of named.length > 0 ? named : BENCHES) {
    process.stdout.write(`\n== ${name}\n`);
    const bench = (await import(join(__dirname, `${name}.js`))) as { run(options: { smoke: boolean }): Promise<void> };
    await bench.run({ smoke });
  }
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
