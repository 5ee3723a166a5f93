import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

/** The process's own zone must not matter. It is read once at start, so each one needs a process. */
const SCRIPT = `
  require('@swc/core');
  const { readFileSync } = require('node:fs');
  const { transformSync } = require('@swc/core');
  require.extensions['.ts'] = (module, file) => module._compile(transformSync(readFileSync(file, 'utf8'), {
    filename: file, jsc: { parser: { syntax: 'typescript' }, target: 'es2022' }, module: { type: 'commonjs' } }).code, file);
  const { resolveWhen } = require(${JSON.stringify(join(__dirname, 'resolve-when.ts'))});
  const { resolveValidity } = require(${JSON.stringify(join(__dirname, 'resolve-validity.ts'))});
  const answers = [];
  for (const timeZone of ['Europe/Berlin', 'America/Nuuk', 'Australia/Lord_Howe', 'Pacific/Apia'])
    for (const day of ['2026-10-24', '2026-10-25', '2027-03-27', '2027-03-28', '2027-04-04'])
      for (let hour = 0; hour < 24; hour++) {
        const when = resolveWhen({ at: day + 'T' + String(hour).padStart(2, '0') + ':30:00', timeZone }, 0);
        answers.push(when, resolveValidity({ untilLocal: '02:30' }, when.time, true));
      }
  answers.push(resolveWhen({ now: true }, 1790000000000), resolveWhen({ at: '2027-01-01T00:00:00' }, 0));
  console.log(JSON.stringify(answers));
`;

it('gives the same plan under any zone of the process', () => {
  const plans = ['UTC', 'Europe/Berlin', 'Pacific/Kiritimati', 'America/Nuuk'].map((TZ) =>
    execFileSync(process.execPath, ['-e', SCRIPT], { env: { ...process.env, TZ }, encoding: 'utf8' }),
  );
  expect(plans[0]!.length).toBeGreaterThan(10_000);
  expect(new Set(plans).size).toBe(1);
}, 30_000);
