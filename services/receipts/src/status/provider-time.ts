/**
 * An instant that a provider tells is believed within what clocks may differ: some have told 1970, or the year 5138. What can't be
 * is kept as evidence all the same, and shown at the time at which we heard it.
 */
const SKEW_MS = 5 * 60_000;
/** Heard that soon after, it needs no other proof: nobody hears of an attempt before it is made. Well below the skew, for our own clocks. */
const PROMPT_MS = 2 * 60_000;

/** An instant of evidence; `heardAt` where it can only be believed once the call is known (told long after it happened), else null. */
export interface ProviderTime {
  at: number;
  heardAt: number | null;
}

/** From what was told and when we heard it first. The future can't be told, so `heardAt` itself is the instant then. */
export function readProviderTime(toldAt: number, heardAt: number): ProviderTime {
  if (toldAt > heardAt + SKEW_MS) return { at: heardAt, heardAt: null };
  return { at: toldAt, heardAt: heardAt - toldAt > PROMPT_MS ? heardAt : null };
}

/** `calledAt`: before it nobody had called the provider; null while that is not known. */
export function shownTime({ at, heardAt }: ProviderTime, calledAt: number | null): number {
  if (heardAt === null) return at;
  return calledAt !== null && at >= calledAt - SKEW_MS ? at : heardAt;
}

/** A total order, whose least does not depend on which came first. Of one instant, the sooner heard is the better known. */
export function compareProviderTimes(a: ProviderTime, b: ProviderTime): number {
  return a.at - b.at || (a.heardAt ?? 0) - (b.heardAt ?? 0);
}
