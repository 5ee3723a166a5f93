import { readDuration } from '#time/duration';
import { resolveValidity } from '#time/resolve-validity';
import { resolveWhen, type ResolvedTime } from '#time/resolve-when';
import type { TimeFault } from '#time/time-fault';
import { jsonPointer } from '../problem/json-pointer';
import type { Fault } from '../problem/problem-table';
import type { CreateScheduleBody } from '../request/schedule-request';
import { contentFaults, placeholdersIn } from './check-content';
import type { Category, OnceSlot, ScheduleDefinition, Warning } from './definition';

export interface NumberFacts {
  id: string;
  name: string;
  providerIdentity: string;
  channel: 'whatsapp' | 'sms';
  ratePerSecond: number;
}

/** A frozen audience. `missing`: per column, how many recipients have no value, and the first of them. */
export interface AudienceFacts {
  id: string;
  inline: boolean;
  accepted: number;
  rejected: number;
  duplicates: number;
  chunkCount: number;
  columns: readonly string[];
  missing: Readonly<Record<string, { count: number; firstRow: number }>>;
}

export interface PlanFacts {
  nowMs: number;
  number: NumberFacts | null;
  audience: { ready: AudienceFacts } | { faults: Fault[] };
  /** A revision that leaves `when` alone keeps the slot, also one that is due by now. */
  keptSlot: OnceSlot | null;
}

export type Plan = { ok: true; definition: ScheduleDefinition } | { ok: false; faults: Fault[] };

export const DEFAULT_PRIORITY = 5;
export const DEFAULT_RETRY_DELAYS_MS = [120_000, 240_000, 480_000];
/** A code that comes late is worth nothing and looks like an attack. */
const AUTHENTICATION_VALIDITY = 'PT1H';
const LONGEST_RETRY_DELAY_MS = 86_400_000;

/** Everything that a request says, resolved and checked; or all that is wrong with it, at once. */
export function planSchedule(asked: CreateScheduleBody, facts: PlanFacts): Plan {
  const faults: Fault[] = [];
  const warnings: Warning[] = [];

  if (!facts.number) {
    faults.push({
      pointer: '#/from/number',
      code: 'number_unknown',
      detail: 'no number has this name',
      given: asked.from.number,
    });
  }
  const category = planCategory(asked, faults, warnings);
  const slot = planSlot(asked, category, facts, faults);
  const retryDelaysMs = planRetry(asked, faults);
  checkContent(asked, facts, faults, warnings);
  if ('faults' in facts.audience) faults.push(...facts.audience.faults);
  if (faults.length > 0 || !facts.number || !slot || 'faults' in facts.audience) return { ok: false, faults };

  const { ready } = facts.audience;
  const { recipients: _personal, ...words } = asked;
  return {
    ok: true,
    definition: {
      number: facts.number,
      category,
      content: asked.content,
      audience: {
        id: ready.id,
        inline: ready.inline,
        accepted: ready.accepted,
        rejected: ready.rejected,
        duplicates: ready.duplicates,
        chunkCount: ready.chunkCount,
      },
      slot,
      priority: asked.priority ?? DEFAULT_PRIORITY,
      onUncertain: asked.onUncertain ?? 'leave',
      retryDelaysMs,
      labels: asked.labels ?? {},
      warnings,
      asked: words,
    },
  };
}

function planCategory(asked: CreateScheduleBody, faults: Fault[], warnings: Warning[]): Category {
  if (asked.category) return asked.category;
  if ('text' in asked.content) {
    faults.push({
      pointer: '#/category',
      code: 'required',
      detail: 'a text needs its category: suppressions and windows depend on it',
      allowed: ['marketing', 'utility', 'authentication'],
    });
  } else {
    warnings.push({
      code: 'category_assumed',
      pointer: '#/category',
      detail: 'marketing is assumed, since the definition of this template is not known here',
    });
  }
  return 'marketing';
}

function planSlot(asked: CreateScheduleBody, category: Category, facts: PlanFacts, faults: Fault[]): OnceSlot | null {
  let time: ResolvedTime;
  if (facts.keptSlot) time = facts.keptSlot;
  else {
    const answer = resolveWhen(asked.when, facts.nowMs);
    if (!answer.ok) {
      faults.push(...answer.faults.map((fault) => timeFault(fault, ['when'], asked.when)));
      return null;
    }
    time = answer.time;
  }
  const wanted = asked.validity ?? (category === 'authentication' ? { for: AUTHENTICATION_VALIDITY } : undefined);
  const validity = resolveValidity(wanted, time, asked.when.timeZone !== undefined);
  if (!validity.ok) {
    faults.push(...validity.faults.map((fault) => timeFault(fault, ['validity'], asked.validity)));
    return null;
  }
  const { timeZone, local, resolvedLocal, dueAtMs, rule, tzdb, note } = time;
  return { slot: 'once', timeZone, local, resolvedLocal, dueAtMs, validUntilMs: validity.validUntilMs, rule, tzdb, note };
}

function timeFault(fault: TimeFault, above: string[], given: unknown): Fault {
  const { member, ...rest } = fault;
  const value = (given as Record<string, unknown> | undefined)?.[member[0]!];
  return { pointer: jsonPointer([...above, ...member]), ...rest, ...(value === undefined ? {} : { given: value }) };
}

function planRetry(asked: CreateScheduleBody, faults: Fault[]): number[] {
  if (!asked.retry) return DEFAULT_RETRY_DELAYS_MS;
  return asked.retry.delays.map((delay, index) => {
    const ms = readDuration(delay);
    if (ms === null || ms > LONGEST_RETRY_DELAY_MS) {
      faults.push({
        pointer: `#/retry/delays/${index}`,
        code: 'duration_invalid',
        detail: 'not a positive ISO 8601 duration of at most a day',
        given: delay,
        allowed: 'PT2M, PT1H30M and the like',
      });
    }
    return ms ?? 0;
  });
}

function checkContent(asked: CreateScheduleBody, facts: PlanFacts, faults: Fault[], warnings: Warning[]): void {
  for (const { path, code, detail } of contentFaults(asked.content))
    faults.push({ pointer: jsonPointer(['content', ...path]), code, detail });
  if ('template' in asked.content) {
    warnings.push({
      code: 'template_unknown',
      pointer: '#/content/template/name',
      detail: 'the definition of this template is not known here: only the shape was checked, not the counts of its parameters',
    });
  } else {
    warnings.push({
      code: 'service_window',
      pointer: '#/content/text',
      detail:
        'WhatsApp delivers a text only within 24 hours after the recipient wrote; to others it fails as outside_service_window',
    });
  }
  if ('faults' in facts.audience) return;
  const { columns, missing } = facts.audience.ready;
  const pointer = asked.audienceId === undefined ? '#/recipients' : '#/audienceId';
  for (const name of placeholdersIn(asked.content)) {
    if (!columns.includes(name)) {
      faults.push({
        pointer,
        code: 'parameter_missing',
        detail: `the content uses {{${name}}}, which no recipient has`,
        allowed: columns.slice(0, 50),
      });
      continue;
    }
    const gap = missing[name];
    if (!gap || gap.count === 0) continue;
    const detail = `${gap.count} recipients have no ${name}, the first in row ${gap.firstRow}`;
    if (asked.onInvalidRecipient === 'skip') {
      warnings.push({ code: 'parameter_missing', pointer, detail: `${detail}; their messages will be refused` });
    } else {
      faults.push({ pointer, code: 'parameter_missing', detail, hint: '"onInvalidRecipient": "skip" sends to the others' });
    }
  }
}
