-- A hold that goes on keeps its beginning.
INSERT INTO sender.number_state AS n (number_id, hold_reason, hold_since, hold_until, hold_detail)
VALUES ($1, $2, clock_timestamp(), sender.instant($3::double precision), $4)
ON CONFLICT (number_id) DO UPDATE
SET hold_since = CASE WHEN n.hold_reason = excluded.hold_reason AND (n.hold_until IS NULL OR n.hold_until > clock_timestamp())
    THEN n.hold_since ELSE excluded.hold_since END,
  hold_reason = excluded.hold_reason, hold_until = excluded.hold_until, hold_detail = excluded.hold_detail, updated_at = clock_timestamp()
