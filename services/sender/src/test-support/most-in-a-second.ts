/** The most instants (milliseconds) in any sliding second. */
export function mostInASecond(instants: readonly number[]): number {
  const sorted = [...instants].sort((a, b) => a - b);
  let most = 0;
  for (let from = 0, to = 0; to < sorted.length; to++) {
    while (sorted[to]! - sorted[from]! >= 1_000) from++;
    most = Math.max(most, to - from + 1);
  }
  return most;
}
