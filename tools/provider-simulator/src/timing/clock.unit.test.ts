import { systemClock } from './clock';

describe('systemClock', () => {
  it('never leaves the millisecond that Date.now names', () => {
    const clock = systemClock();
    for (let round = 0; round < 20_000; round += 1) {
      const before = Date.now() * 1000;
      const wall = clock.wallMicros();
      const after = Date.now() * 1000;
      expect(wall >= before && wall < after + 1000).toBe(true);
    }
  });
});
