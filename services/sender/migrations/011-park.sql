-- Items whose schedule the gate does not know: kept until it does (sender.change_gate 'open' offers them again). Under the
-- stripe, so that a gate row that appears now is either seen here or sees the parked row.
CREATE FUNCTION sender.park(
  p_keys bytea[], p_values bytea[], p_schedule_ids uuid[], p_number_ids uuid[], p_revisions int[], p_positions int[],
  p_priorities smallint[], p_due_at double precision[], p_valid_until double precision[], p_reason text
) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_now timestamptz;
BEGIN
  PERFORM pg_advisory_xact_lock_shared(7001, s.stripe)
  FROM (SELECT DISTINCT sender.stripe(u.id) AS stripe FROM unnest(p_schedule_ids) AS u (id) ORDER BY 1) AS s;
  v_now := clock_timestamp();

  WITH item AS MATERIALIZED (
    SELECT DISTINCT ON (u.key) u.*, sender.instant(u.due_ms) AS due_at, sender.instant(u.valid_ms) AS valid_until
    FROM unnest(p_keys, p_values, p_schedule_ids, p_number_ids, p_revisions, p_positions, p_priorities, p_due_at, p_valid_until)
      AS u (key, value, schedule_id, number_id, revision, position, priority, due_ms, valid_ms)
    ORDER BY u.key
  ), known AS (
    INSERT INTO sender.waiting (occurrence_id, schedule_id, number_id, revision, position, priority, attempt, due_at, valid_until,
      since, wake_at, gives_up_at, reason)
    SELECT i.key, i.schedule_id, i.number_id, i.revision, i.position, i.priority, 0, i.due_at, i.valid_until,
      v_now, v_now, greatest(i.due_at, v_now) + g.hold_give_up_ms * interval '1 ms', 'not_yet'
    FROM item i JOIN sender.gate g ON g.schedule_id = i.schedule_id
    ORDER BY i.key
    ON CONFLICT DO NOTHING
  )
  INSERT INTO sender.parked (key, value, reason, parked_at, schedule_id, number_id, revision, position, priority, due_at, valid_until)
  SELECT i.key, i.value, p_reason, v_now, i.schedule_id, i.number_id, i.revision, i.position, i.priority, i.due_at, i.valid_until
  FROM item i
  WHERE NOT EXISTS (SELECT FROM sender.gate g WHERE g.schedule_id = i.schedule_id)
  ORDER BY i.key
  ON CONFLICT DO NOTHING;
END
$$;

GRANT EXECUTE ON FUNCTION sender.park(bytea[], bytea[], uuid[], uuid[], int[], int[], smallint[], double precision[], double precision[], text)
  TO punctual_sender;
