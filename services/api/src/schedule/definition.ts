import type { MessageContent } from '#contracts/content';
import type { ResolutionRule } from '#time/resolve-local-time';

export type Mode = 'test' | 'live';
export type Category = 'marketing' | 'utility' | 'authentication';
export type OnUncertain = 'leave' | 'resend';

/** The one slot of a one-off: the time that was asked for and what was derived from it, kept side by side. */
export interface OnceSlot {
  slot: 'once';
  timeZone: string;
  /** Wall clock as asked for, without offset; never rewritten. */
  local: string;
  /** Wall clock at the instant, with offset. */
  resolvedLocal: string;
  dueAtMs: number;
  validUntilMs: number | null;
  rule: ResolutionRule;
  tzdb: string;
  note: string | null;
}

export interface Warning {
  code: 'category_assumed' | 'template_unknown' | 'service_window' | 'parameter_missing';
  pointer: string;
  detail: string;
}

/** All that a revision says. Ids are UUIDs in their text form. */
export interface ScheduleDefinition {
  number: { id: string; name: string; providerIdentity: string; channel: 'whatsapp' | 'sms'; ratePerSecond: number };
  category: Category;
  content: MessageContent;
  audience: { id: string; inline: boolean; accepted: number; rejected: number; duplicates: number; chunkCount: number };
  slot: OnceSlot;
  priority: number;
  onUncertain: OnUncertain;
  retryDelaysMs: number[];
  labels: Record<string, string>;
  warnings: Warning[];
  /** The customer's own words: the request's members without `recipients`. */
  asked: Record<string, unknown>;
}
