/**
 * What `work` answers or throws, or the error of `late` if `milliseconds` pass first. The work itself is not stopped; what becomes
 * of it afterwards is nobody's concern, a rejection included.
 */
export async function settleWithin<T>(work: Promise<T>, milliseconds: number, late: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), Math.max(1, milliseconds));
  });
  try {
    return await Promise.race([work, tooLate]);
  } finally {
    clearTimeout(timer);
  }
}
