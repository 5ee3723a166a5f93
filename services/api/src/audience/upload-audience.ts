import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isSupportedCountry } from 'libphonenumber-js/max';
import { formatId, uuidBytes } from '#contracts/ids';
import { answerRecord, type Answer, type Call, type Outcome } from '../call';
import { findAnswer, repeatedBy } from '../postgres/answers';
import { refuse, type Fault, type ProblemCode, type Refusal } from '../problem/problem-table';
import type { ApiParts } from '../api-parts';
import type { AudienceParts } from './audience-parts';
import { audienceView } from './audience-view';
import { readUploadBody } from './read-upload-body';
import { uploadMetrics } from './upload-metrics';
import { storeUpload, type StoredUpload } from './storing/store-upload';
import { UploadRefused, type FilePlace, type UploadFault } from './storing/upload-refused';

export interface UploadQuery {
  name?: string;
  defaultCountry?: string;
  digits?: 'international';
  distinctBy?: 'number' | 'ref';
}

const BUSY_RETRY_SECONDS = '5';

/**
 * One request that uploads an audience. Its body can be read only once, but the step may be asked again while another request
 * with the same Idempotency-Key commits: what was read is kept between the two.
 *
 * A repeat is recognised by its content: it is read to its end and hashed, not parsed. So a key is answered only to who sends
 * the same file with the same parameters, as on every other endpoint.
 */
export class AudienceUpload {
  private stored: StoredUpload | undefined;
  private sealed = false;
  private consumed = false;

  constructor(
    private readonly parts: ApiParts,
    private readonly audiences: AudienceParts,
    private readonly request: IncomingMessage,
  ) {}

  async step(call: Call<unknown, UploadQuery>): Promise<Outcome> {
    if (this.stored) return this.seal(call, this.stored);
    const refused = this.refuseByHeaders(call.query);
    if (refused) return refused;
    // A repeat whose first answer was forgotten just now: its file was read for comparison and is gone.
    if (this.consumed) return refuse('unavailable', { headers: { 'retry-after': '1' } });
    const slot = this.audiences.slots.take(call.caller.tenantId);
    if (typeof slot === 'string') return this.busy(slot);
    this.consumed = true;
    try {
      if (call.idempotency && (await findAnswer(this.parts.database, call.caller.tenantId, call.idempotency))) {
        call.idempotency.requestHash = withContent(call.idempotency.requestHash, await this.hashBody());
        return { repeated: 'done' };
      }
      this.stored = await this.store(call);
      if (call.idempotency) {
        call.idempotency.requestHash = withContent(call.idempotency.requestHash, this.stored.contentHash!);
      }
      return await this.seal(call, this.stored);
    } catch (error) {
      if (error instanceof UploadRefused) return refusalOf(error);
      throw error;
    } finally {
      slot();
    }
  }

  private async store(call: Call<unknown, UploadQuery>): Promise<StoredUpload> {
    const { clock } = this.audiences;
    const startMs = clock.monotonicMs();
    let outcome = 'failed';
    try {
      const stored = await storeUpload(this.upload(call), this.audiences);
      outcome = 'stored';
      uploadMetrics.rows.add(stored.accepted, { result: 'accepted' });
      uploadMetrics.rows.add(stored.duplicates, { result: 'duplicate' });
      uploadMetrics.rows.add(stored.rejected, { result: 'rejected' });
      return stored;
    } catch (error) {
      if (error instanceof UploadRefused) outcome = error.code;
      throw error;
    } finally {
      uploadMetrics.seconds.record((clock.monotonicMs() - startMs) / 1_000, { outcome });
    }
  }

  /** After the answer: what was stored and did not become an audience goes. */
  async close(): Promise<void> {
    // If this fails, the sweep for abandoned uploads removes it.
    if (this.stored && !this.sealed) await this.audiences.store.discard(this.stored.id).catch(() => undefined);
  }

  private async seal(call: Call, stored: StoredUpload): Promise<Outcome> {
    const id = formatId('aud', uuidBytes(stored.id));
    const answer: Answer = { status: 201, headers: { location: `/v1/audiences/${id}` }, body: audienceView(stored) };
    const kept = call.idempotency && {
      record: answerRecord(call, answer),
      requestHash: call.idempotency.requestHash,
      at: new Date(call.nowMs),
    };
    try {
      this.sealed = await this.audiences.store.seal(stored.id, call.caller.tenantId, stored, kept);
    } catch (error) {
      const repeated = repeatedBy(error);
      if (repeated) return repeated;
      throw error;
    }
    if (!this.sealed) throw new Error('the upload was discarded as abandoned while it went on');
    return answer;
  }

  private busy(why: 'all_taken' | 'tenant_has_enough'): Refusal {
    const { most, mostOfTenant } = this.audiences.slots;
    const headers = { 'retry-after': BUSY_RETRY_SECONDS };
    if (why === 'all_taken') {
      return refuse('unavailable', { detail: `${most} uploads are being read; repeat this one in a few seconds.`, headers });
    }
    return refuse('too_many_uploads', {
      detail: `At most ${mostOfTenant} uploads of a tenant are read at the same time.`,
      headers,
    });
  }

  private refuseByHeaders({ defaultCountry, digits }: UploadQuery): Refusal | null {
    const { headers } = this.request;
    const type = /^\s*text\/csv\s*(?:;(.*))?$/i.exec(headers['content-type'] ?? '');
    const charset = /charset\s*=\s*"?([^";\s]+)/i.exec(type?.[1] ?? '')?.[1];
    if (!type || (charset && !/^(?:utf-?8|us-ascii)$/i.test(charset))) {
      const detail = type ? `charset ${charset} is not read here` : 'an audience is uploaded as CSV';
      return refuse('media_type_unsupported', {
        detail: 'Send `Content-Type: text/csv` with a CSV file in UTF-8.',
        errors: [{ header: 'Content-Type', code: 'media_type_unsupported', detail, allowed: 'text/csv; charset=utf-8' }],
      });
    }
    if (!this.isGzip && !/^(?:identity)?$/i.test(headers['content-encoding']?.trim() ?? '')) {
      return refuse('media_type_unsupported', {
        detail: 'Send the CSV file as it is, or compressed with gzip.',
        errors: [
          { header: 'Content-Encoding', code: 'encoding_unsupported', detail: 'is not read here', allowed: ['gzip', 'identity'] },
        ],
      });
    }
    if (Number(headers['content-length'] ?? 0) > this.audiences.limits.maxBytes) {
      const most = Math.floor(this.audiences.limits.maxBytes / 1_048_576);
      return refuse('upload_too_large', {
        detail: `An upload has at most ${most} MiB; make several of this file.`,
        errors: [{ header: 'Content-Length', code: 'upload_too_large', detail: `at most ${this.audiences.limits.maxBytes}` }],
      });
    }
    const faults: Fault[] = [];
    if (defaultCountry !== undefined && !isSupportedCountry(defaultCountry)) {
      const detail = 'is no country with phone numbers (ISO 3166-1, two capital letters)';
      faults.push({ parameter: 'defaultCountry', code: 'country_unknown', detail, given: defaultCountry });
    }
    if (defaultCountry !== undefined && digits !== undefined) {
      const detail = 'numbers without plus are international or national, not both';
      faults.push({ parameter: 'defaultCountry', code: 'ambiguous', detail });
    }
    return faults.length > 0 ? refuse('request_invalid', { errors: faults }) : null;
  }

  private get isGzip(): boolean {
    return /^\s*(?:x-)?gzip\s*$/i.test(this.request.headers['content-encoding'] ?? '');
  }

  private upload(call: Call<unknown, UploadQuery>): Parameters<typeof storeUpload>[0] {
    const { name, defaultCountry, digits, distinctBy } = call.query;
    return {
      tenantId: call.caller.tenantId,
      name: name ?? null,
      body: this.body(),
      rules: { distinctBy: distinctBy ?? 'number', ...(digits ? { digits } : {}), ...(defaultCountry ? { defaultCountry } : {}) },
      maxBytes: this.audiences.limits.maxBytes,
      maxRecipients: this.audiences.limits.maxRecipients,
      hashed: call.idempotency !== null,
    };
  }

  private body(): AsyncGenerator<Buffer> {
    return readUploadBody(this.request, { gzip: this.isGzip, stallMs: this.audiences.limits.stallMs });
  }

  private async hashBody(): Promise<Buffer> {
    const hash = createHash('sha256');
    let bytes = 0;
    for await (const data of this.body()) {
      bytes += data.length;
      // No file of that size was taken under this key, so it is another one, however it goes on.
      if (bytes > this.audiences.limits.maxBytes) break;
      hash.update(data);
    }
    return hash.digest();
  }
}

function withContent(requestHash: Buffer, contentHash: Buffer): Buffer {
  return createHash('sha256').update(requestHash).update(contentHash).digest();
}

const PROBLEM_OF: Partial<Record<UploadFault, ProblemCode>> = {
  upload_too_large: 'upload_too_large',
  upload_too_many_rows: 'upload_too_large',
  upload_interrupted: 'upload_interrupted',
  upload_stalled: 'upload_stalled',
};

function refusalOf({ code, detail, place }: UploadRefused): Refusal {
  return refuse(PROBLEM_OF[code] ?? 'upload_invalid', { detail, errors: [{ ...whereIn(code, place), code, detail }] });
}

/** RFC 7111: the place in a text/csv body is a row, or a cell as row and column. */
function whereIn(code: UploadFault, { row, column }: FilePlace): Pick<Fault, 'pointer' | 'header'> {
  if (code === 'compression_invalid') return { header: 'Content-Encoding' };
  if (row === undefined) return { pointer: '#' };
  return { pointer: column === undefined ? `#row=${row}` : `#cell=${row},${column}` };
}
