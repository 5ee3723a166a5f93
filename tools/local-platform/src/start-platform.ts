import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OwnedFolder } from '#local-stack/owned-folder';
import type { StackAddresses } from '#local-stack/start-local-stack';
import { migrate } from '../../migrate/src/migrate';
import { ServiceProcess, type ServiceName } from './service-process';
import { ToldWaits } from './told-waits';

export interface PlatformOptions {
  /** Addresses of the servers; DATABASE_URL is an administrator's. */
  servers: StackAddresses;
  /** Logs and the record of what was started. */
  folder: string;
  instances?: Partial<Record<ServiceName, number>>;
  /** Where messages of test tenants go. */
  simulatorUrl: string;
  topicPrefix?: string;
  redisPrefix?: string;
  /** More settings for the services, such as short deadlines for tests. */
  settings?: NodeJS.ProcessEnv;
  progress?: (line: string) => void;
  /** Start the processes, but don't wait until they are ready. */
  withoutWaiting?: boolean;
  /** Leave the database as it is: the caller migrates when it likes. */
  withoutMigration?: boolean;
}

export interface Platform {
  apiUrl: string;
  receiptsUrl: string;
  operatorKey: string;
  services: ServiceProcess[];
  of(service: ServiceName): ServiceProcess[];
  migrate(): Promise<void>;
  untilReady(): Promise<void>;
  stop(): Promise<void>;
}

export function roleUrl(adminUrl: string, service: ServiceName, password = ''): string {
  const url = new URL(adminUrl);
  url.username = `punctual_${service}`;
  url.password = password;
  return url.toString();
}

interface Secrets {
  ID_KEY: string;
  TOKEN_KEY: string;
  CREDENTIALS_KEY: string;
  OPERATOR_KEY: string;
  DATABASE_PASSWORD: string;
}

/** The four services as processes beside each other, on a database that is brought to the newest schema first. */
export async function startPlatform(options: PlatformOptions): Promise<Platform> {
  const folder = await OwnedFolder.claim(options.folder, { keep: true });
  const secrets = keptSecrets(join(folder.path, 'secrets.json'));
  const passwords = Object.fromEntries(
    (['API', 'SCHEDULER', 'SENDER', 'RECEIPTS'] as const).map((role) => [`DATABASE_PASSWORD_${role}`, secrets.DATABASE_PASSWORD]),
  );
  const runMigration = async (): Promise<void> => {
    await migrate(options.servers.DATABASE_URL, { env: passwords });
  };
  if (options.withoutMigration !== true) await runMigration();

  const services: ServiceProcess[] = [];
  for (const service of ['api', 'scheduler', 'sender', 'receipts'] as const) {
    const count = options.instances?.[service] ?? 1;
    for (let index = 1; index <= count; index++) {
      const name = count === 1 ? service : `${service}-${index}`;
      services.push(
        await ServiceProcess.create(folder, service, name, {
          KAFKA_BROKERS: options.servers.KAFKA_BROKERS,
          REDIS_URL: options.servers.REDIS_URL,
          DATABASE_URL: roleUrl(options.servers.DATABASE_URL, service, secrets.DATABASE_PASSWORD),
          TOPIC_PREFIX: options.topicPrefix ?? 'punctual.',
          REDIS_PREFIX: options.redisPrefix ?? 'punctual:',
          WHATSAPP_TEST_URL: options.simulatorUrl,
          ID_KEY: secrets.ID_KEY,
          TOKEN_KEY: secrets.TOKEN_KEY,
          CREDENTIALS_KEY: secrets.CREDENTIALS_KEY,
          OPERATOR_KEY: secrets.OPERATOR_KEY,
          ...options.settings,
        }),
      );
    }
  }
  const of = (service: ServiceName): ServiceProcess[] => services.filter((one) => one.service === service);
  const untilReady = async (): Promise<void> => {
    const told = new ToldWaits();
    await Promise.all(
      services.map(async (service) => {
        await service.untilReady((waitsFor) => {
          const line = told.hear(service.name, waitsFor, performance.now());
          if (line !== undefined) options.progress?.(line);
        });
        options.progress?.(`${service.name} is ready`);
      }),
    );
  };
  const stop = async (): Promise<void> => {
    await Promise.all(services.map((service) => service.stop()));
    folder.release();
  };

  for (const service of services) service.start();
  try {
    if (options.withoutWaiting !== true) await untilReady();
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    apiUrl: of('api')[0]!.url,
    receiptsUrl: of('receipts')[0]!.url,
    operatorKey: secrets.OPERATOR_KEY,
    services,
    of,
    migrate: runMigration,
    untilReady,
    stop,
  };
}

/** The keys of an installation must outlive its processes: ids and tokens are derived from them. */
function keptSecrets(file: string): Secrets {
  if (existsSync(file)) return JSON.parse(readFileSync(file, 'utf8')) as Secrets;
  const key = (): string => randomBytes(32).toString('base64');
  const secrets = {
    ID_KEY: key(),
    TOKEN_KEY: key(),
    CREDENTIALS_KEY: key(),
    OPERATOR_KEY: randomBytes(24).toString('base64url'),
    DATABASE_PASSWORD: randomBytes(18).toString('base64url'),
  };
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, JSON.stringify(secrets, null, 2), { mode: 0o600 });
  return secrets;
}
