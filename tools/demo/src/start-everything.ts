import { join } from 'node:path';
import { OwnedFolder } from '#local-stack/owned-folder';
import { projectRoot } from '#local-stack/project-root';
import { startLocalStack } from '#local-stack/start-local-stack';
import { startPlatform, type Platform } from '../../local-platform/src/start-platform';
import { startSimulatorProcess, type RunningSimulator } from '../../local-platform/src/simulator-process';
import type { Screen } from './screen';

export interface Everything {
  platform: Platform;
  simulator: RunningSimulator;
  folder: string;
}

/**
 * Deadlines short enough to watch; and a wider margin of pace, since the provider's stand-in shares the machine with everything else
 * and sees calls unevenly late when that is busy.
 */
const SETTINGS = { PROVIDER_DEADLINE_MS: '4000', DEADLINE_GRACE_MS: '1000', EVIDENCE_WINDOW_MS: '20000', PACE_MARGIN_MS: '40' };

/** Whatever is started is put on `stops` at once, last in first out, so that a Ctrl-C in the middle stops just that. */
export async function startEverything(
  screen: Screen,
  stops: Array<() => Promise<void>>,
  signal: AbortSignal,
): Promise<Everything> {
  const folder = join(projectRoot(), '.punctual', 'demo');
  screen.title('Starting Kafka, PostgreSQL, Redis');
  const progress = (line: string): void => screen.line(`  ${line}`);
  const stack = await startLocalStack({ folder, progress, signal });
  stops.push(() => stack.stop());

  screen.title('Starting the provider simulator and the four services');
  const own = await OwnedFolder.claim(join(folder, 'simulator'));
  stops.push(async () => own.release());
  const simulator = await startSimulatorProcess(own, {
    strictNumbers: true,
    strictTemplates: true,
    latency: { kind: 'lognormal', p50Ms: 30, p99Ms: 180 },
    webhooks: {
      delays: {
        delivered: { kind: 'lognormal', p50Ms: 200, p99Ms: 1200 },
        read: { kind: 'lognormal', p50Ms: 600, p99Ms: 3000 },
        held: { kind: 'fixed', ms: 2000 },
      },
      readShare: 0.6,
      duplicateShare: 0.02,
      reorderShare: 0.02,
    },
  });
  stops.push(() => simulator.stop());
  progress('provider-simulator is ready');
  const platform = await startPlatform({
    servers: stack.env,
    folder: join(folder, 'services'),
    simulatorUrl: simulator.url,
    settings: SETTINGS,
    progress,
    withoutWaiting: true,
  });
  stops.push(() => platform.stop());
  await platform.untilReady();
  return { platform, simulator, folder };
}
