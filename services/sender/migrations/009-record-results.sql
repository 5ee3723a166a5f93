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
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
  v_now timestamptz := clock_timestamp();
  v_ords int[];
  v_applied boolean[];
  v_states text[];
  v_steps int[];
  v_moved bytea[];
  v_uncertain bytea[];
  v_unwatched boolean;
BEGIN
  WITH result AS MATERIALIZED (
    SELECT DISTINCT ON (u.id, u.attempt) u.*, sender.instant(u.called_ms) AS called_at, sender.instant(u.ended_ms) AS ended_at
    FROM unnest(p_occurrence_ids, p_attempts, p_outcomes, p_called_at, p_ended_at, p_error_codes, p_provider_codes, p_texts,
      p_provider_message_ids, p_provider_statuses, p_reached_provider, p_next_attempt_at, p_uses_retry, p_reasons, p_waits, p_trace_ids,
      p_traceparents) WITH ORDINALITY
      AS u (id, attempt, outcome, called_ms, ended_ms, error_code, provider_code, text, message_id, provider_status, reached_provider,
        next_ms, uses_retry, reason, waits, trace_id, traceparent, ord)
    ORDER BY u.id, u.attempt, u.ord
  ), locked AS MATERIALIZED (
    SELECT c.occurrence_id, c.schedule_id, c.attempt, c.state, c.step, c.called_at
    FROM result r JOIN sender.claim c ON c.occurrence_id = r.id
    ORDER BY c.occurrence_id FOR UPDATE OF c
  ), judged AS MATERIALIZED (
    SELECT r.*, c.state AS state_before, c.step AS step_before, g.tenant_id, g.status AS gate_status, g.on_uncertain, g.hold_give_up_ms,
      g.first_outcomes,
      CASE
        WHEN c.attempt <> r.attempt THEN NULL
        WHEN c.state IN ('sending', 'uncertain') AND r.outcome IN ('retry', 'not_sent') THEN 'retry_wait'
        WHEN c.state IN ('sending', 'uncertain') AND r.outcome IN ('accepted', 'failed') THEN r.outcome
        WHEN c.state = 'sending' AND r.outcome = 'uncertain' THEN 'uncertain'
        WHEN c.state = 'accepted' AND c.called_at IS NULL AND r.outcome = 'accepted' THEN 'accepted'
      END AS new_state
    -- FULL, since a full join can't be a nested loop, which the planner takes when it expects one row.
    FROM result r
    FULL JOIN (SELECT DISTINCT ON (l.occurrence_id) l.* FROM locked l ORDER BY l.occurrence_id) AS c ON c.occurrence_id = r.id
    LEFT JOIN sender.gate g ON g.schedule_id = c.schedule_id
  ), outcome AS (
    INSERT INTO sender.attempt_outcome (occurrence_id, attempt, outcome, called_at, ended_at, recorded_at, applied, error_code,
      provider_code, text, provider_message_id, trace_id, waits)
    SELECT j.id, j.attempt, j.outcome, j.called_at, j.ended_at, v_now, j.new_state IS NOT NULL, j.error_code, j.provider_code, j.text,
      j.message_id, j.trace_id, j.waits::json
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
    RETURNING c AS claim, j AS result
  ), told AS (
    INSERT INTO sender.outbox (lane, topic, key, draft)
    SELECT sender.draft_lane((m.claim).occurrence_id), 'deliveries', (m.claim).occurrence_id,
      CASE (m.claim).state
        WHEN 'accepted' THEN sender.submitted_draft(m.claim, (m.result).tenant_id, (m.result).attempt, (m.result).message_id,
          coalesce((m.result).provider_status, 'accepted'), coalesce((m.result).called_at, (m.result).ended_at), (m.result).ended_at,
          (m.result).waits, 'answer', (m.result).traceparent, v_now)
        WHEN 'failed' THEN sender.failed_draft(m.claim, (m.result).tenant_id, (m.result).error_code, (m.result).provider_code,
          (m.result).text, (m.result).reached_provider, (m.result).traceparent, v_now)
        WHEN 'retry_wait' THEN sender.message_draft('SendRetryPlanned', m.claim, (m.result).tenant_id, v_now,
          ',"attempt":' || (m.result).attempt || ',"code":' || sender.quoted(coalesce((m.result).error_code, 'not_sent'))
          || ',"providerCode":' || sender.quoted((m.result).provider_code) || ',"text":' || sender.quoted((m.result).text)
          || ',"nextAttemptAt":' || sender.ms((m.claim).next_attempt_at) || ',"traceparent":' || sender.quoted((m.result).traceparent))
        ELSE sender.uncertain_draft(m.claim, (m.result).tenant_id, (m.result).traceparent, v_now)
      END
    FROM moved m ORDER BY (m.claim).occurrence_id
  ), waits_again AS (
    INSERT INTO sender.waiting AS w (occurrence_id, schedule_id, number_id, revision, position, priority, attempt, due_at, valid_until,
      since, wake_at, gives_up_at, reason)
    SELECT c.occurrence_id, c.schedule_id, c.number_id, c.revision, c.position, c.priority, c.attempt, c.due_at, c.valid_until,
      v_now, least(CASE WHEN m.gate_status <> 'cancelled' THEN c.next_attempt_at ELSE v_now END, c.valid_until, k.gives_up_at),
      k.gives_up_at, CASE c.state WHEN 'retry_wait' THEN c.reason ELSE 'retry' END
    FROM (SELECT x.claim, (x.result).gate_status, (x.result).hold_give_up_ms FROM moved x) AS m
    CROSS JOIN LATERAL (SELECT (m.claim).*) AS c
    CROSS JOIN LATERAL (SELECT greatest(c.due_at, c.held_since) + m.hold_give_up_ms * interval '1 ms' AS gives_up_at) AS k
    WHERE c.next_attempt_at IS NOT NULL
    ORDER BY c.occurrence_id
    ON CONFLICT (occurrence_id) DO UPDATE
    SET attempt = excluded.attempt, since = excluded.since, wake_at = excluded.wake_at, gives_up_at = excluded.gives_up_at,
      reason = excluded.reason, taken_until = '-infinity'
  ), waits_no_more AS (
    DELETE FROM sender.waiting w USING moved m WHERE w.occurrence_id = (m.claim).occurrence_id AND (m.claim).next_attempt_at IS NULL
  )
  SELECT array_agg(j.ord::int), array_agg(j.new_state IS NOT NULL), array_agg(coalesce(j.new_state, j.state_before)),
    array_agg(CASE WHEN j.new_state IS NULL THEN coalesce(j.step_before, 0) ELSE j.step_before + 1 END),
    array_agg(j.id) FILTER (WHERE j.new_state IS NOT NULL), array_agg(j.id) FILTER (WHERE j.new_state = 'uncertain'),
    coalesce(bool_or(j.first_outcomes < 10 AND j.new_state IN ('accepted', 'failed')), false)
  INTO v_ords, v_applied, v_states, v_steps, v_moved, v_uncertain, v_unwatched
  FROM judged j;

  -- A `failed` receipt may have come while the outcome was still open.
  IF v_uncertain IS NOT NULL THEN
    PERFORM sender.settle_by_evidence(v_uncertain, v_now);
  END IF;
  IF v_unwatched THEN
    PERFORM sender.watch_first_outcomes(v_moved, v_now);
  END IF;

  RETURN QUERY SELECT u.ord, u.applied, u.state, u.step FROM unnest(v_ords, v_applied, v_states, v_steps) AS u (ord, applied, state, step);
END
$$;

-- A run whose first ten outcomes are all wrong template parameters would only fail on: it is held, once, until it is resumed.
CREATE FUNCTION sender.watch_first_outcomes(p_moved bytea[], p_now timestamptz) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
  PERFORM 1 FROM sender.gate g
  WHERE g.first_outcomes < 10 AND g.schedule_id IN (SELECT c.schedule_id FROM sender.claim c WHERE c.occurrence_id = ANY (p_moved))
  ORDER BY g.schedule_id FOR NO KEY UPDATE;

  WITH seen AS MATERIALIZED (
    SELECT c.schedule_id, count(*)::int AS outcomes, (count(*) FILTER (WHERE c.error_code = 'template_parameters'))::int AS template_failures
    FROM sender.claim c
    JOIN sender.gate g ON g.schedule_id = c.schedule_id AND g.first_outcomes < 10 AND g.revision = c.revision
    WHERE c.occurrence_id = ANY (p_moved) AND c.state IN ('accepted', 'failed')
    GROUP BY c.schedule_id
  ), counted AS (
    UPDATE sender.gate g
    SET first_outcomes = least(10, g.first_outcomes + s.outcomes),
      first_template_failures = least(10, g.first_outcomes + s.outcomes, g.first_template_failures + s.template_failures),
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
  SELECT sender.draft_lane(c.run_id), 'deliveries', c.run_id, json_build_object('name', 'RunHeld', 'event', json_build_object(
    'at', sender.ms(p_now), 'runId', encode(c.run_id, 'hex'), 'scheduleId', sender.hex(c.schedule_id), 'tenantId', sender.hex(c.tenant_id),
    'reason', c.run_hold_reason, 'since', sender.ms(c.run_hold_since), 'detail', c.run_hold_detail))
  FROM counted c WHERE c.hopeless;
END
$$;

GRANT EXECUTE ON FUNCTION sender.record_results(bytea[], int[], text[], double precision[], double precision[], text[], text[], text[],
  text[], text[], boolean[], double precision[], boolean[], text[], text[], text[], text[], bigint, bigint),
  sender.watch_first_outcomes(bytea[], timestamptz) TO punctual_sender;
