/** Ids that look like Graph's `fbtrace_id`: unlike each other, cheap, and of no meaning. */
export class TraceIds {
  #next = Math.floor(Math.random() * 0xffff_ffff);
  readonly #salt = Math.random().toString(36).slice(2, 12).padEnd(10, 'x');

  next(): string {
    this.#next = (this.#next + 0x9e37_79b1) >>> 0;
    return `A${this.#salt}${this.#next.toString(36).padStart(7, '0')}`;
  }
}
