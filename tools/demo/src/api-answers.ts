/** The parts of the API's answers that the demo looks at. */
export interface Audience {
  id: string;
  accepted: number;
  rejected: number;
  duplicates: number;
  rejectedSample: Array<{ row: number; value: string; code: string; reason: string }>;
}

export interface Schedule {
  id: string;
  status: string;
  version: number;
  next: Array<{ runId: string; timeZone: string; local: string; at: string; rule: string; recipients: number }>;
  forecast: { firstSendAt: string; lastSendAt: string; ratePerSecond: number };
}

export interface Run {
  id: string;
  status: string;
  outcome: string | null;
  total: number;
  counts: Record<string, number>;
  ratePerSecond: { allowed: number; achieved: number | null };
}

export interface CancelReceipt {
  outcome: string;
  total: number;
  prevented: number;
  inFlight: number;
  submitted: number;
  uncertain: number;
  ended: number;
}

export interface Message {
  id: string;
  ref: string | null;
  to: string;
  status: string;
  reason: string | null;
  dueAt: string;
  attempts: number;
  error: { code: string; text: string } | null;
  delay: { totalMs: number; waits: Array<{ reason: string; ms: number }> } | null;
}

export interface Page<T> {
  data: T[];
  nextCursor: string | null;
}

export interface TimelineEntry {
  at: string;
  providerAt: string | null;
  what: string;
  by: string;
  detail: unknown;
}
