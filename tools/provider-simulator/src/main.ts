import { z } from 'zod';
import { configurationSchema } from './configuration';
import { startSimulator } from './start-simulator';

const environmentSchema = z.object({
  SIMULATOR_PORT: z.coerce.number().int().min(0).max(65_535).default(0),
  SIMULATOR_HOST: z.string().min(1).default('127.0.0.1'),
  SIMULATOR_CONFIG: z
    .string()
    .default('{}')
    .transform((text, context): unknown => {
      try {
        return JSON.parse(text) as unknown;
      } catch {
        context.addIssue({ code: 'custom', message: 'is not JSON' });
        return z.NEVER;
      }
    })
    .pipe(configurationSchema),
});

async function main(): Promise<void> {
  const environment = environmentSchema.safeParse(process.env);
  if (!environment.success) {
    const problems = environment.error.issues.map((issue) => `  ${issue.path.join('.')}: ${issue.message}`);
    process.stderr.write(`The simulator did not start. Correct these environment variables:\n${problems.join('\n')}\n`);
    process.exitCode = 2;
    return;
  }
  const { SIMULATOR_PORT, SIMULATOR_HOST, SIMULATOR_CONFIG } = environment.data;
  const simulator = await startSimulator({ port: SIMULATOR_PORT, host: SIMULATOR_HOST, configuration: SIMULATOR_CONFIG });
  process.stdout.write(`${JSON.stringify({ ready: true, url: simulator.url, port: simulator.port })}\n`);
  const stop = (): void => void simulator.stop();
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
}

void main().catch((error: unknown) => {
  process.stderr.write(`The simulator did not start: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
