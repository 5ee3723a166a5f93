import { bucketOf, formatId, newUuid, runId, uuidBytes, uuidText } from '#contracts/ids';
import type { ApiParts } from './api-parts';
import type { Answer, Call, Outcome } from './call';
import { findNumber, type NumberRow } from './postgres/numbers';
import { prepareAudience } from './prepare-audience';
import { refuse } from './problem/problem-table';
import type { CreateScheduleBody } from './request/schedule-request';
import { decide } from './schedule/decide';
import { duplicateHash } from './schedule/duplicate-hash';
import { evolve } from './schedule/evolve';
import { planSchedule, type NumberFacts } from './schedule/plan-schedule';
import { initialState } from './schedule/schedule-state';
import { NOTHING_LIVE, recipientViews, scheduleView } from './schedule/schedule-view';
import { writeSchedule } from './write-schedule';

export async function createSchedule(parts: ApiParts, call: Call<unknown, unknown, CreateScheduleBody>): Promise<Outcome> {
  const { caller, body, nowMs } = call;
  const [number, audience] = await Promise.all([
    findNumber(parts.database, caller.tenantId, body.from.number),
    prepareAudience(parts, caller.tenantId, body, nowMs),
  ]);
  const plan = planSchedule(body, { nowMs, number: number && numberFacts(number), audience, keptSlot: null });
  if (!plan.ok) return refuse('request_invalid', { errors: plan.faults });
  if ('faults' in audience) return refuse('request_invalid', { errors: audience.faults });

  const id = newUuid(nowMs);
  const decision = decide(
    {
      name: 'request',
      atMs: nowMs,
      by: caller.actor,
      scheduleId: uuidText(id),
      tenantId: caller.tenantId,
      mode: caller.mode,
      externalId: body.externalId ?? null,
      runId: runId(bucketOf(nowMs), id, 'once').toString('hex'),
      definition: plan.definition,
    },
    initialState,
  );
  if (decision.outcome !== 'happened') throw new Error(`a new schedule was not accepted: ${JSON.stringify(decision)}`);
  const state = evolve(initialState, decision.event);
  const view = scheduleView(state, NOTHING_LIVE);
  const answer: Answer = {
    status: 201,
    headers: { location: `/v1/schedules/${formatId('sch', id)}`, etag: `"${state.version}"` },
    body: body.recipients ? { ...view, recipients: recipientViews(audience.results, body.recipients, state.runId) } : view,
  };
  const refused = await writeSchedule(parts, call, {
    event: decision.event,
    state,
    answer,
    audience: audience.sealed,
    duplicateHash: duplicateHash(plan.definition, audience.setHash, body.allowDuplicate ?? false),
  });
  if (!refused) return answer;
  if ('conflict' in refused)
    throw new Error(`the id of a new schedule is taken: ${formatId('sch', uuidBytes(state.scheduleId))}`);
  return refused;
}

export function numberFacts(row: NumberRow): NumberFacts {
  return {
    id: row.id,
    name: row.name,
    providerIdentity: row.provider_identity,
    channel: row.channel,
    ratePerSecond: row.rate_per_second,
  };
}
