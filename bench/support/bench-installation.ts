import { startInstallation, type Installation, type InstallationOptions } from '../../e2e/support/installation';
import { withServers } from './with-servers';

/** The four services as processes with their usual deadlines, on servers of the bench. */
export async function withInstallation(options: InstallationOptions, work: (on: Installation) => Promise<void>): Promise<void> {
  await withServers(async () => {
    const on = await startInstallation({
      ...options,
      settings: {
        LOG_LEVEL: 'warn',
        PROVIDER_DEADLINE_MS: '10000',
        DEADLINE_GRACE_MS: '5000',
        EVIDENCE_WINDOW_MS: '900000',
        ...options.settings,
      },
    });
    try {
      await work(on);
    } finally {
      await on.stop();
    }
  });
}
