/** RFC 6901 in its URI fragment form: `#/recipients/1/to`. */
export function jsonPointer(path: ReadonlyArray<PropertyKey>): string {
  return `#${path.map((step) => `/${escapeStep(String(step))}`).join('')}`;
}

function escapeStep(step: string): string {
  return encodeURIComponent(step.replaceAll('~', '~0').replaceAll('/', '~1'));
}
