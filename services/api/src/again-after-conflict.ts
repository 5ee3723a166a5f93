import { pause } from '#runtime/pause';

/** Each try loses to a competitor that got its own change in, so this many in a row need as many changes at once. */
const MOST_TRIES = 20;
/** Times the number of tries: without a pause all competitors meet again at the same row. */
const LONGEST_PAUSE_MS = 10;

/**
 * Does `once` again for as long as a competitor's change came in between, each time on what that one left. The answer is the last
 * outcome, which after 20 tries (2 s at most of waiting) can still be a conflict.
 */
export async function againAfterConflict<T>(once: () => Promise<T>, isConflict: (outcome: T) => boolean): Promise<T> {
  for (let tries = 1; ; tries++) {
    const outcome = await once();
    if (tries === MOST_TRIES || !isConflict(outcome)) return outcome;
    await pause(LONGEST_PAUSE_MS * tries * Math.random());
  }
}
