import type { FieldKind } from '#runtime/log';

/** What a sender may say beside the fields of every service. */
export const LOG_FIELDS = { numberId: 'id', until: 'time' } as const satisfies Record<string, FieldKind>;
