import { z } from 'zod';
import { PunctualError } from './errors';
import { Secret } from './secret';

export { Secret } from './secret';

/** Everything that is wrong with the environment, at once: nobody should have to start a service six times to find six typos. */
export class ConfigError extends PunctualError {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    const lines = problems.map((problem) => `  - ${problem}`).join('\n');
    super(
      'config_invalid',
      `The configuration has ${problems.length} problem(s). Nothing was started; set these and start again:\n${lines}`,
    );
    this.problems = problems;
  }
}

/** A whole number between `min` and `max`, both included. */
export function integer({ min = 0, max = Number.MAX_SAFE_INTEGER }: { min?: number; max?: number } = {}) {
  const allowed = max === Number.MAX_SAFE_INTEGER ? `a whole number from ${min}` : `a whole number from ${min} to ${max}`;
  return z.coerce.number({ error: allowed }).int(allowed).min(min, allowed).max(max, allowed).meta({ allowed });
}

/** A duration in milliseconds; name the variable `..._MS`. */
export function milliseconds({ min = 0, max = 31_536_000_000 }: { min?: number; max?: number } = {}) {
  return integer({ min, max }).meta({ allowed: `milliseconds, a whole number from ${min} to ${max}` });
}

export function port() {
  return integer({ min: 0, max: 65_535 }).meta({ allowed: 'a port from 0 to 65535; 0 takes a free one' });
}

/** A number with a fraction. */
export function decimal({ min, max }: { min: number; max: number }) {
  const allowed = `a number from ${min} to ${max}`;
  return z.coerce.number({ error: allowed }).min(min, allowed).max(max, allowed).meta({ allowed });
}

export function flag() {
  const allowed = 'true or false';
  return z
    .enum(['true', 'false', '1', '0'], { error: allowed })
    .transform((value) => value === 'true' || value === '1')
    .meta({ allowed });
}

/** Comma-separated, blanks around items dropped, at least one item. */
export function list() {
  const allowed = 'a comma-separated list with at least one item';
  return z
    .string()
    .transform((value) =>
      value
        .split(',')
        .map((item) => item.trim())
        .filter((item) => item !== ''),
    )
    .refine((items) => items.length > 0, allowed)
    .meta({ allowed });
}

export function url(...protocols: string[]) {
  const allowed = `a URL that starts with ${protocols.map((protocol) => `${protocol}://`).join(' or ')}`;
  return z
    .string()
    .refine((value) => URL.canParse(value) && protocols.includes(new URL(value).protocol.replace(/:$/, '')), allowed)
    .meta({ allowed });
}

/** A URL that may carry a password: parsed as `url()`, shown as `secret()`. */
export function secretUrl(...protocols: string[]) {
  return url(...protocols)
    .transform((value) => new Secret(value))
    .meta({ allowed: url(...protocols).meta()?.allowed, secret: true });
}

/** A secret of at least `min` characters; the result only shows it on `reveal()`. */
export function secret({ min = 1 }: { min?: number } = {}) {
  const allowed = min === 1 ? 'a secret, not empty' : `a secret of at least ${min} characters`;
  return z
    .string()
    .min(min, allowed)
    .transform((value) => new Secret(value))
    .meta({ allowed, secret: true });
}

/** 32 bytes in base64, hidden as `secret()`; `keyFrom(secret)` in sealed-secret gives the bytes. */
export function secretKey() {
  const allowed = '32 bytes in base64 (`openssl rand -base64 32`)';
  return z
    .string()
    .refine((value) => /^[A-Za-z0-9+/_-]{42,44}={0,2}$/.test(value) && Buffer.from(value, 'base64').length === 32, allowed)
    .transform((value) => new Secret(value))
    .meta({ allowed, secret: true });
}

interface FieldFacts {
  allowed: string;
  meaning: string;
  secret: boolean;
  required: boolean;
  defaultValue: unknown;
}

function factsOf(field: z.ZodType): FieldFacts {
  const facts: FieldFacts = { allowed: '', meaning: '', secret: false, required: true, defaultValue: undefined };
  let layer: z.ZodType | undefined = field;
  while (layer) {
    const meta = layer.meta() as { allowed?: string; secret?: boolean; description?: string } | undefined;
    facts.allowed ||= meta?.allowed ?? '';
    facts.meaning ||= meta?.description ?? '';
    facts.secret ||= meta?.secret ?? false;
    const def = layer._zod.def as { type: string; innerType?: z.ZodType; in?: z.ZodType; defaultValue?: unknown };
    if (def.type === 'default' || def.type === 'prefault') {
      facts.required = false;
      facts.defaultValue = def.defaultValue;
    }
    if (def.type === 'optional') facts.required = false;
    layer = def.innerType ?? def.in;
  }
  facts.allowed ||= allowedFromJsonSchema(field);
  return facts;
}

function allowedFromJsonSchema(field: z.ZodType): string {
  const json = z.toJSONSchema(field, { io: 'input', unrepresentable: 'any' }) as Record<string, unknown>;
  if (Array.isArray(json.enum)) return `one of ${json.enum.join(', ')}`;
  if (json.const !== undefined) return String(json.const);
  const limits = ['minimum', 'maximum', 'minLength', 'maxLength', 'pattern', 'format']
    .filter((limit) => json[limit] !== undefined)
    .map((limit) => `${limit} ${String(json[limit])}`);
  return [json.type === 'string' ? 'text' : String(json.type ?? 'text'), ...limits].join(', ');
}

/**
 * Reads the variables named by the schema's keys. A variable that is set to nothing counts as not set.
 * Throws one ConfigError that lists every problem: the variable, what is allowed, what was given (never for secrets).
 */
export function loadConfig<S extends z.ZodObject>(schema: S, env: NodeJS.ProcessEnv = process.env): z.output<S> {
  const given: Record<string, string> = {};
  for (const variable of Object.keys(schema.shape)) {
    const value = env[variable];
    if (value !== undefined && value.trim() !== '') given[variable] = value;
  }
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;

  const problems = new Map<string, string>();
  for (const issue of parsed.error.issues) {
    const variable = String(issue.path[0] ?? '');
    const field = schema.shape[variable] as z.ZodType | undefined;
    if (!field) {
      problems.set(issue.message, issue.message);
      continue;
    }
    const facts = factsOf(field);
    const got =
      given[variable] === undefined
        ? 'it is not set'
        : facts.secret
          ? 'given: a value that is not shown'
          : `given: ${JSON.stringify(given[variable])}`;
    const rule =
      issue.code === 'custom' && issue.message !== facts.allowed && issue.message !== 'Invalid input'
        ? ` (${issue.message})`
        : '';
    if (!problems.has(variable)) problems.set(variable, `${variable} must be ${facts.allowed}${rule}; ${got}`);
  }
  throw new ConfigError([...problems.values()]);
}

export interface ConfigRow {
  variable: string;
  allowed: string;
  /** Empty where the variable must be set or has no default. */
  default: string;
  required: boolean;
  secret: boolean;
  meaning: string;
}

export function describeConfig(schema: z.ZodObject): ConfigRow[] {
  return Object.entries(schema.shape).map(([variable, field]) => {
    const facts = factsOf(field as z.ZodType);
    return {
      variable,
      allowed: facts.allowed,
      default: facts.defaultValue === undefined ? '' : printable(facts.defaultValue),
      required: facts.required,
      secret: facts.secret,
      meaning: facts.meaning,
    };
  });
}

function printable(value: unknown): string {
  return Array.isArray(value) ? value.join(',') : String(value);
}

/** The same as a Markdown table, for the documentation. */
export function configTable(schema: z.ZodObject): string {
  const cell = (text: string) => text.replaceAll('|', '\\|');
  const rows = describeConfig(schema).map(
    (row) =>
      `| \`${row.variable}\` | ${cell(row.meaning)} | ${cell(row.allowed)} | ${row.required ? '**must be set**' : cell(row.default) || 'not set'} |`,
  );
  return ['| variable | meaning | allowed | default |', '|---|---|---|---|', ...rows].join('\n');
}
