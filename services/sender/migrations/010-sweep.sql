-- What nobody will report any more. Instances may sweep at the same time: each skips what another has in hand.
--   sending, deadline + grace over:     settled by evidence that is there already, else uncertain
--   uncertain, evidence window over:    settled by evidence that is there already, else unconfirmed
CREATE FUNCTION sender.sweep_deadlines(
  p_grace_ms bigint, p_evidence_window_ms bigint, p_resend_after_ms bigint, p_limit int, OUT overdue int, OUT unconfirmed int
) RETURNS record
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
  v_now timestamptz := clock_timestamp();
  v_overdue bytea[];
  v_ended bytea[];
  v_open bytea[];
BEGIN
  SELECT coalesce(array_agg(x.occurrence_id), '{}') INTO v_overdue FROM (
    SELECT c.occurrence_id FROM sender.claim c
    WHERE c.sweep_at <= v_now - p_grace_ms * interval '1 ms' AND c.state = 'sending'
    ORDER BY c.sweep_at LIMIT p_limit FOR UPDATE SKIP LOCKED
  ) AS x;
  SELECT coalesce(array_agg(x.occurrence_id), '{}') INTO v_ended FROM (
    SELECT c.occurrence_id FROM sender.claim c
    WHERE c.sweep_at <= v_now AND c.state = 'uncertain'
    ORDER BY c.sweep_at LIMIT p_limit FOR UPDATE SKIP LOCKED
  ) AS x;
  overdue := cardinality(v_overdue);
  unconfirmed := 0;
  IF overdue + cardinality(v_ended) = 0 THEN
    RETURN;
  END IF;

  PERFORM sender.settle_by_evidence(v_overdue || v_ended, v_now);

  WITH moved AS (
    UPDATE sender.claim c
    SET state = 'uncertain', reason = 'deadline', step = c.step + 1, updated_at = v_now,
      sweep_at = v_now + p_evidence_window_ms * interval '1 ms',
      next_attempt_at = CASE WHEN g.on_uncertain = 'resend' THEN c.deadline + p_resend_after_ms * interval '1 ms' END,
      held_since = CASE WHEN g.on_uncertain = 'resend' THEN coalesce(c.held_since, v_now) ELSE c.held_since END
    FROM sender.gate g
    WHERE c.occurrence_id = ANY (v_overdue) AND c.state = 'sending' AND g.schedule_id = c.schedule_id
    RETURNING c.*
  ), told AS (
    INSERT INTO sender.outbox (lane, topic, key, draft)
    SELECT sender.draft_lane(m.occurrence_id), 'deliveries', m.occurrence_id, sender.uncertain_draft(m, g.tenant_id, NULL, v_now)
    FROM moved m JOIN sender.gate g ON g.schedule_id = m.schedule_id ORDER BY m.occurrence_id
  ), again AS (
    INSERT INTO sender.waiting AS w (occurrence_id, schedule_id, number_id, revision, position, priority, attempt, due_at, valid_until,
      since, wake_at, gives_up_at, reason)
    SELECT m.occurrence_id, m.schedule_id, m.number_id, m.revision, m.position, m.priority, m.attempt, m.due_at, m.valid_until, v_now,
      least(m.next_attempt_at, m.valid_until, k.gives_up_at), k.gives_up_at, 'retry'
    FROM moved m
    JOIN sender.gate g ON g.schedule_id = m.schedule_id
    CROSS JOIN LATERAL (SELECT greatest(m.due_at, m.held_since) + g.hold_give_up_ms * interval '1 ms' AS gives_up_at) AS k
    WHERE m.next_attempt_at IS NOT NULL
    ORDER BY m.occurrence_id
    ON CONFLICT (occurrence_id) DO UPDATE
    SET attempt = excluded.attempt, since = excluded.since, wake_at = excluded.wake_at, gives_up_at = excluded.gives_up_at,
      reason = excluded.reason, taken_until = '-infinity'
  )
  SELECT array_agg(m.occurrence_id) INTO v_open FROM moved m;
  IF v_open IS NOT NULL THEN
    PERFORM sender.settle_by_evidence(v_open, v_now);
  END IF;

  WITH moved AS (
    UPDATE sender.claim c
    SET state = 'unconfirmed', step = c.step + 1, sweep_at = NULL, next_attempt_at = NULL, updated_at = v_now
    WHERE c.occurrence_id = ANY (v_ended) AND c.state = 'uncertain'
    RETURNING c.*
  ), told AS (
    INSERT INTO sender.outbox (lane, topic, key, draft)
    SELECT sender.draft_lane(m.occurrence_id), 'deliveries', m.occurrence_id,
      sender.message_draft('OutcomeUnconfirmed', m, g.tenant_id, v_now, ',"attempt":' || m.attempt)
    FROM moved m JOIN sender.gate g ON g.schedule_id = m.schedule_id ORDER BY m.occurrence_id
  ), resent_no_more AS (
    DELETE FROM sender.waiting w USING moved m WHERE w.occurrence_id = m.occurrence_id
  )
  SELECT count(*) INTO unconfirmed FROM moved;
END
$$;

GRANT EXECUTE ON FUNCTION sender.sweep_deadlines(bigint, bigint, bigint, int) TO punctual_sender;
