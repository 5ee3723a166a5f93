import type { NumberConfiguration, Settings } from '../configuration';
import type { TemplateDefinition } from '../graph/template-definitions';
import type { OracleSummary } from '../oracle/oracle';
import type { RuleState } from '../rules/rule-book';
import type { StatusName } from '../webhooks/status-names';
import type { WebhookSummary } from '../webhooks/webhook-engine';

export interface SimulatorSummary extends OracleSummary {
  webhooks: WebhookSummary;
}

/** One message that the provider took on. */
export interface Delivery {
  sequence: number;
  /** ISO 8601 with microseconds. */
  at: string;
  wallMicros: number;
  /** Comparable only with other deliveries of the same simulator process. */
  monotonicMicros: number;
  phoneNumberId: string;
  /** Digits without plus. */
  recipient: string;
  token: string | null;
  messageId: string;
  /** Template name and language (`name/en_US`), or the message type. */
  content: string;
  /** What the caller was told: `accepted`, `graph_error`, `http_error`, `truncated`, `dropped` or `hung`. */
  answer: string;
  /** Statuses whose webhook was answered 200. */
  acknowledged: StatusName[];
}

export interface DeliveryFilter {
  phoneNumberId?: string;
  recipient?: string;
  token?: string;
  /** ISO 8601 or milliseconds since the epoch: arrivals at or after. */
  since?: string | number;
  /** Only deliveries with a greater sequence number. */
  afterSequence?: number;
  limit?: number;
}

/** A send request as it came in and what it was answered: `accepted`, a Graph code, or a kind of failure. */
export interface SeenRequest {
  at: string;
  phoneNumberId: string;
  answer: string;
  /** Parsed; the text itself when it is not JSON. */
  body: unknown;
}

export interface RecipientReport {
  recipient: string;
  count: number;
  deliveries: Delivery[];
}

export interface TokenReport {
  token: string;
  count: number;
  deliveries: Delivery[];
}

export interface ConfigurationReport {
  settings: Settings;
  numbers: NumberConfiguration[];
  templates: TemplateDefinition[];
  rules: RuleState[];
}

export interface RawWebhook {
  /** Without one, the common subscription's. */
  url?: string;
  appSecret?: string;
  /** An object is written as JSON with non-ASCII escaped; a string goes as it is. */
  body: unknown;
  signature?: 'valid' | 'wrong' | 'none';
  headers?: Record<string, string>;
}

export interface RawWebhookAnswer {
  httpStatus: number;
  body: string;
}

export interface StatusOrder {
  /** One of the three names the delivery; the newest that matches. */
  token?: string;
  messageId?: string;
  recipient?: string;
  status: StatusName;
  code?: number;
  timestampShiftSeconds?: number;
}
