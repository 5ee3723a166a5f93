-- Evidence that an attempt reached the provider. `failed` is not among them: it says that the message will not arrive.
CREATE FUNCTION sender.is_positive(p_kind text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN p_kind IN ('sent', 'delivered', 'read', 'held', 'played');

-- Moves claims that the stored evidence says something about, and tells it. Answers how many moved.
--   positive, of any attempt:   sending, retry_wait, uncertain, unconfirmed -> accepted
--   failed, of the last attempt:                     uncertain, unconfirmed -> failed, unless there is positive evidence too
CREATE FUNCTION sender.settle_by_evidence(p_occurrence_ids bytea[], p_now timestamptz) RETURNS int
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
  v_count int;
BEGIN
  PERFORM 1 FROM sender.claim c
  WHERE c.occurrence_id = ANY (p_occurrence_ids) AND c.state IN ('sending', 'retry_wait', 'uncertain', 'unconfirmed')
  ORDER BY c.occurrence_id FOR UPDATE;
  IF NOT FOUND THEN
    RETURN 0;
  END IF;

  WITH said AS MATERIALIZED (
    SELECT c.occurrence_id, c.state AS state_before, p.*, f.*
    FROM sender.claim c
    LEFT JOIN LATERAL (
      -- The attempt that arrived first, and its best-known id; a held message is accepted as well.
      SELECT e.attempt AS positive_attempt, min(e.provider_at) AS positive_at, max(e.provider_message_id) AS message_id,
        bool_and(e.kind = 'held') AS only_held
      FROM sender.evidence e
      WHERE e.occurrence_id = c.occurrence_id AND sender.is_positive(e.kind)
      GROUP BY e.attempt ORDER BY e.attempt LIMIT 1
    ) AS p ON true
    LEFT JOIN LATERAL (
      SELECT coalesce(e.code, 'request_rejected') AS failed_code, e.provider_code AS failed_provider_code, e.text AS failed_text
      FROM sender.evidence e
      WHERE e.occurrence_id = c.occurrence_id AND e.kind = 'failed' AND e.attempt = c.attempt
    ) AS f ON true
    WHERE c.occurrence_id = ANY (p_occurrence_ids)
      AND (c.state IN ('sending', 'retry_wait', 'uncertain', 'unconfirmed') AND p.positive_at IS NOT NULL
        OR c.state IN ('uncertain', 'unconfirmed') AND f.failed_code IS NOT NULL)
  ), moved AS (
    UPDATE sender.claim c
    SET state = CASE WHEN s.positive_at IS NOT NULL THEN 'accepted' ELSE 'failed' END,
      step = c.step + 1, sweep_at = NULL, next_attempt_at = NULL, reason = NULL, updated_at = p_now,
      error_code = CASE WHEN s.positive_at IS NULL THEN s.failed_code END,
      provider_message_id = coalesce(s.message_id, c.provider_message_id)
    FROM said s WHERE c.occurrence_id = s.occurrence_id
    RETURNING c.*
  ), told AS (
    INSERT INTO sender.outbox (lane, topic, key, draft)
    SELECT sender.draft_lane(m.occurrence_id), 'deliveries', m.occurrence_id, CASE m.state
      -- Providers' clocks have whole seconds, and some are wrong: an answer is not before its call, nor later than now.
      WHEN 'accepted' THEN sender.submitted_draft(m, g.tenant_id, a.attempt, s.message_id,
        CASE WHEN s.only_held THEN 'held' ELSE 'accepted' END, t.called_at, greatest(t.called_at, least(s.positive_at, p_now)), NULL, 'evidence', NULL,
        p_now)
      ELSE sender.failed_draft(m, g.tenant_id, s.failed_code, s.failed_provider_code, s.failed_text, true, NULL, p_now)
      END
    FROM moved m
    JOIN said s ON s.occurrence_id = m.occurrence_id
    JOIN sender.gate g ON g.schedule_id = m.schedule_id
    -- Evidence filed before a claim existed (attempt 0) is about the attempt that there is.
    CROSS JOIN LATERAL (SELECT CASE WHEN s.positive_attempt BETWEEN 1 AND m.attempt THEN s.positive_attempt ELSE m.attempt END AS attempt) AS a
    CROSS JOIN LATERAL (
      SELECT coalesce(
        (SELECT o.called_at FROM sender.attempt_outcome o
         WHERE o.occurrence_id = m.occurrence_id AND o.attempt = a.attempt AND o.called_at IS NOT NULL LIMIT 1),
        (SELECT b.begun_at FROM sender.attempt_begun b WHERE b.occurrence_id = m.occurrence_id AND b.attempt = a.attempt)
      ) AS called_at
    ) AS t
    ORDER BY m.occurrence_id
  ), unheld AS (
    DELETE FROM sender.waiting w USING moved m WHERE w.occurrence_id = m.occurrence_id
  )
  SELECT count(*) INTO v_count FROM moved;
  RETURN v_count;
END
$$;

-- Stored in every state of the claim in which it says something, and without a claim. An accepted one is final: no attempt follows
-- it that would have to know, and what is told of the message afterwards is the business of the status join.
-- Evidence that names no attempt (0) is filed under the latest one.
CREATE FUNCTION sender.record_evidence(
  p_occurrence_ids bytea[], p_attempts int[], p_kinds text[], p_provider_at double precision[], p_provider_message_ids text[],
  p_codes text[], p_provider_codes text[], p_texts text[]
) RETURNS int
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
  -- The claims first: no result, sweep or further attempt may pass between the evidence and what follows from it.
  PERFORM 1 FROM sender.claim c
  WHERE c.occurrence_id = ANY (p_occurrence_ids) AND c.state <> 'accepted' ORDER BY c.occurrence_id FOR UPDATE;

  -- In a statement of its own: a claim that the first one waited for may be accepted by now.
  INSERT INTO sender.evidence (occurrence_id, attempt, kind, provider_at, provider_message_id, code, provider_code, text)
  SELECT DISTINCT ON (u.id, attempt, u.kind) u.id, a.attempt, u.kind, sender.instant(u.provider_at), u.message_id, u.code, u.provider_code, u.text
  FROM unnest(p_occurrence_ids, p_attempts, p_kinds, p_provider_at, p_provider_message_ids, p_codes, p_provider_codes, p_texts)
    AS u (id, attempt, kind, provider_at, message_id, code, provider_code, text)
  LEFT JOIN sender.claim c ON c.occurrence_id = u.id AND (u.attempt = 0 OR c.state = 'accepted')
  CROSS JOIN LATERAL (SELECT CASE WHEN u.attempt > 0 THEN u.attempt ELSE coalesce(c.attempt, 0) END::smallint AS attempt) AS a
  WHERE c.state IS DISTINCT FROM 'accepted'
  ORDER BY u.id, attempt, u.kind, u.provider_at
  ON CONFLICT (occurrence_id, attempt, kind) DO NOTHING;

  RETURN sender.settle_by_evidence(p_occurrence_ids, clock_timestamp());
END
$$;

GRANT EXECUTE ON FUNCTION sender.is_positive(text), sender.settle_by_evidence(bytea[], timestamptz),
  sender.record_evidence(bytea[], int[], text[], double precision[], text[], text[], text[], text[]) TO punctual_sender;
