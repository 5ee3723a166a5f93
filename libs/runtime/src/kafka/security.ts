import { readFileSync } from 'node:fs';
import { Secret } from '../secret';

export interface KafkaSecurity {
  /** PEM text. */
  ca?: string;
  certificate?: string;
  key?: Secret;
  /** SCRAM-SHA-512. */
  username?: string;
  password?: Secret;
}

/**
 * How to talk to brokers that want TLS or a password, the same for every service: KAFKA_TLS_CA_FILE, KAFKA_TLS_CERTIFICATE_FILE
 * and KAFKA_TLS_KEY_FILE (PEM, as Strimzi's secrets are mounted), KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD (SCRAM-SHA-512).
 * None of them set: plain text.
 */
export function kafkaSecurity(env: NodeJS.ProcessEnv = process.env): KafkaSecurity {
  const file = (variable: string) => (env[variable] ? readFileSync(env[variable], 'utf8') : undefined);
  const key = file('KAFKA_TLS_KEY_FILE');
  return {
    ca: file('KAFKA_TLS_CA_FILE'),
    certificate: file('KAFKA_TLS_CERTIFICATE_FILE'),
    key: key === undefined ? undefined : new Secret(key),
    username: env.KAFKA_SASL_USERNAME || undefined,
    password: env.KAFKA_SASL_PASSWORD ? new Secret(env.KAFKA_SASL_PASSWORD) : undefined,
  };
}
