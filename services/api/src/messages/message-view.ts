import { formatId, runOf, uuidBytes } from '#contracts/ids';
import type { ExistingSchedule } from '../schedule/schedule-state';
import { iso, isoOrNull } from '../schedule/schedule-view';
import { adviceFor } from './error-advice';
import { maskNumber } from './mask-number';
import type { MessageFacts } from './message-facts';
import type { MergedMessage } from './merge-message';

export interface ShownRecipient {
  to: string;
  ref: string | null;
}

export function messageView(
  occurrenceId: Buffer,
  schedule: ExistingSchedule,
  facts: MessageFacts,
  merged: MergedMessage,
  recipient: ShownRecipient | null,
  showsRecipients: boolean,
): Record<string, unknown> {
  const { projected, claim } = facts;
  const providerMessageId = projected?.providerMessageId ?? claim?.providerMessageId ?? null;
  return {
    id: formatId('msg', occurrenceId),
    scheduleId: formatId('sch', uuidBytes(schedule.scheduleId)),
    runId: formatId('run', runOf(occurrenceId)),
    slot: schedule.definition.slot.slot,
    revision: projected?.revision ?? schedule.revision,
    channel: schedule.definition.number.channel,
    mode: schedule.mode,
    ref: recipient?.ref ?? null,
    to: recipient ? (showsRecipients ? recipient.to : maskNumber(recipient.to)) : null,
    status: merged.status,
    final: merged.final,
    reachedProvider: merged.reachedProvider,
    reason: merged.reason,
    waitingFor: merged.waitingFor && {
      reason: merged.waitingFor.reason,
      since: iso(merged.waitingFor.sinceMs),
      until: isoOrNull(merged.waitingFor.wakeAtMs),
      givesUpAt: isoOrNull(merged.waitingFor.givesUpAtMs),
    },
    dueAt: iso(schedule.definition.slot.dueAtMs),
    submittedAt: isoOrNull(projected?.submittedAtMs ?? null),
    evidence: {
      sentAt: isoOrNull(projected?.sentAtMs ?? null),
      deliveredAt: isoOrNull(projected?.deliveredAtMs ?? null),
      readAt: isoOrNull(projected?.readAtMs ?? null),
      failedAt: isoOrNull(projected?.failedAtMs ?? null),
    },
    attempts: merged.attempts,
    nextAttemptAt: isoOrNull(merged.nextAttemptAtMs),
    error: errorView(facts, merged),
    provider: {
      name: schedule.definition.number.providerIdentity.split(':', 1)[0],
      // WhatsApp's ids hold the recipient's number.
      messageId: showsRecipients ? providerMessageId : null,
      status: providerStatus(facts),
    },
    delay: delayView(facts, schedule),
  };
}

function errorView(facts: MessageFacts, merged: MergedMessage): Record<string, unknown> | null {
  if (merged.errorCode === null) return null;
  const known = facts.projected?.error?.code === merged.errorCode ? facts.projected.error : null;
  const advice = adviceFor(merged.errorCode);
  return {
    code: merged.errorCode,
    retryable: advice.retryable,
    text: known?.text ?? advice.text,
    action: advice.action,
    at: isoOrNull(known?.atMs ?? facts.claim?.updatedAtMs ?? null),
    provider: { code: known?.providerCode ?? null, text: known?.text ?? null },
  };
}

/** The provider's last word, in its own terms. */
function providerStatus({ projected }: MessageFacts): string | null {
  if (!projected) return null;
  if (projected.readAtMs !== null) return 'read';
  if (projected.deliveredAtMs !== null) return 'delivered';
  if (projected.failedAtMs !== null) return 'failed';
  if (projected.sentAtMs !== null) return 'sent';
  return projected.submittedAtMs === null ? null : 'accepted';
}

function delayView({ projected }: MessageFacts, schedule: ExistingSchedule): Record<string, unknown> | null {
  if (!projected || projected.submittedAtMs === null) return null;
  return { totalMs: Math.max(0, projected.submittedAtMs - schedule.definition.slot.dueAtMs), waits: projected.waits };
}
