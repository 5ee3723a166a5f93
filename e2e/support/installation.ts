import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { OwnedFolder } from '#local-stack/owned-folder';
import { projectRoot } from '#local-stack/project-root';
import type { StackAddresses } from '#local-stack/start-local-stack';
import { waitUntil } from '#runtime/wait-until';
import { createTestDatabase, serverAddress, uniquePrefix } from '../../test-support/isolation';
import type { Run, Schedule } from '../../tools/demo/src/api-answers';
import { Api } from '../../tools/demo/src/call-api';
export { messagesOf } from '../../tools/demo/src/follow-campaign';
import { startPlatform, type Platform } from '../../tools/local-platform/src/start-platform';
import { startSimulatorProcess, type RunningSimulator } from '../../tools/local-platform/src/simulator-process';
import type { ConfigurationInput } from '../../tools/provider-simulator/src/configuration';
import type { ServiceName } from '../../tools/local-platform/src/service-process';

/** Deadlines that tests can wait for. */
export const SHORT_DEADLINES = {
  PROVIDER_DEADLINE_MS: '2000',
  DEADLINE_GRACE_MS: '1000',
  EVIDENCE_WINDOW_MS: '5000',
  RESEND_AFTER_MS: '3000',
};

export interface TestNumber {
  name: string;
  phoneNumberId: string;
  ratePerSecond: number;
}

export interface Installation {
  platform: Platform;
  simulator: RunningSimulator;
  servers: StackAddresses;
  api: Api;
  tenantId: string;
  numbers: TestNumber[];
  stop(): Promise<void>;
}

export interface InstallationOptions {
  instances?: Partial<Record<ServiceName, number>>;
  /** Messages a second of each number; each gets its own provider identity. */
  rates: number[];
  settings?: NodeJS.ProcessEnv;
  simulator?: ConfigurationInput;
  /** Servers of the test's own; the run's shared ones otherwise. */
  servers?: StackAddresses;
  /** Lets the provider take more than the number's rate, for numbers whose own limit is what is tested. */
  unlimitedProvider?: boolean;
}

const FAST_WEBHOOKS: ConfigurationInput = {
  latency: { kind: 'lognormal', p50Ms: 15, p99Ms: 80 },
  webhooks: {
    delays: {
      sent: { kind: 'uniform', minMs: 5, maxMs: 60 },
      delivered: { kind: 'uniform', minMs: 10, maxMs: 150 },
      read: { kind: 'uniform', minMs: 20, maxMs: 300 },
      failed: { kind: 'uniform', minMs: 10, maxMs: 100 },
      held: { kind: 'fixed', ms: 500 },
    },
  },
};

/** The four services and the simulator as processes, a database and topics of their own, a test tenant with numbers. */
export async function startInstallation(options: InstallationOptions): Promise<Installation> {
  const stops: Array<() => Promise<void>> = [];
  const stop = async (): Promise<void> => {
    for (const one of stops.splice(0).reverse()) await one();
  };
  try {
    let servers = options.servers;
    if (servers === undefined) {
      const database = await createTestDatabase();
      stops.push(() => database.drop());
      servers = {
        KAFKA_BROKERS: serverAddress('KAFKA_BROKERS'),
        REDIS_URL: serverAddress('REDIS_URL'),
        DATABASE_URL: database.adminUrl,
      };
    }
    const prefix = uniquePrefix();
    const folder = join(projectRoot(), '.punctual', `e2e-${process.pid}-${randomBytes(3).toString('hex')}`);
    const own = await OwnedFolder.claim(join(folder, 'simulator'));
    stops.push(async () => own.release({ remove: true }));
    const simulator = await startSimulatorProcess(own, { ...FAST_WEBHOOKS, strictNumbers: true, ...options.simulator });
    stops.push(() => simulator.stop());
    const platform = await startPlatform({
      servers,
      folder: join(folder, 'services'),
      simulatorUrl: simulator.url,
      instances: options.instances,
      topicPrefix: prefix,
      redisPrefix: prefix,
      settings: { LOG_LEVEL: 'info', ...SHORT_DEADLINES, ...options.settings },
    });
    stops.push(() => platform.stop());
    const { api, tenantId, numbers } = await createTenant(platform, simulator, options);
    return { platform, simulator, servers, api, tenantId, numbers, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

export async function createTenant(
  platform: Platform,
  simulator: RunningSimulator,
  options: Pick<InstallationOptions, 'rates' | 'unlimitedProvider'>,
): Promise<{ api: Api; tenantId: string; numbers: TestNumber[] }> {
  const operator = new Api(platform.apiUrl, platform.operatorKey);
  const tenant = await operator.post<{ id: string }>('/v1/admin/tenants', { name: 'Test shop', mode: 'test' });
  const scopes = ['schedules', 'audiences', 'numbers'].flatMap((what) => [`${what}:read`, `${what}:write`]);
  const { key } = await operator.post<{ key: string }>(`/v1/admin/tenants/${tenant.id}/api-keys`, {
    name: 'tests',
    scopes: [...scopes, 'messages:read', 'recipients:read'],
  });
  const api = new Api(platform.apiUrl, key);
  const numbers: TestNumber[] = [];
  for (const [index, ratePerSecond] of options.rates.entries()) {
    const number = { name: `wa-${index + 1}`, phoneNumberId: newPhoneNumberId(), ratePerSecond };
    await addNumber({ platform, simulator, api }, number, options.unlimitedProvider);
    numbers.push(number);
  }
  return { api, tenantId: tenant.id, numbers };
}

export function newPhoneNumberId(): string {
  return String(7_000_000_000_000 + Math.floor(Math.random() * 1_000_000_000_000));
}

/** A number at both ends: ours, and the provider's that enforces its rate. */
export async function addNumber(
  { platform, simulator, api }: Pick<Installation, 'platform' | 'simulator' | 'api'>,
  { name, phoneNumberId, ratePerSecond }: TestNumber,
  unlimitedProvider = false,
): Promise<void> {
  const { webhook } = await api.put<{ webhook: { path: string } }>(`/v1/numbers/${name}`, {
    kind: 'whatsapp',
    provider: { name: 'whatsapp_cloud', numberId: phoneNumberId },
    ratePerSecond,
    credentials: { accessToken: 'token-of-tests' },
    webhook: { appSecret: 'secret-of-tests', verifyToken: 'verify-of-tests' },
  });
  const configured = {
    phoneNumberId,
    ratePerSecond: unlimitedProvider ? null : Math.ceil(ratePerSecond),
    accessToken: 'token-of-tests',
    webhook: { url: platform.receiptsUrl + webhook.path, appSecret: 'secret-of-tests', verifyToken: 'verify-of-tests' },
  };
  await simulator.control.configure({ numbers: [configured] });
}

const AREAS = [
  201, 202, 203, 206, 208, 212, 213, 214, 215, 216, 217, 219, 224, 225, 228, 229, 231, 234, 239, 240, 248, 251, 252, 253, 254,
  256, 260, 262, 267, 269, 270, 276, 281, 301, 302, 303, 304, 305, 307, 308, 309, 310, 312, 313, 314, 315, 316, 317, 318, 319,
  320, 321, 323, 325, 330, 331, 334, 336, 337, 339, 340, 346, 347, 351, 352, 360, 361, 364, 380, 385, 386, 401, 402, 404, 405,
  406, 407, 408, 409, 410, 412, 413, 414, 415, 417, 419, 423, 424, 425, 430, 432, 434, 435, 440, 442, 443, 458, 463, 469, 470,
  475, 478, 479, 480, 484, 501, 502, 503, 504, 505, 507, 508, 509, 510, 512, 513, 515, 516, 517, 518, 520, 530, 531, 534, 539,
  540, 541, 551, 559, 561, 562, 563, 567, 570, 571, 573, 574, 575, 580, 585, 586,
];

/**
 * Ordinary recipients of the simulator, all different: first the Australian block kept for fiction, then American ones
 * whose last two digits are below 50.
 */
export function recipients(count: number, from = 0): string[] {
  return Array.from({ length: count }, (_, index) => {
    const at = from + index;
    if (at < AREAS.length * 50) return `+1${AREAS[Math.floor(at / 50)]}55501${String(at % 50).padStart(2, '0')}`;
    // Swedish and Brazilian mobile numbers: the simulator is the only place they reach.
    return `+5511${900_000_000 + (at - AREAS.length * 50)}`;
  });
}

export function csvOf(numbers: readonly string[]): Buffer {
  return Buffer.from(`to,name\n${numbers.map((number, index) => `${number},Person ${index}`).join('\n')}\n`);
}

export async function upload(api: Api, numbers: readonly string[]): Promise<string> {
  const audience = await api.uploadCsv<{ id: string; accepted: number }>('/v1/audiences?name=test', csvOf(numbers));
  if (audience.accepted !== numbers.length) throw new Error(`${audience.accepted} of ${numbers.length} recipients were accepted`);
  return audience.id;
}

export async function schedule(
  api: Api,
  number: TestNumber,
  audience: { audienceId: string } | { recipients: Array<Record<string, unknown>> },
  more: Record<string, unknown> = {},
): Promise<Schedule & { runId: string }> {
  const created = await api.post<Schedule>('/v1/schedules', {
    from: { number: number.name },
    category: 'utility',
    content: { text: 'Hello from the test' },
    when: { now: true },
    allowDuplicate: true,
    ...audience,
    ...more,
  });
  return { ...created, runId: created.next[0]!.runId };
}

const OPEN = ['scheduled', 'waiting', 'sending', 'uncertain'];

/** Until nothing of a run can be sent any more and every receipt that was promised has come. */
export async function untilSettled(api: Api, runId: string, deadlineMs = 60_000, alsoFinal: string[] = []): Promise<Run> {
  const open = [...OPEN, 'submitted', 'sent'].filter((status) => !alsoFinal.includes(status));
  let last: Run | undefined;
  try {
    return await waitUntil(
      `run ${runId} to settle`,
      async () => {
        last = await api.get<Run>(`/v1/runs/${runId}`);
        return open.every((status) => (last!.counts[status] ?? 0) === 0) ? last : null;
      },
      { deadlineMs, everyMs: 100 },
    );
  } catch (error) {
    throw new Error(`${(error as Error).message}; its counts: ${JSON.stringify(last?.counts)}`, { cause: error });
  }
}

export const sumOf = (counts: Record<string, number>): number => Object.values(counts).reduce((sum, count) => sum + count, 0);

/** How often the provider really took on a message for each recipient (digits without plus). */
export async function received(simulator: RunningSimulator, phoneNumberId: string): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for await (const { recipient } of simulator.control.streamDeliveries({ phoneNumberId }))
    counts.set(recipient, (counts.get(recipient) ?? 0) + 1);
  return counts;
}
