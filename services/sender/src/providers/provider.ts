import type { Recipient } from '#contracts/audience-chunk';
import type { MessageContent } from '#contracts/content';
import type { Secret } from '#runtime/secret';
import type { ProviderAnswer } from './answer';

/** What an adapter must know of a number to call its provider. */
export interface ProviderNumber {
  numberId: string;
  mode: 'test' | 'live';
  providerNumberId: string;
  accessToken: Secret;
}

export interface SendCall {
  number: ProviderNumber;
  body: string;
  /** Monotonic: no answer is waited for after it. */
  deadlineAt: number;
  /** Monotonic: if nothing was written by then, the call is given up. */
  writeBy: number;
  /** Asked in the tick that writes the socket; false, and not one byte leaves. */
  mayWrite(): boolean;
}

export interface SendOutcome {
  answer: ProviderAnswer;
  /** Monotonic, of the tick that wrote the socket; null when nothing was written. */
  writtenAt: number | null;
  answeredAt: number;
}

export type Health = { sendable: true } | { sendable: false; detail: string } | { sendable: null; detail: string };

/** One provider. `build` and the classifying are pure; `send` makes exactly one try, and never repeats it by itself. */
export interface ProviderAdapter {
  build(
    content: MessageContent,
    recipient: Pick<Recipient, 'to' | 'parameters'>,
    token: string,
  ): { ok: true; body: string } | { ok: false; missing: string[] };
  send(call: SendCall): Promise<SendOutcome>;
  /** Opens connections for calls to come, so that the first one does not wait for a handshake. */
  warm(mode: 'test' | 'live', connections: number): void;
  /** What the provider says about a number that is held; null for sendable where it does not tell. */
  health(number: ProviderNumber): Promise<Health>;
  close(): Promise<void>;
}
