import type { MessageContent } from '#contracts/content';
import type { Fault } from '../problem/problem-table';
import type { RecipientRequest } from '../request/schedule-request';
import { placeholdersIn } from './check-content';

export interface InlineInput {
  index: number;
  to: string;
  ref?: string;
  timeZone?: string;
  parameters: Record<string, string>;
}

/** What became of one recipient of a request. */
export type RecipientResult =
  | { index: number; result: 'accepted'; position: number; recipientHash: Buffer }
  | { index: number; result: 'rejected'; error: { code: string; detail: string; member: string } }
  | { index: number; result: 'duplicate'; duplicateOf: number };

/** Recipients that lack a parameter of the content can't get it; they are told before numbers are looked at. */
export function splitByParameters(
  recipients: readonly RecipientRequest[],
  content: MessageContent,
): { usable: InlineInput[]; rejected: RecipientResult[] } {
  const needed = placeholdersIn(content);
  const usable: InlineInput[] = [];
  const rejected: RecipientResult[] = [];
  recipients.forEach((recipient, index) => {
    const parameters = recipient.parameters ?? {};
    const missing = needed.filter((name) => !Object.hasOwn(parameters, name));
    if (missing.length === 0) usable.push({ ...recipient, index, parameters });
    else {
      const detail = `the content uses ${missing.map((name) => `{{${name}}}`).join(', ')}`;
      rejected.push({
        index,
        result: 'rejected',
        error: { code: 'parameter_missing', detail, member: `parameters/${missing[0]}` },
      });
    }
  });
  return { usable, rejected };
}

/** One fault for each rejected recipient, in the order sent. */
export function recipientFaults(results: readonly RecipientResult[]): Fault[] {
  return results.flatMap((result) =>
    result.result === 'rejected'
      ? [{ pointer: `#/recipients/${result.index}/${result.error.member}`, code: result.error.code, detail: result.error.detail }]
      : [],
  );
}

/** Columns that some recipients do not have, with the first such row; rows count from 1 as in a file. */
export function missingParameters(
  inputs: readonly InlineInput[],
  columns: readonly string[],
): Record<string, { count: number; firstRow: number }> {
  const missing: Record<string, { count: number; firstRow: number }> = {};
  for (const column of columns) {
    for (const input of inputs) {
      if (Object.hasOwn(input.parameters, column)) continue;
      const gap = (missing[column] ??= { count: 0, firstRow: input.index + 1 });
      gap.count++;
    }
  }
  return missing;
}
