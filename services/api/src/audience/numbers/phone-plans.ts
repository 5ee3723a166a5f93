import metadataJson from 'libphonenumber-js/metadata.max.json';

/**
 * libphonenumber's answer for numbers in international form, from the same tables, with every expression compiled once: the
 * library builds them anew for each number (8 µs to parse and 14 µs with its validity, against 0.6 µs here). A property test
 * holds the two against each other; where they differ, the library is right.
 */
interface Plan {
  general: RegExp;
  lengths: readonly number[];
  leadingDigits: RegExp | null;
  nationalPrefix: RegExp | null;
  transformRule: string | null;
  hasTypes: boolean;
  fixedLine: TypePattern | null;
  /** In the order in which the library asks. */
  otherTypes: Array<TypePattern & { reachable: boolean }>;
}

interface TypePattern {
  pattern: RegExp;
  lengths: readonly number[] | null;
}

interface CallingCode {
  digits: string;
  /** The plan of the code's main country, or of the service that has no country. */
  main: Plan;
  countries: Plan[];
}

export interface InternationalNumber {
  e164: string;
  /** False for premium rate and shared cost. */
  reachable: boolean;
}

// Members of a plan and their types as METADATA.md of libphonenumber-js describes version 4 of the format.
type PlanJson = readonly unknown[];
const GENERAL = 2;
const LENGTHS = 3;
const NATIONAL_PREFIX = 5;
const NATIONAL_PREFIX_FOR_PARSING = 7;
const TRANSFORM_RULE = 8;
const LEADING_DIGITS = 10;
const TYPES = 11;
const FIXED_LINE = 0;
const OTHER_TYPES = [
  { at: 1, reachable: true }, // mobile
  { at: 3, reachable: false }, // premium rate
  { at: 2, reachable: true }, // toll free
  { at: 9, reachable: false }, // shared cost
  { at: 8, reachable: true }, // voice over IP
  { at: 4, reachable: true }, // personal number
  { at: 7, reachable: true }, // pager
  { at: 6, reachable: true }, // universal access
  { at: 5, reachable: true }, // voicemail
] as const;

const metadata = metadataJson as unknown as {
  version: number;
  country_calling_codes: Record<string, string[]>;
  countries: Record<string, PlanJson>;
  nonGeographic: Record<string, PlanJson>;
};
if (metadata.version !== 4) throw new Error(`phone-plans reads version 4 of the metadata, not ${metadata.version}`);

const planOf = new Map<PlanJson, Plan>();
/** Calling codes by their digits as a number: 1 to 3 digits, never with a leading zero. */
const callingCodes: Array<CallingCode | undefined> = new Array<CallingCode | undefined>(1_000).fill(undefined);
for (const [digits, countries] of Object.entries(metadata.country_calling_codes)) {
  const plans = countries.map((country) => compiled(metadata.countries[country]!));
  callingCodes[Number(digits)] = { digits, main: plans[0]!, countries: plans };
}
for (const [digits, plan] of Object.entries(metadata.nonGeographic)) {
  callingCodes[Number(digits)] ??= { digits, main: compiled(plan), countries: [] };
}

function compiled(json: PlanJson): Plan {
  const known = planOf.get(json);
  if (known) return known;
  const types = json[TYPES] as Array<[string, number[]?] | undefined> | undefined;
  const lengths = json[LENGTHS] as number[];
  const typeAt = (at: number): TypePattern | null => {
    const type = types?.[at];
    return type?.[0] ? { pattern: whole(type[0]), lengths: type[1] ?? lengths } : null;
  };
  const prefix = (json[NATIONAL_PREFIX_FOR_PARSING] || json[NATIONAL_PREFIX]) as string | undefined;
  const plan: Plan = {
    general: whole(json[GENERAL] as string),
    lengths,
    leadingDigits: json[LEADING_DIGITS] ? new RegExp(`^(?:${json[LEADING_DIGITS] as string})`) : null,
    nationalPrefix: prefix ? new RegExp(`^(?:${prefix})`) : null,
    transformRule: (json[TRANSFORM_RULE] as string) || null,
    hasTypes: types !== undefined && (types as unknown) !== 0 && types.length > 0,
    fixedLine: typeAt(FIXED_LINE),
    otherTypes: OTHER_TYPES.flatMap(({ at, reachable }) => {
      const type = typeAt(at);
      return type ? [{ ...type, reachable }] : [];
    }),
  };
  planOf.set(json, plan);
  return plan;
}

function whole(pattern: string): RegExp {
  return new RegExp(`^(?:${pattern})$`);
}

/** `digits` without the plus: 7 to 15 ASCII digits. Null where the library says that there is no such number. */
export function readInternational(digits: string): InternationalNumber | null {
  const code = callingCodeOf(digits);
  if (code === null) return null;
  const given = digits.slice(code.digits.length);
  const national = withoutNationalPrefix(given, code);
  if (national.length < 2 || national.length > 17) return null;
  const country = countryOf(national, code);
  const plan = country ?? code.main;
  const use = useOf(national, plan);
  if (use === null && (plan.hasTypes || !plan.general.test(national))) return null;
  return { e164: national === given ? `+${digits}` : `+${code.digits}${national}`, reachable: use !== false };
}

function callingCodeOf(digits: string): CallingCode | null {
  let value = 0;
  for (let at = 0; at < 3; at++) {
    value = value * 10 + digits.charCodeAt(at) - 48;
    if (value === 0) return null;
    const code = callingCodes[value];
    if (code !== undefined) return code;
  }
  return null;
}

/** Some write the trunk prefix after the country code (+49 0151...); some plans even rewrite what follows it. */
function withoutNationalPrefix(number: string, code: CallingCode): string {
  const { main } = code;
  const match = main.nationalPrefix?.exec(number);
  if (!match) return number;
  const captured = match.length > 1 && match[match.length - 1];
  const national =
    main.transformRule !== null && captured
      ? number.replace(main.nationalPrefix!, main.transformRule)
      : number.slice(match[0].length);
  if (national === number) return number;
  if (main.general.test(number) && !main.general.test(national)) return number;
  const { lengths } = countryOf(national, code) ?? main;
  return lengths.includes(national.length) || national.length > lengths[lengths.length - 1]! ? national : number;
}

function countryOf(national: string, { countries }: CallingCode): Plan | null {
  if (countries.length === 1) return countries[0]!;
  for (const country of countries) {
    if (country.leadingDigits !== null ? country.leadingDigits.test(national) : useOf(national, country) !== null) return country;
  }
  return null;
}

/** Null: no such number in this plan. Otherwise whether a handset can have it. */
function useOf(national: string, plan: Plan): boolean | null {
  if (!plan.general.test(national)) return null;
  if (plan.fixedLine !== null && fits(national, plan.fixedLine)) return true;
  for (const type of plan.otherTypes) if (fits(national, type)) return type.reachable;
  return null;
}

function fits(national: string, { pattern, lengths }: TypePattern): boolean {
  return (lengths === null || lengths.includes(national.length)) && pattern.test(national);
}
