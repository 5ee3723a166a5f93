// Everything that has to hold before a change lands, in one go: `npm test` here and in CI.
// Ends with one line that counts every test and check: `214 passed, 0 failed`.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const results = mkdtempSync(join(tmpdir(), 'punctual-checks-'));
const started = Date.now();
let passed = 0;
let failed = 0;

function run(command, args, env = {}) {
  return spawnSync(command, args, { stdio: 'inherit', env: { ...process.env, ...env } }).status === 0;
}

/** A step that counts as one check. */
function check(name, command, args, env) {
  const since = Date.now();
  console.log(`\n== ${name}`);
  const ok = run(command, args, env);
  if (ok) passed++;
  else failed++;
  console.log(`== ${name}: ${ok ? 'ok' : 'FAILED'} (${((Date.now() - since) / 1000).toFixed(1)} s)`);
  return ok;
}

/** A step whose tests count one by one. */
function tests(project, ...args) {
  const since = Date.now();
  const output = join(results, `${project}.json`);
  console.log(`\n== ${project} tests`);
  const ok = run('npx', ['--no-install', 'jest', '--selectProjects', project, '--json', `--outputFile=${output}`, ...args]);
  try {
    const report = JSON.parse(readFileSync(output, 'utf8'));
    passed += report.numPassedTests;
    failed += report.numFailedTests + report.numRuntimeErrorTestSuites;
    if (!ok && report.numFailedTests + report.numRuntimeErrorTestSuites === 0) failed++;
  } catch {
    failed++;
  }
  console.log(`== ${project} tests: ${ok ? 'ok' : 'FAILED'} (${((Date.now() - since) / 1000).toFixed(1)} s)`);
}

check('event types are what the schemas say', 'node', ['scripts/generate-event-types.mjs', '--check']);
check('lint and architecture rules', 'npx', ['--no-install', 'eslint', '.', '--max-warnings', '0']);
const built = check('type check and build', 'npm', ['run', '--silent', 'build']);
tests('unit');
if (built) {
  tests('integration', '--maxWorkers=2');
  tests('e2e', '--runInBand', '--testTimeout=240000');
  check('one iteration of every bench', 'node', ['dist/bench/run-benches.js', '--smoke']);
}

rmSync(results, { recursive: true, force: true });
console.log(`\nall checks took ${((Date.now() - started) / 1000).toFixed(0)} s`);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
