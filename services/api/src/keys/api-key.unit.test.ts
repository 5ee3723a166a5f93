import { hashApiKey, isApiKey, keyHint, newApiKey } from './api-key';

it('makes keys that are recognised by shape and checksum alone', () => {
  const keys = Array.from({ length: 200 }, () => newApiKey('test'));
  expect(new Set(keys).size).toBe(200);
  expect(keys.every(isApiKey)).toBe(true);
  expect(keys[0]).toMatch(/^punctual_test_[0-9a-z]{48}$/);
});

it('refuses a key with one wrong letter, of the other mode, or cut short', () => {
  const key = newApiKey('test');
  const letter = key.at(-20) === 'a' ? 'b' : 'a';
  for (const wrong of [
    key.slice(0, -20) + letter + key.slice(-19),
    key.replace('test', 'live'),
    key.slice(0, -1),
    `${key}a`,
    key.toUpperCase(),
    '',
  ]) {
    expect(isApiKey(wrong)).toBe(false);
  }
});

it('shows too little of a key to use it', () => {
  const key = newApiKey('live');
  expect(keyHint(key).length).toBeLessThan(30);
  expect(hashApiKey(key)).toHaveLength(32);
});
