/** One statement after the other, so that a large call never holds more than one connection. Answers in the order of the items. */
export async function inBatches<T, R>(
  items: readonly T[],
  most: number,
  work: (batch: readonly T[]) => Promise<R[]>,
): Promise<R[]> {
  if (items.length <= most) return items.length === 0 ? [] : work(items);
  const answers: R[] = [];
  for (let from = 0; from < items.length; from += most) answers.push(...(await work(items.slice(from, from + most))));
  return answers;
}
