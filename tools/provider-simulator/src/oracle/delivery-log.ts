import { STATUS_NAMES, type StatusName } from '../webhooks/status-names';

/** Records in one piece; the oldest piece goes as a whole when the bound is reached. */
const PIECE_RECORDS = 32_768;

/** What the caller was told about a message that the provider took on. */
export const ANSWERS = ['accepted', 'graph_error', 'http_error', 'truncated', 'dropped', 'hung'] as const;
export type AnswerKind = (typeof ANSWERS)[number];

export interface DeliveryEntry {
  monotonicMicros: number;
  wallMicros: number;
  phoneNumberId: string;
  /** Digits of the E.164 number, or a business-scoped user id. */
  recipient: string;
  /** `biz_opaque_callback_data`, or the empty string. */
  token: string;
  answer: AnswerKind;
  /** Template name and language (`name/en_US`), or the message type. */
  content: string;
}

export interface DeliveryRecord extends DeliveryEntry {
  sequence: number;
  /** Statuses whose webhook was answered 200. */
  acknowledged: StatusName[];
}

/** Short texts that repeat (phone number ids, templates), each stored once. */
class Dictionary {
  readonly #numbers = new Map<string, number>();
  readonly texts: string[] = [];

  numberOf(text: string): number {
    const known = this.#numbers.get(text);
    if (known !== undefined) return known;
    this.#numbers.set(text, this.texts.length);
    return this.texts.push(text) - 1;
  }
}

interface Piece {
  monotonic: Float64Array;
  wall: Float64Array;
  /** The digits as a number; negative: minus one minus a place in the dictionary of ids that are not numbers. */
  recipient: Float64Array;
  phoneNumber: Uint32Array;
  content: Uint32Array;
  tokenEnd: Uint32Array;
  answer: Uint8Array;
  acknowledged: Uint8Array;
  tokens: Buffer;
}

/**
 * Every message the provider took on, in the order it did, in typed arrays: 38 bytes and the token each. Keeps the newest
 * `capacity` records; counts per recipient and token live elsewhere and outlast the details.
 */
export class DeliveryLog {
  readonly #pieces = new Map<number, Piece>();
  readonly #phoneNumbers = new Dictionary();
  readonly #contents = new Dictionary();
  readonly #otherRecipients = new Dictionary();
  #next = 0;
  #first = 0;

  constructor(private readonly capacity: number) {}

  /** The sequence number that the next record gets. */
  get nextSequence(): number {
    return this.#next;
  }

  /** The oldest record that is still kept. */
  get firstSequence(): number {
    return this.#first;
  }

  append(entry: DeliveryEntry): number {
    const sequence = this.#next;
    const index = sequence % PIECE_RECORDS;
    const pieceNumber = (sequence - index) / PIECE_RECORDS;
    let piece = this.#pieces.get(pieceNumber);
    if (!piece) {
      piece = emptyPiece();
      this.#pieces.set(pieceNumber, piece);
      this.#dropOldest();
    }
    piece.monotonic[index] = entry.monotonicMicros;
    piece.wall[index] = entry.wallMicros;
    piece.recipient[index] = /^[1-9][0-9]{0,14}$/.test(entry.recipient)
      ? Number(entry.recipient)
      : -1 - this.#otherRecipients.numberOf(entry.recipient);
    piece.phoneNumber[index] = this.#phoneNumbers.numberOf(entry.phoneNumberId);
    piece.content[index] = this.#contents.numberOf(entry.content);
    piece.answer[index] = ANSWERS.indexOf(entry.answer);
    const start = index === 0 ? 0 : piece.tokenEnd[index - 1]!;
    // Three bytes is the most that one UTF-16 unit can take.
    if (start + entry.token.length * 3 > piece.tokens.length) {
      piece.tokens = Buffer.concat([piece.tokens], Math.max(piece.tokens.length * 2, start + entry.token.length * 3));
    }
    piece.tokenEnd[index] = start + piece.tokens.write(entry.token, start);
    this.#next = sequence + 1;
    return sequence;
  }

  /** No effect for a record that is no longer kept. */
  acknowledge(sequence: number, status: StatusName): void {
    const index = sequence % PIECE_RECORDS;
    const piece = this.#pieces.get((sequence - index) / PIECE_RECORDS);
    if (piece) piece.acknowledged[index]! |= 1 << STATUS_NAMES.indexOf(status);
  }

  at(sequence: number): DeliveryRecord | undefined {
    if (sequence < this.#first || sequence >= this.#next) return undefined;
    const index = sequence % PIECE_RECORDS;
    const piece = this.#pieces.get((sequence - index) / PIECE_RECORDS)!;
    const recipient = piece.recipient[index]!;
    const mask = piece.acknowledged[index]!;
    return {
      sequence,
      monotonicMicros: piece.monotonic[index]!,
      wallMicros: piece.wall[index]!,
      phoneNumberId: this.#phoneNumbers.texts[piece.phoneNumber[index]!]!,
      recipient: recipient >= 0 ? String(recipient) : this.#otherRecipients.texts[-1 - recipient]!,
      token: piece.tokens.toString('utf8', index === 0 ? 0 : piece.tokenEnd[index - 1]!, piece.tokenEnd[index]!),
      content: this.#contents.texts[piece.content[index]!]!,
      answer: ANSWERS[piece.answer[index]!]!,
      acknowledged: STATUS_NAMES.filter((_, bit) => mask & (1 << bit)),
    };
  }

  /** The newest record that matches. */
  findLast(matches: (record: DeliveryRecord) => boolean): DeliveryRecord | undefined {
    for (let sequence = this.#next - 1; sequence >= this.#first; sequence -= 1) {
      const record = this.at(sequence)!;
      if (matches(record)) return record;
    }
    return undefined;
  }

  #dropOldest(): void {
    const maxPieces = Math.max(2, Math.ceil(this.capacity / PIECE_RECORDS) + 1);
    while (this.#pieces.size > maxPieces) {
      const oldest = this.#first / PIECE_RECORDS;
      this.#pieces.delete(oldest);
      this.#first = (oldest + 1) * PIECE_RECORDS;
    }
  }
}

function emptyPiece(): Piece {
  return {
    monotonic: new Float64Array(PIECE_RECORDS),
    wall: new Float64Array(PIECE_RECORDS),
    recipient: new Float64Array(PIECE_RECORDS),
    phoneNumber: new Uint32Array(PIECE_RECORDS),
    content: new Uint32Array(PIECE_RECORDS),
    tokenEnd: new Uint32Array(PIECE_RECORDS),
    answer: new Uint8Array(PIECE_RECORDS),
    acknowledged: new Uint8Array(PIECE_RECORDS),
    tokens: Buffer.alloc(PIECE_RECORDS * 16),
  };
}
