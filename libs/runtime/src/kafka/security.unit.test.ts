import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { kafkaSecurity } from './security';

it('reads certificates and credentials, and shows neither key nor password', () => {
  const folder = mkdtempSync(join(tmpdir(), 'security-'));
  try {
    for (const name of ['ca', 'cert', 'key']) writeFileSync(join(folder, name), `PEM of ${name}`);
    const security = kafkaSecurity({
      KAFKA_TLS_CA_FILE: join(folder, 'ca'),
      KAFKA_TLS_CERTIFICATE_FILE: join(folder, 'cert'),
      KAFKA_TLS_KEY_FILE: join(folder, 'key'),
      KAFKA_SASL_USERNAME: 'punctual-sender',
      KAFKA_SASL_PASSWORD: 'hunter2',
    });
    expect([security.ca, security.certificate, security.key?.reveal(), security.username, security.password?.reveal()]).toEqual([
      'PEM of ca',
      'PEM of cert',
      'PEM of key',
      'punctual-sender',
      'hunter2',
    ]);
    expect(inspect(security)).not.toMatch(/PEM of key|hunter2/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

it('is plain text where nothing is set', () => {
  expect(Object.values(kafkaSecurity({})).every((value) => value === undefined)).toBe(true);
});
