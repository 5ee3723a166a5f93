/**
 * `wamid.` + base64 of: 1c 18, length and digits of the recipient, 15 02 00 11 18 12, eighteen hex digits, 00. That is how
 * real ids look from outside; nobody may rely on the layout. Derived from the place in the delivery log, so that the log
 * need not store it.
 */
export function messageId(recipient: string, sequence: number, runSalt: string): string {
  const tail = scramble(sequence).toString(16).padStart(8, '0').toUpperCase();
  const digits = /^[0-9]{1,15}$/.test(recipient) ? recipient : '0';
  return `wamid.${Buffer.from(
    `\x1c\x18${String.fromCharCode(digits.length)}${digits}\x15\x02\x00\x11\x18\x12${runSalt}${tail}\x00`,
    'latin1',
  ).toString('base64')}`;
}

/** Ten hex digits that tell one start of the simulator from another. */
export function runSaltFrom(random: () => number): string {
  let salt = '';
  while (salt.length < 10)
    salt += Math.floor(random() * 16)
      .toString(16)
      .toUpperCase();
  return salt;
}

/** One to one on 32 bits, so different messages get different ids without a table. */
function scramble(value: number): number {
  let mixed = (value ^ 0x9e3779b9) >>> 0;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
