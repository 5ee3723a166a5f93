/**
 * Polls `condition` until it answers something truthy, and returns that.
 * Throws with `what` in its text when `deadlineMs` has passed. The one place that waits by the clock.
 */
export async function waitUntil<T>(
  what: string,
  condition: () => T | Promise<T>,
  { deadlineMs = 10_000, everyMs = 20 }: { deadlineMs?: number; everyMs?: number } = {},
): Promise<NonNullable<T>> {
  const end = performance.now() + deadlineMs;
  for (;;) {
    const answer = await condition();
    if (answer) return answer as NonNullable<T>;
    if (performance.now() > end) throw new Error(`waited ${deadlineMs} ms in vain for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
