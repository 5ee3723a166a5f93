import { againAfterConflict } from './again-after-conflict';
import type { ApiParts } from './api-parts';
import type { Answer, Call, Outcome } from './call';
import { numberFacts } from './create-schedule';
import { liveFacts, scheduleByName } from './find-schedule';
import { rememberAnswer } from './postgres/answers';
import { findAudience } from './postgres/audiences';
import { findNumber } from './postgres/numbers';
import { countClaims, type FoundSchedule } from './postgres/schedules';
import { prepareAudience, type PreparedAudience } from './prepare-audience';
import { refuse } from './problem/problem-table';
import type { CreateScheduleBody, ReviseScheduleBody } from './request/schedule-request';
import { decide } from './schedule/decide';
import { duplicateHash } from './schedule/duplicate-hash';
import { evolve } from './schedule/evolve';
import { planSchedule } from './schedule/plan-schedule';
import { recipientViews, scheduleView } from './schedule/schedule-view';
import { writeSchedule } from './write-schedule';

type ReviseCall = Call<{ id: string }, unknown, ReviseScheduleBody>;

/** Each member given replaces the old one as a whole; the result is checked as if it were new. */
export async function reviseSchedule(parts: ApiParts, call: ReviseCall): Promise<Outcome> {
  // `If-Match: *` means any version: then a change that came in between is no reason to refuse.
  const isConflict = (outcome: Outcome) =>
    call.ifMatch === 'any' && 'refused' in outcome && outcome.refused === 'version_mismatch';
  return againAfterConflict(() => reviseOnce(parts, call), isConflict);
}

async function reviseOnce(parts: ApiParts, call: ReviseCall): Promise<Outcome> {
  const found = await scheduleByName(parts, call.caller.tenantId, call.params.id);
  if (!found) return refuse('schedule_not_found');
  const { state } = found;
  if (call.ifMatch !== null && call.ifMatch !== 'any' && call.ifMatch !== state.version) return versionMismatch(state.version);

  const asked = merge(state.definition.asked, call.body);
  const [number, audience] = await Promise.all([
    findNumber(parts.database, call.caller.tenantId, asked.from.number),
    audienceFor(parts, call, found, asked),
  ]);
  const plan = planSchedule(asked, {
    nowMs: call.nowMs,
    number: number && numberFacts(number),
    audience,
    keptSlot: call.body.when ? null : state.definition.slot,
  });
  if (!plan.ok) return refuse('request_invalid', { errors: plan.faults });
  if ('faults' in audience) return refuse('request_invalid', { errors: audience.faults });

  const decision = decide(
    {
      name: 'revise',
      atMs: call.nowMs,
      by: call.caller.actor,
      definition: plan.definition,
      expectedVersion: call.ifMatch ?? 'any',
      completed: found.completedAtMs !== null,
    },
    state,
  );
  if (decision.outcome === 'refused') {
    return decision.reason === 'version_mismatch' ? versionMismatch(decision.currentVersion) : refuse('schedule_ended');
  }
  let revised = state;
  if (decision.outcome === 'happened') {
    revised = evolve(state, decision.event);
    const refused = await writeSchedule(parts, call, {
      event: decision.event,
      state: revised,
      answer: null,
      audience: audience.sealed,
      duplicateHash: duplicateHash(plan.definition, audience.setHash, asked.allowDuplicate ?? false),
    });
    if (refused) {
      if (!('conflict' in refused)) return refused;
      const now = await scheduleByName(parts, call.caller.tenantId, call.params.id);
      return versionMismatch(now?.state.version ?? state.version);
    }
  }
  return answerRevision(parts, call, { ...found, state: revised }, audience);
}

async function answerRevision(
  parts: ApiParts,
  call: ReviseCall,
  found: FoundSchedule,
  audience: Extract<PreparedAudience, { results: unknown }>,
): Promise<Outcome> {
  const { state } = found;
  // Counted after the commit: what is not claimed by now follows the new revision.
  const alreadyAtGate = await countClaims(parts.database, Buffer.from(state.runId, 'hex'));
  const willUseRevision = Math.max(0, state.definition.audience.accepted - alreadyAtGate);
  const recipients = call.body.recipients;
  const answer: Answer = {
    status: 200,
    headers: { etag: `"${state.version}"` },
    body: {
      ...scheduleView(state, liveFacts(found)),
      ...(recipients ? { recipients: recipientViews(audience.results, recipients, state.runId) } : {}),
      change: { alreadyAtGate, willUseRevision },
    },
  };
  return rememberAnswer(parts.database, call, answer);
}

function versionMismatch(currentVersion: number): Outcome {
  return refuse('version_mismatch', { members: { currentVersion }, headers: { etag: `"${currentVersion}"` } });
}

/** Members about the audience belong together: a new audience comes without the old one's declarations. */
const ABOUT_AUDIENCE = ['audienceId', 'recipients', 'distinctBy', 'digits', 'defaultCountry', 'onInvalidRecipient'] as const;

export function merge(before: Record<string, unknown>, change: ReviseScheduleBody): CreateScheduleBody {
  const merged: Record<string, unknown> = { ...before };
  if (change.audienceId !== undefined || change.recipients) for (const member of ABOUT_AUDIENCE) delete merged[member];
  for (const [member, value] of Object.entries(change)) {
    if (value === null) delete merged[member];
    else if (value !== undefined) merged[member] = value;
  }
  return merged as CreateScheduleBody;
}

/** The new audience, or the one that the schedule has. */
async function audienceFor(
  parts: ApiParts,
  call: ReviseCall,
  found: FoundSchedule,
  asked: CreateScheduleBody,
): Promise<PreparedAudience> {
  if (call.body.audienceId !== undefined || call.body.recipients) {
    return prepareAudience(parts, call.caller.tenantId, asked, call.nowMs);
  }
  const { audience } = found.state.definition;
  const kept = await findAudience(parts.database, call.caller.tenantId, audience.id);
  if (!kept) throw new Error(`the audience of schedule ${found.state.scheduleId} is gone`);
  return { ready: { ...kept.facts, inline: audience.inline }, setHash: kept.setHash, sealed: null, results: [] };
}
