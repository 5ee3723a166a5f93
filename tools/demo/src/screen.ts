/** Output for people at a terminal (one line that is redrawn) and for logs (plain lines, now and then). */
export class Screen {
  private drawn = false;
  private lastPlainMs = -Infinity;

  constructor(
    private readonly out: NodeJS.WriteStream,
    private readonly plainEveryMs = 2_000,
  ) {}

  get isTerminal(): boolean {
    return this.out.isTTY === true;
  }

  title(text: string): void {
    this.line('');
    this.line(this.isTerminal ? `\u001b[1m${text}\u001b[0m` : text);
  }

  line(text: string): void {
    this.end();
    this.out.write(`${text}\n`);
  }

  /** Replaces what was drawn before; without a terminal it is a line every two seconds. */
  progress(text: string): void {
    if (this.isTerminal) {
      this.out.write(`\r\u001b[2K${text.slice(0, (this.out.columns ?? 200) - 1)}`);
      this.drawn = true;
    } else if (performance.now() - this.lastPlainMs >= this.plainEveryMs) {
      this.lastPlainMs = performance.now();
      this.out.write(`${text}\n`);
    }
  }

  /** Leaves what was drawn last on the screen. */
  end(): void {
    if (this.drawn) this.out.write('\n');
    this.drawn = false;
  }
}

export function bar(done: number, total: number, width = 28): string {
  const full = total === 0 ? width : Math.min(width, Math.round((done / total) * width));
  return `[${'#'.repeat(full)}${'.'.repeat(width - full)}]`;
}

/** Nearest-rank percentile; `values` need not be sorted. */
export function percentile(values: readonly number[], share: number): number {
  if (values.length === 0) return Number.NaN;
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))]!;
}
