/** The statuses that a message of ours can get by webhook. */
export const STATUS_NAMES = ['sent', 'delivered', 'read', 'failed'] as const;
export type StatusName = (typeof STATUS_NAMES)[number];
