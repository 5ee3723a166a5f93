import { formatId, newUuid, parseId, uuidText } from '#contracts/ids';
import type { ApiParts } from './api-parts';
import { prepareInlineAudience } from './audience/seal-inline-audience';
import { findAudience } from './postgres/audiences';
import type { InlineAudience } from './postgres/schedules';
import type { Fault } from './problem/problem-table';
import type { CreateScheduleBody } from './request/schedule-request';
import { missingParameters, recipientFaults, splitByParameters, type RecipientResult } from './schedule/inline-recipients';
import type { AudienceFacts } from './schedule/plan-schedule';

/** Who gets it: either frozen and known, or all that is wrong with it. */
export type PreparedAudience =
  { ready: AudienceFacts; setHash: Buffer; sealed: InlineAudience | null; results: RecipientResult[] } | { faults: Fault[] };

export async function prepareAudience(
  parts: ApiParts,
  tenantId: string,
  asked: CreateScheduleBody,
  nowMs: number,
): Promise<PreparedAudience> {
  if (asked.recipients && asked.audienceId !== undefined) {
    return oneFault('#/audienceId', 'ambiguous', 'give recipients or audienceId, not both');
  }
  if (asked.recipients) return sealInline(parts, asked, asked.recipients, nowMs);
  if (asked.audienceId === undefined)
    return oneFault('#/recipients', 'required', 'give recipients, or the audienceId of an upload');
  return findUploaded(parts, tenantId, asked, asked.audienceId);
}

function sealInline(
  parts: ApiParts,
  asked: CreateScheduleBody,
  recipients: NonNullable<CreateScheduleBody['recipients']>,
  nowMs: number,
): PreparedAudience {
  if (asked.digits && asked.defaultCountry) {
    return oneFault('#/defaultCountry', 'ambiguous', 'numbers without plus are international or national, not both');
  }
  const { usable, rejected } = splitByParameters(recipients, asked.content);
  const prepared = prepareInlineAudience(usable, {
    ...(asked.digits ? { digits: asked.digits } : {}),
    ...(asked.defaultCountry ? { defaultCountry: asked.defaultCountry } : {}),
    distinctBy: asked.distinctBy ?? 'number',
    idKey: parts.idKey,
  });
  const results = [...rejected, ...prepared.results.map(withMember)].sort((a, b) => a.index - b.index);
  const faults = recipientFaults(results);
  if (faults.length > 0 && asked.onInvalidRecipient !== 'skip') return { faults };

  const accepted = results.filter(({ result }) => result === 'accepted').length;
  if (accepted === 0) return oneFault('#/recipients', 'no_recipients', 'none of the recipients can be used');
  const acceptedIndexes = new Set(results.filter(({ result }) => result === 'accepted').map(({ index }) => index));
  const facts = {
    id: uuidText(newUuid(nowMs)),
    accepted,
    rejected: faults.length,
    duplicates: results.length - accepted - faults.length,
    columns: prepared.columns,
    missing: missingParameters(
      usable.filter(({ index }) => acceptedIndexes.has(index)),
      prepared.columns,
    ),
  };
  return {
    ready: { ...facts, inline: true, chunkCount: prepared.chunks.length },
    setHash: prepared.setHash,
    sealed: { ...facts, setHash: prepared.setHash, chunks: prepared.chunks },
    results,
  };
}

type Prepared = ReturnType<typeof prepareInlineAudience>['results'][number];

function withMember(result: Prepared): RecipientResult {
  if (result.result !== 'rejected') return result;
  const { code, detail } = result.error;
  return { ...result, error: { code, detail, member: memberAtFault(code) } };
}

function memberAtFault(code: string): string {
  if (code.startsWith('ref_')) return 'ref';
  if (code.startsWith('parameter_')) return 'parameters';
  return code.startsWith('time_zone_') ? 'timeZone' : 'to';
}

async function findUploaded(
  parts: ApiParts,
  tenantId: string,
  asked: CreateScheduleBody,
  audienceId: string,
): Promise<PreparedAudience> {
  const misplaced = (['distinctBy', 'digits', 'defaultCountry'] as const).filter((member) => asked[member] !== undefined);
  if (misplaced.length > 0) {
    return {
      faults: misplaced.map((member) => ({
        pointer: `#/${member}`,
        code: 'not_allowed_here',
        detail: 'an uploaded audience was read already; say this with the upload',
      })),
    };
  }
  const id = parseId('aud', audienceId);
  const found = id ? await findAudience(parts.database, tenantId, uuidText(id)) : null;
  if (!found) return oneFault('#/audienceId', 'audience_unknown', 'there is no such audience', { given: audienceId });
  if (found.status !== 'ready') {
    return oneFault('#/audienceId', 'audience_not_ready', `the audience ${formatId('aud', id!)} is ${found.status}`);
  }
  if (found.facts.accepted === 0) return oneFault('#/audienceId', 'no_recipients', 'none of its rows could be used');
  return { ready: found.facts, setHash: found.setHash, sealed: null, results: [] };
}

function oneFault(pointer: string, code: string, detail: string, more: Partial<Fault> = {}): PreparedAudience {
  return { faults: [{ pointer, code, detail, ...more }] };
}
