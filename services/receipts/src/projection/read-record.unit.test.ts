import { gzipSync } from 'node:zlib';
import { Codec } from '#contracts/codec';
import { TOKEN_KEY, webhook, webhookBody } from '../../test-support/stage';
import { headersOf } from '../webhooks/pack-body';
import { readRecord } from './read-record';

const codec = new Codec();
const LINE = { wamid: 'wamid.one', status: 'sent', at: 1_782_900_000 };

function read(body: Buffer, isPacked: boolean) {
  const ignored: string[] = [];
  const told = webhook([]);
  const value = codec.encode('WebhookReceived', { ...told.event, body } as never);
  const item = readRecord(codec, TOKEN_KEY, { value, headers: headersOf(isPacked) ?? {} }, (what) => ignored.push(what));
  return { item, ignored };
}

describe('a webhook body', () => {
  it('that begins like gzip, but was not packed here, is one that nothing can be read from', () => {
    for (const body of [Buffer.from([0x1f, 0x8b]), Buffer.from([0x1f, 0x8b, 8, 0, 1, 2, 3]), gzipSync(webhookBody([LINE]))]) {
      const { item, ignored } = read(body, false);
      expect(item).toEqual({ about: 'evidence', evidence: [], nameless: [] });
      expect(ignored).toEqual(['body']);
    }
  });

  it('that was packed here is read like any other', () => {
    const plain = read(webhookBody([LINE]), false).item;
    const packed = read(gzipSync(webhookBody([LINE])), true).item;
    expect(plain).toMatchObject({ about: 'evidence', nameless: [{ kind: 'sent' }] });
    expect(packed).toMatchObject({ about: 'evidence', nameless: [{ kind: 'sent' }] });
  });
});
