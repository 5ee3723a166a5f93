import fc from 'fast-check';
import { FinishedPrefix } from './finished-prefix';

it('never allows a commit past an unfinished record, and allows everything once all are finished', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.bigInt({ min: 0n, max: 10_000n }), { minLength: 1, maxLength: 80 }),
      fc.infiniteStream(fc.nat()),
      (given, picks) => {
        const offsets = [...given].sort((a, b) => (a < b ? -1 : 1));
        const prefix = new FinishedPrefix();
        for (const offset of offsets) prefix.receive(offset);
        expect(prefix.toCommit()).toBeUndefined();
        const open = [...offsets];
        while (open.length > 0) {
          const [picked] = open.splice(picks.next().value! % open.length, 1);
          prefix.finish(picked!);
          const next = prefix.toCommit();
          if (next !== undefined) {
            for (const unfinished of open) expect(unfinished >= next).toBe(true);
            prefix.commitDone(next);
            expect(prefix.toCommit()).toBeUndefined();
          }
        }
        expect(prefix.pending).toBe(0);
        prefix.receive(offsets.at(-1)! + 7n);
        expect(prefix.toCommit()).toBe(offsets.length === 0 ? undefined : offsets.at(-1)! + 7n);
      },
    ),
  );
});

it('has nothing to commit before the first record', () => {
  expect(new FinishedPrefix().toCommit()).toBeUndefined();
});
