/**
 * `{{name}}` stands for a recipient's parameter; `{{{{` writes a literal `{{`. Names are letters, digits, `_`, `-` and `.`, at most
 * 64 characters; spaces inside the braces are ignored. Anything else in braces stays as it is written.
 */
const PLACEHOLDER = /\{\{\{\{|\{\{\s*([A-Za-z0-9_.-]{1,64})\s*\}\}/g;

export function placeholdersOf(text: string): string[] {
  const names = new Set<string>();
  for (const match of text.matchAll(PLACEHOLDER)) if (match[1] !== undefined) names.add(match[1]);
  return [...names];
}

export type Rendered = { ok: true; text: string } | { ok: false; missing: string[] };

export function render(text: string, parameters: Readonly<Record<string, string>>): Rendered {
  const missing: string[] = [];
  const rendered = text.replace(PLACEHOLDER, (whole, name: string | undefined) => {
    if (name === undefined) return '{{';
    const value = Object.hasOwn(parameters, name) ? parameters[name] : undefined;
    if (value === undefined) {
      missing.push(name);
      return whole;
    }
    return value;
  });
  return missing.length > 0 ? { ok: false, missing: [...new Set(missing)] } : { ok: true, text: rendered };
}
