-- $1: one JSON object a run; the rows are locked by this transaction.
UPDATE receipts.run AS r
SET revision = n.revision, external_id = n.external_id, number_id = n.number_id, slot = n.slot, total = n.total,
  due_at = receipts.instant(n.due_at), valid_until = receipts.instant(n.valid_until), mode = n.mode, channel = n.channel,
  labels = n.labels, latest_revision = n.latest_revision, released_at = receipts.instant(n.released_at),
  cancelled_at = receipts.instant(n.cancelled_at), hold_reason = n.hold_reason, hold_since = receipts.instant(n.hold_since),
  hold_detail = n.hold_detail, hold_ended_at = receipts.instant(n.hold_ended_at), hold_sequence = n.hold_sequence,
  first_called_at = receipts.instant(n.first_called_at), last_called_at = receipts.instant(n.last_called_at),
  outcome = n.outcome, completed_at = receipts.instant(n.completed_at), sequence = n.sequence, untold = n.untold,
  evidence_ends_at = receipts.instant(n.evidence_ends_at)
FROM jsonb_to_recordset($1::jsonb) AS n (run_id text, revision int, external_id text, number_id uuid, slot text, total int,
  due_at text, valid_until text, mode text, channel text, labels jsonb, latest_revision int, released_at text, cancelled_at text,
  hold_reason text, hold_since text, hold_detail text, hold_ended_at text, hold_sequence bigint, first_called_at text,
  last_called_at text, outcome text, completed_at text, sequence bigint, untold boolean,
  evidence_ends_at text)
WHERE r.run_id = decode(n.run_id, 'hex')
