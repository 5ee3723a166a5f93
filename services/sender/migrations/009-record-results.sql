-- Results of attempts. The attempt's outcome row is written in any case; the claim moves only if it is still about this
-- attempt (compare-and-set), and only what moved is published.
--   sending    -> accepted, failed, retry_wait, uncertain
--   uncertain  -> accepted, failed, retry_wait            (a late result of the same attempt)
--   accepted   -> accepted with what the answer adds      (evidence was faster than the answer)
CREATE FUNCTION sender.record_results(
  p_occurrence_ids bytea[], p_attempts int[], p_outcomes text[], p_called_at double precision[], p_ended_at double precision[],
  p_error_codes text[], p_provider_codes text[], p_texts text[], p_provider_message_ids text[], p_provider_statuses text[],
  p_reached_provider boolean[], p_next_attempt_at double precision[], p_uses_retry boolean[], p_reasons text[], p_waits text[],
  p_trace_ids text[], p_traceparents text[], p_evidence_window_ms bigint, p_resend_after_ms bigint
) RETURNS TABLE (ord int, applied boolean, state text, step int)
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_now timestamptz;
  v_applied bytea[];
  v_uncertain bytea[];
BEGIN
  -- Gate rows before claims, and only those whose first outcomes are still counted.
  PERFORM 1 FROM sender.gate g
  WHERE g.first_outcomes < 10 AND g.schedule_id IN (
    SELECT c.schedule_id FROM sender.claim c WHERE c.occurrence_id = ANY (p_occurrence_ids))
  ORDER BY g.schedule_id FOR NO KEY UPDATE;
  PERFORM 1 FROM sender.claim c WHERE c.occurrence_id = ANY (p_occurrence_ids) ORDER BY c.occurrence_id FOR UPDATE;
  v_now := clock_timestamp();

  WITH result AS MATERIALIZED (
    SELECT DISTINCT ON (u.id, u.attempt) u.*, sender.instant(u.called_ms) AS called_at, sender.instant(u.ended_ms) AS ended_at
    FROM unnest(p_occurrence_ids, p_attempts, p_outcomes, p_called_at, p_ended_at, p_error_codes, p_provider_codes, p_texts,
      p_provider_message_ids, p_provider_statuses, p_reached_provider, p_next_attempt_at, p_uses_retry, p_reasons, p_waits, p_trace_ids,
      p_traceparents) WITH ORDINALITY
      AS u (id, attempt, outcome, called_ms, ended_ms, error_code, provider_code, text, message_id, provider_status, reached_provider,
        next_ms, uses_retry, reason, waits, trace_id, traceparent, ord)
    ORDER BY u.id, u.attempt, u.ord
  ), judged AS MATERIALIZED (
    SELECT r.*, c.state AS state_before, g.tenant_id, g.status AS gate_status, g.on_uncertain, g.hold_give_up_ms,
      CASE
        WHEN c.attempt <> r.attempt THEN NULL
        WHEN c.state IN ('sending', 'uncertain') AND r.outcome IN ('retry', 'not_sent') THEN 'retry_wait'
        WHEN c.state IN ('sending', 'uncertain') AND r.outcome IN ('accepted', 'failed') THEN r.outcome
        WHEN c.state = 'sending' AND r.outcome = 'uncertain' THEN 'uncertain'
        WHEN c.state = 'accepted' AND c.called_at IS NULL AND r.outcome = 'accepted' THEN 'accepted'
      END AS new_state
    FROM result r
    LEFT JOIN sender.claim c ON c.occurrence_id = r.id
    LEFT JOIN sender.gate g ON g.schedule_id = c.schedule_id
  ), outcome AS (
    INSERT INTO sender.attempt_outcome (occurrence_id, attempt, outcome, called_at, ended_at, recorded_at, applied, error_code,
      provider_code, text, provider_message_id, trace_id, waits)
    SELECT j.id, j.attempt, j.outcome, j.called_at, j.ended_at, v_now, j.new_state IS NOT NULL, j.error_code, j.provider_code, j.text,
      j.message_id, j.trace_id, j.waits::jsonb
    FROM judged j ORDER BY j.id, j.attempt
    ON CONFLICT DO NOTHING
  ), moved AS (
    UPDATE sender.claim c
    SET state = j.new_state, step = c.step + 1, updated_at = v_now,
      -- Set by an answer only: without it an accepted claim stands on evidence alone.
      called_at = CASE WHEN j.new_state = 'uncertain' THEN NULL ELSE coalesce(j.called_at, j.ended_at) END,
      error_code = CASE WHEN j.new_state = 'accepted' THEN NULL ELSE j.error_code END,
      provider_message_id = coalesce(j.message_id, c.provider_message_id),
      reason = CASE WHEN j.new_state IN ('retry_wait', 'uncertain') THEN j.reason END,
      retries_used = c.retries_used + CASE WHEN j.new_state = 'retry_wait' AND j.uses_retry THEN 1 ELSE 0 END,
      held_since = CASE WHEN j.new_state = 'retry_wait' OR j.new_state = 'uncertain' AND j.on_uncertain = 'resend'
        THEN coalesce(c.held_since, v_now) ELSE c.held_since END,
      sweep_at = CASE WHEN j.new_state = 'uncertain' THEN v_now + p_evidence_window_ms * interval '1 ms' END,
      next_attempt_at = CASE
        WHEN j.new_state = 'retry_wait' THEN coalesce(sender.instant(j.next_ms), v_now)
        WHEN j.new_state = 'uncertain' AND j.on_uncertain = 'resend' THEN c.deadline + p_resend_after_ms * interval '1 ms' END
    FROM judged j
    WHERE c.occurrence_id = j.id AND j.new_state IS NOT NULL
    RETURNING c.*
  ), told AS (
    INSERT INTO sender.outbox (lane, topic, key, draft)
    SELECT sender.draft_lane(m.occurrence_id), 'deliveries', m.occurrence_id, CASE m.state
      WHEN 'accepted' THEN sender.message_draft('MessageSubmitted', m, j.tenant_id, v_now, jsonb_build_object('attempt', j.attempt,
        'providerMessageId', j.message_id, 'providerStatus', coalesce(j.provider_status, 'accepted'),
        'calledAt', coalesce(j.called_ms, j.ended_ms)::bigint, 'submittedAt', j.ended_ms::bigint, 'waits', coalesce(j.waits::jsonb, '[]'),
        'by', 'answer', 'traceparent', j.traceparent))
      WHEN 'failed' THEN sender.message_draft('MessageFailed', m, j.tenant_id, v_now, jsonb_build_object('attempt', j.attempt,
        'code', j.error_code, 'providerCode', j.provider_code, 'text', j.text, 'reachedProvider', j.reached_provider,
        'traceparent', j.traceparent))
      WHEN 'retry_wait' THEN sender.message_draft('SendRetryPlanned', m, j.tenant_id, v_now, jsonb_build_object('attempt', j.attempt,
        'code', coalesce(j.error_code, 'not_sent'), 'providerCode', j.provider_code, 'text', j.text, 'nextAttemptAt', sender.ms(m.next_attempt_at),
        'traceparent', j.traceparent))
      ELSE sender.message_draft('OutcomeUncertain', m, j.tenant_id, v_now, jsonb_build_object('attempt', j.attempt, 'reason', j.reason,
        'since', sender.ms(v_now), 'until', sender.ms(m.sweep_at), 'traceparent', j.traceparent))
      END
    FROM moved m JOIN judged j ON j.id = m.occurrence_id AND j.new_state IS NOT NULL
    ORDER BY m.occurrence_id
  ), waits_again AS (
    INSERT INTO sender.waiting AS w (occurrence_id, schedule_id, number_id, revision, position, priority, attempt, due_at, valid_until,
      since, wake_at, gives_up_at, reason)
    SELECT m.occurrence_id, m.schedule_id, m.number_id, m.revision, m.position, m.priority, m.attempt, m.due_at, m.valid_until,
      v_now, least(CASE WHEN j.gate_status <> 'cancelled' THEN m.next_attempt_at ELSE v_now END, m.valid_until, k.gives_up_at),
      k.gives_up_at, CASE m.state WHEN 'retry_wait' THEN m.reason ELSE 'retry' END
    FROM moved m
    JOIN judged j ON j.id = m.occurrence_id AND j.new_state IS NOT NULL
    CROSS JOIN LATERAL (
      SELECT greatest(m.due_at, coalesce(m.held_since, v_now)) + j.hold_give_up_ms * interval '1 ms' AS gives_up_at
    ) AS k
    WHERE m.next_attempt_at IS NOT NULL
    ORDER BY m.occurrence_id
    ON CONFLICT (occurrence_id) DO UPDATE
    SET attempt = excluded.attempt, since = excluded.since, wake_at = excluded.wake_at, gives_up_at = excluded.gives_up_at,
      reason = excluded.reason, taken_until = '-infinity'
  ), waits_no_more AS (
    DELETE FROM sender.waiting w USING moved m WHERE w.occurrence_id = m.occurrence_id AND m.next_attempt_at IS NULL
  )
  SELECT coalesce(array_agg(m.occurrence_id), '{}'), array_agg(m.occurrence_id) FILTER (WHERE m.state = 'uncertain')
  INTO v_applied, v_uncertain
  FROM moved m;

  -- A `failed` receipt may have come while the outcome was still open.
  IF v_uncertain IS NOT NULL THEN
    PERFORM sender.settle_by_evidence(v_uncertain, v_now);
  END IF;
  PERFORM sender.watch_first_outcomes(p_occurrence_ids, p_attempts, v_applied, v_now);

  RETURN QUERY
  SELECT u.ord::int, coalesce(u.id = ANY (v_applied) AND c.attempt = u.attempt, false), c.state::text, coalesce(c.step, 0)
  FROM unnest(p_occurrence_ids, p_attempts) WITH ORDINALITY AS u (id, attempt, ord)
  LEFT JOIN sender.claim c ON c.occurrence_id = u.id
  ORDER BY u.ord;
END
$$;

-- A run whose first ten outcomes are all wrong template parameters would only fail on: it is held, once, until it is resumed.
CREATE FUNCTION sender.watch_first_outcomes(p_occurrence_ids bytea[], p_attempts int[], p_applied bytea[], p_now timestamptz) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  WITH seen AS MATERIALIZED (
    SELECT c.schedule_id, count(*)::int AS outcomes, (count(*) FILTER (WHERE c.error_code = 'template_parameters'))::int AS template_failures
    FROM sender.claim c
    JOIN sender.gate g ON g.schedule_id = c.schedule_id AND g.first_outcomes < 10 AND g.revision = c.revision
    WHERE c.occurrence_id = ANY (p_applied) AND c.state IN ('accepted', 'failed')
    GROUP BY c.schedule_id
  ), counted AS (
    UPDATE sender.gate g
    SET first_outcomes = least(10, g.first_outcomes + s.outcomes),
      first_template_failures = least(least(10, g.first_outcomes + s.outcomes), g.first_template_failures + s.template_failures),
      run_hold_reason = CASE WHEN k.hopeless THEN 'template' ELSE g.run_hold_reason END,
      run_hold_since = CASE WHEN k.hopeless THEN p_now ELSE g.run_hold_since END,
      run_hold_detail = CASE WHEN k.hopeless THEN 'the first ten messages all failed with template_parameters' ELSE g.run_hold_detail END,
      updated_at = p_now
    FROM seen s
    CROSS JOIN LATERAL (
      SELECT x.first_outcomes + s.outcomes >= 10 AND x.first_template_failures + s.template_failures = x.first_outcomes + s.outcomes
        AND x.run_hold_reason IS NULL AND x.status <> 'cancelled' AS hopeless
      FROM sender.gate x WHERE x.schedule_id = s.schedule_id
    ) AS k
    WHERE g.schedule_id = s.schedule_id
    RETURNING g.*, k.hopeless
  )
  INSERT INTO sender.outbox (lane, topic, key, draft)
  SELECT sender.draft_lane(c.run_id), 'deliveries', c.run_id, jsonb_build_object('name', 'RunHeld', 'event', jsonb_build_object(
    'at', sender.ms(p_now), 'runId', encode(c.run_id, 'hex'), 'scheduleId', sender.hex(c.schedule_id), 'tenantId', sender.hex(c.tenant_id),
    'reason', c.run_hold_reason, 'since', sender.ms(c.run_hold_since), 'detail', c.run_hold_detail))
  FROM counted c WHERE c.hopeless;
END
$$;

GRANT EXECUTE ON FUNCTION sender.record_results(bytea[], int[], text[], double precision[], double precision[], text[], text[], text[],
  text[], text[], boolean[], double precision[], boolean[], text[], text[], text[], text[], bigint, bigint),
  sender.watch_first_outcomes(bytea[], int[], bytea[], timestamptz) TO punctual_sender;
