import { isSameZone, readZone } from './time-zone';

describe('reading a zone', () => {
  it('takes any spelling of a name and knows aliases as one zone', () => {
    const asked = readZone('europe/berlin');
    expect(asked).toEqual({ ok: true, zone: { name: 'Europe/Berlin', key: 'Europe/Berlin' } });
    const keys = ['Asia/Calcutta', 'Asia/Kolkata'].map((name) => {
      const answer = readZone(name);
      return answer.ok ? answer.zone.key : null;
    });
    expect(keys[0]).toBe(keys[1]);
    expect(isSameZone('Asia/Calcutta', 'Asia/Kolkata')).toBe(true);
    expect(isSameZone('Europe/Berlin', 'Europe/Paris')).toBe(false);
  });

  it.each([
    ['Europe/Berln', 'Europe/Berlin?'],
    ['Berlin', 'Europe/Berlin?'],
    ['new york', 'America/New_York?'],
    ['Amerika/Sao_Paulo', 'America/Sao_Paulo?'],
  ])('hints at the nearest name for %s', (asked, hint) => {
    const answer = readZone(asked);
    expect(answer).toMatchObject({ ok: false, fault: { code: 'time_zone_unknown', member: ['timeZone'], hint } });
  });

  it.each(['', 'qqqqqqqqqq', '+02:00', 'x'.repeat(500), 'Europe/Berlin; DROP', '__proto__'])(
    'refuses %p without a far-fetched hint',
    (asked) => {
      const answer = readZone(asked);
      expect(answer.ok).toBe(false);
      if (!answer.ok && !asked.startsWith('Europe')) expect(answer.fault.hint).toBeUndefined();
    },
  );
});
