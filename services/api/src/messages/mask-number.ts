/** `+4915123456789` becomes `+49151******89`: enough to recognise, not enough to call. */
export function maskNumber(number: string): string {
  const shown = number.length >= 11 ? 6 : 3;
  const hidden = Math.max(0, number.length - shown - 2);
  return `${number.slice(0, shown)}${'*'.repeat(hidden)}${number.slice(number.length - 2)}`;
}
