/** What is waited for less long than this passes before anybody has read it. */
const LASTING_MS = 2_000;

/**
 * What people hear of services that start. They are asked twenty times a second and pass half a dozen steps within one: a wait is said
 * once when it lasts, and again only when it has become another one.
 */
export class ToldWaits {
  private readonly waits = new Map<string, { reason: string; sinceMs: number; told: string | undefined }>();

  /** The line to say, if there is one. */
  hear(name: string, reason: string, nowMs: number): string | undefined {
    const known = this.waits.get(name);
    if (known?.reason !== reason) {
      this.waits.set(name, { reason, sinceMs: nowMs, told: known?.told });
      return undefined;
    }
    if (known.told === reason || nowMs - known.sinceMs < LASTING_MS) return undefined;
    known.told = reason;
    return `${name} waits for ${reason}`;
  }
}

/** From an answer of /health/ready: `starting: kafka` is a wait for Kafka to those who watch the start. */
export function waitOf(answer: string): string {
  try {
    const { reasons } = JSON.parse(answer) as { reasons?: unknown };
    if (Array.isArray(reasons) && reasons.length > 0)
      return reasons.map((one) => String(one).replace(/^starting: /, '')).join(', ');
  } catch {
    // Not one of our services, or not yet: what it says is all there is.
  }
  return answer.slice(0, 160);
}
