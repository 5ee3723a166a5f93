import { DeliveryLog, type DeliveryEntry } from './delivery-log';

const entry = (index: number, change: Partial<DeliveryEntry> = {}): DeliveryEntry => ({
  monotonicMicros: index + 0.5,
  wallMicros: 1_782_900_000_000_000 + index,
  phoneNumberId: `70060050040030${index % 3}`,
  recipient: String(12_025_550_000 + index),
  token: `p1.${index}`,
  answer: 'accepted',
  content: 'autumn_offer/en_US',
  ...change,
});

describe('DeliveryLog', () => {
  it('gives back what was appended', () => {
    const log = new DeliveryLog(1000);
    const entries = [
      entry(0),
      entry(1, { recipient: 'US.13491208655302741918', token: '', answer: 'hung' }),
      entry(2, { token: 'Zoë 😀 '.repeat(60), content: 'text', recipient: '999999999999999' }),
      entry(3),
    ];
    expect(entries.map((each) => log.append(each))).toEqual([0, 1, 2, 3]);
    entries.forEach((each, sequence) => expect(log.at(sequence)).toEqual({ ...each, sequence, acknowledged: [] }));
    log.acknowledge(1, 'delivered');
    log.acknowledge(1, 'sent');
    expect(log.at(1)!.acknowledged).toEqual(['sent', 'delivered']);
    expect(log.at(2)!.acknowledged).toEqual([]);
  });

  it('keeps at least the bound, drops the oldest, and goes on numbering', () => {
    const log = new DeliveryLog(40_000);
    for (let index = 0; index < 250_000; index += 1) log.append(entry(index));
    expect(log.nextSequence).toBe(250_000);
    expect(log.firstSequence).toBeGreaterThan(0);
    expect(log.firstSequence).toBeLessThanOrEqual(210_000);
    expect(log.at(log.firstSequence - 1)).toBeUndefined();
    expect(log.at(249_999)).toMatchObject(entry(249_999));
    expect(log.at(log.firstSequence)).toMatchObject(entry(log.firstSequence));
    log.acknowledge(0, 'sent');
  });
});
