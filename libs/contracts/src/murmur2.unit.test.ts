import { murmur2, partitionFor } from './murmur2';

// Published with Apache Kafka's own partitioner test (UtilsTest.testMurmur2).
const VECTORS: Array<[string, number]> = [
  ['21', -973932308],
  ['foobar', -790332482],
  ['a-little-bit-long-string', -985981536],
  ['a-little-bit-longer-string', -1486304829],
  ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58897971],
];

describe('murmur2', () => {
  it.each(VECTORS)('hashes %s as Kafka does', (text, hash) => {
    expect(murmur2(Buffer.from(text))).toBe(hash);
  });

  it('keeps partitions within the topic for negative hashes too', () => {
    for (const [text] of VECTORS) expect([0, 1, 2, 3, 4]).toContain(partitionFor(text, 5));
  });
});
