-- What the api and the scheduler may do to the gate. Each runs with the owner's rights and nobody else's search path.
-- A cancel, pause, revise or resume takes the stripe of its schedule exclusively; sender.decide takes it shared and reads
-- afterwards, so every send is either before or after a change. 256 stripes, not a lock per schedule: those overflow the
-- lock table (53200). The waiter gives up after 1 s rather than hold every send behind it for longer.

CREATE FUNCTION sender.run_begin(p_run_id bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN p_run_id || '\x0000000000000000'::bytea;

CREATE FUNCTION sender.run_end(p_run_id bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN p_run_id || '\xffffffffffffffff'::bytea;

CREATE FUNCTION sender.stripe(p_schedule_id uuid) RETURNS int
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN get_byte(uuid_send(p_schedule_id), 15);

CREATE FUNCTION sender.change_gate(p_schedule_id uuid, p_action text, p_revision int, p_details jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '1s'
AS $$
DECLARE
  v_now timestamptz;
  v_run_id bytea;
BEGIN
  PERFORM pg_advisory_xact_lock(7001, sender.stripe(p_schedule_id));
  -- After the wait for the lock: what is cancelled from now on is told apart by it.
  v_now := clock_timestamp();

  CASE p_action
  WHEN 'open' THEN
    INSERT INTO sender.gate (schedule_id, tenant_id, number_id, mode, channel, category, revision, on_uncertain, retry_delays_ms,
      run_id, hold_give_up_ms, updated_at)
    VALUES (p_schedule_id, (p_details ->> 'tenantId')::uuid, (p_details ->> 'numberId')::uuid, p_details ->> 'mode',
      p_details ->> 'channel', p_details ->> 'category', p_revision, p_details ->> 'onUncertain',
      ARRAY(SELECT jsonb_array_elements_text(p_details -> 'retryDelaysMs')::int), decode(p_details ->> 'runId', 'hex'),
      (p_details ->> 'holdGiveUpMs')::bigint, v_now);
    -- Records that were here before their schedule.
    INSERT INTO sender.waiting (occurrence_id, schedule_id, number_id, revision, position, priority, attempt, due_at, valid_until,
      since, wake_at, gives_up_at, reason)
    SELECT DISTINCT ON (p.key) p.key, p.schedule_id, p.number_id, p.revision, p.position, p.priority, 0, p.due_at, p.valid_until,
      v_now, v_now, greatest(p.due_at, v_now) + (p_details ->> 'holdGiveUpMs')::bigint * interval '1 ms', 'not_yet'
    FROM sender.parked p
    WHERE p.schedule_id = p_schedule_id
    ORDER BY p.key, p.id
    ON CONFLICT DO NOTHING;
    DELETE FROM sender.parked p WHERE p.schedule_id = p_schedule_id;

  WHEN 'revise' THEN
    SELECT g.run_id INTO v_run_id FROM sender.gate g
    WHERE g.schedule_id = p_schedule_id AND g.status <> 'cancelled' AND g.revision < p_revision;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'schedule % has no gate that revision % can follow', p_schedule_id, p_revision USING ERRCODE = 'PT404';
    END IF;
    IF coalesce((p_details ->> 'audienceChanged')::boolean, false) AND EXISTS (
      SELECT FROM sender.claim c
      WHERE c.occurrence_id BETWEEN sender.run_begin(v_run_id) AND sender.run_end(v_run_id)
    ) THEN
      RAISE EXCEPTION 'the audience can not change: messages of the run are claimed already' USING ERRCODE = 'PT409';
    END IF;
    -- Released again under the new revision; what has a claim finishes under its own.
    DELETE FROM sender.waiting w WHERE w.occurrence_id IN (
      SELECT x.occurrence_id FROM sender.waiting x
      WHERE x.schedule_id = p_schedule_id AND x.attempt = 0 ORDER BY x.occurrence_id FOR UPDATE);
    UPDATE sender.gate g
    SET revision = p_revision,
      number_id = coalesce((p_details ->> 'numberId')::uuid, g.number_id),
      mode = coalesce(p_details ->> 'mode', g.mode),
      channel = coalesce(p_details ->> 'channel', g.channel),
      category = coalesce(p_details ->> 'category', g.category),
      on_uncertain = coalesce(p_details ->> 'onUncertain', g.on_uncertain),
      retry_delays_ms = CASE WHEN p_details ? 'retryDelaysMs'
        THEN ARRAY(SELECT jsonb_array_elements_text(p_details -> 'retryDelaysMs')::int) ELSE g.retry_delays_ms END,
      hold_give_up_ms = coalesce((p_details ->> 'holdGiveUpMs')::bigint, g.hold_give_up_ms),
      -- Other content can be right where the old one was not.
      first_outcomes = 0, first_template_failures = 0, updated_at = v_now
    WHERE g.schedule_id = p_schedule_id;

  WHEN 'pause' THEN
    UPDATE sender.gate g SET status = 'paused', updated_at = v_now WHERE g.schedule_id = p_schedule_id AND g.status = 'active';

  WHEN 'resume' THEN
    PERFORM sender.wake_waiting(p_schedule_id, ARRAY['paused', 'template']);
    UPDATE sender.gate g
    SET status = 'active', run_hold_reason = NULL, run_hold_since = NULL, run_hold_detail = NULL, updated_at = v_now
    WHERE g.schedule_id = p_schedule_id AND g.status <> 'cancelled';

  WHEN 'cancel' THEN
    UPDATE sender.gate g
    SET status = 'cancelled', cancelled_at = v_now, run_hold_reason = NULL, run_hold_since = NULL, run_hold_detail = NULL,
      updated_at = v_now
    WHERE g.schedule_id = p_schedule_id AND g.status <> 'cancelled';

  ELSE
    RAISE EXCEPTION 'the gate knows no action %', p_action USING ERRCODE = '22023';
  END CASE;
END
$$;

-- Rows that wait for one of these reasons are offered again at once. Locked in order, since results lock waiting rows too.
CREATE FUNCTION sender.wake_waiting(p_schedule_id uuid, p_reasons text[]) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM 1 FROM sender.waiting w
  WHERE w.schedule_id = p_schedule_id AND w.reason = ANY (p_reasons) ORDER BY w.occurrence_id FOR UPDATE;
  UPDATE sender.waiting w SET wake_at = least(w.wake_at, clock_timestamp()), taken_until = '-infinity'
  WHERE w.schedule_id = p_schedule_id AND w.reason = ANY (p_reasons);
END
$$;

-- How the messages of a run stand, in one snapshot. What a cancel of the whole schedule ended is not among them, so that
-- it counts as prevented however soon the gate got to it: total - the others.
CREATE FUNCTION sender.count_claims(
  p_run_id bytea,
  OUT sending bigint, OUT accepted bigint, OUT retry_wait bigint, OUT uncertain bigint, OUT unconfirmed bigint,
  OUT failed bigint, OUT refused bigint, OUT expired bigint, OUT cancelled bigint
) RETURNS record
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT count(*) FILTER (WHERE c.state = 'sending'), count(*) FILTER (WHERE c.state = 'accepted'),
    count(*) FILTER (WHERE c.state = 'retry_wait'), count(*) FILTER (WHERE c.state = 'uncertain'),
    count(*) FILTER (WHERE c.state = 'unconfirmed'), count(*) FILTER (WHERE c.state = 'failed'),
    count(*) FILTER (WHERE c.state = 'refused'), count(*) FILTER (WHERE c.state = 'expired'),
    count(*) FILTER (WHERE c.state = 'cancelled')
  FROM sender.claim c
  LEFT JOIN sender.gate g ON g.schedule_id = c.schedule_id AND c.state IN ('refused', 'expired', 'cancelled', 'failed')
  WHERE c.occurrence_id BETWEEN sender.run_begin(p_run_id) AND sender.run_end(p_run_id)
    AND NOT (g.cancelled_at IS NOT NULL AND c.updated_at >= g.cancelled_at AND (c.attempt = 0 OR c.state = 'cancelled'))
$$;

-- The counts of a cancel, and then the end of what waited: retries become cancelled, and so does what was held without a
-- claim, which would otherwise wait for the owner of its number.
CREATE FUNCTION sender.settle_cancel(
  p_schedule_id uuid, p_run_id bytea,
  OUT sending bigint, OUT accepted bigint, OUT retry_wait bigint, OUT uncertain bigint, OUT unconfirmed bigint,
  OUT failed bigint, OUT refused bigint, OUT expired bigint, OUT cancelled bigint
) RETURNS record
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_now timestamptz := clock_timestamp();
  v_gate sender.gate;
BEGIN
  SELECT * INTO STRICT v_gate FROM sender.gate g WHERE g.schedule_id = p_schedule_id;
  IF v_gate.status <> 'cancelled' THEN
    RAISE EXCEPTION 'schedule % is not cancelled', p_schedule_id USING ERRCODE = '55000';
  END IF;

  SELECT k.* INTO sending, accepted, retry_wait, uncertain, unconfirmed, failed, refused, expired, cancelled
  FROM sender.count_claims(p_run_id) AS k;

  PERFORM 1 FROM sender.claim c
  WHERE c.occurrence_id BETWEEN sender.run_begin(p_run_id) AND sender.run_end(p_run_id) AND c.state = 'retry_wait'
  ORDER BY c.occurrence_id FOR UPDATE;

  WITH ended AS (
    UPDATE sender.claim c SET state = 'cancelled', reason = 'cancelled', step = c.step + 1, next_attempt_at = NULL, updated_at = v_now
    WHERE c.occurrence_id BETWEEN sender.run_begin(p_run_id) AND sender.run_end(p_run_id) AND c.state = 'retry_wait'
    RETURNING c.*
  ), told AS (
    INSERT INTO sender.outbox (lane, topic, key, draft)
    SELECT sender.draft_lane(e.occurrence_id), 'deliveries', e.occurrence_id, sender.refused_draft(e, v_gate.tenant_id, 'cancelled', 'cancelled', false, v_now)
    FROM ended e ORDER BY e.occurrence_id
  )
  DELETE FROM sender.waiting w USING ended e WHERE w.occurrence_id = e.occurrence_id;

  WITH held AS MATERIALIZED (
    SELECT w.* FROM sender.waiting w
    WHERE w.schedule_id = p_schedule_id AND w.attempt = 0
      AND w.occurrence_id BETWEEN sender.run_begin(p_run_id) AND sender.run_end(p_run_id)
    ORDER BY w.occurrence_id FOR UPDATE SKIP LOCKED
  ), ended AS (
    INSERT INTO sender.claim (occurrence_id, schedule_id, number_id, revision, position, priority, attempt, due_at, valid_until,
      claimed_at, updated_at, state, reason)
    SELECT h.occurrence_id, h.schedule_id, h.number_id, h.revision, h.position, h.priority, 0, h.due_at, h.valid_until,
      v_now, v_now, 'cancelled', 'cancelled'
    FROM held h ORDER BY h.occurrence_id
    ON CONFLICT (occurrence_id) DO NOTHING
    RETURNING *
  ), told AS (
    INSERT INTO sender.outbox (lane, topic, key, draft)
    SELECT sender.draft_lane(e.occurrence_id), 'deliveries', e.occurrence_id,
      sender.refused_draft(e::sender.claim, v_gate.tenant_id, 'cancelled', 'cancelled', false, v_now)
    FROM ended e ORDER BY e.occurrence_id
  )
  DELETE FROM sender.waiting w USING held h WHERE w.occurrence_id = h.occurrence_id;

  -- What is left may be sent again after an uncertain outcome: the gate ends that when it is asked.
  UPDATE sender.waiting w SET wake_at = least(w.wake_at, v_now)
  WHERE w.occurrence_id IN (
    SELECT x.occurrence_id FROM sender.waiting x WHERE x.schedule_id = p_schedule_id ORDER BY x.occurrence_id FOR UPDATE SKIP LOCKED
  );
END
$$;

-- Named messages of a schedule that goes on. Under the exclusive lock, so that a message is either claimed or prevented.
CREATE FUNCTION sender.cancel_occurrences(
  p_schedule_id uuid, p_run_id bytea, p_occurrence_ids bytea[], p_positions int[], p_due_at timestamptz, p_revision int
) RETURNS TABLE (occurrence_id bytea, prevented boolean, state text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '1s'
AS $$
-- The result columns are named like the table's.
#variable_conflict use_column
DECLARE
  v_now timestamptz;
  v_gate sender.gate;
  v_prevented bytea[];
BEGIN
  PERFORM pg_advisory_xact_lock(7001, sender.stripe(p_schedule_id));
  v_now := clock_timestamp();
  SELECT * INTO STRICT v_gate FROM sender.gate g WHERE g.schedule_id = p_schedule_id;
  PERFORM 1 FROM sender.claim c WHERE c.occurrence_id = ANY (p_occurrence_ids) ORDER BY c.occurrence_id FOR UPDATE;

  WITH named AS MATERIALIZED (
    SELECT DISTINCT ON (n.id) n.id, n.pos FROM unnest(p_occurrence_ids, p_positions) AS n (id, pos)
    WHERE n.id BETWEEN sender.run_begin(p_run_id) AND sender.run_end(p_run_id)
    ORDER BY n.id
  ), unclaimed AS (
    INSERT INTO sender.claim (occurrence_id, schedule_id, number_id, revision, position, priority, attempt, due_at,
      claimed_at, updated_at, state, reason)
    SELECT n.id, p_schedule_id, v_gate.number_id, p_revision, n.pos, 5, 0, p_due_at, v_now, v_now, 'cancelled', 'cancelled'
    FROM named n ORDER BY n.id
    ON CONFLICT (occurrence_id) DO NOTHING
    RETURNING *
  ), waited AS (
    UPDATE sender.claim c SET state = 'cancelled', reason = 'cancelled', step = c.step + 1, next_attempt_at = NULL, updated_at = v_now
    WHERE c.occurrence_id = ANY (p_occurrence_ids) AND c.state = 'retry_wait'
    RETURNING c.*
  ), ended AS MATERIALIZED (
    SELECT u::sender.claim AS c FROM unclaimed u UNION ALL SELECT w::sender.claim FROM waited w
  ), told AS (
    INSERT INTO sender.outbox (lane, topic, key, draft)
    SELECT sender.draft_lane((e.c).occurrence_id), 'deliveries', (e.c).occurrence_id, sender.refused_draft(e.c, v_gate.tenant_id, 'cancelled', 'cancelled', false, v_now)
    FROM ended e ORDER BY (e.c).occurrence_id
  ), unheld AS (
    DELETE FROM sender.waiting w USING ended e WHERE w.occurrence_id = (e.c).occurrence_id
  )
  SELECT coalesce(array_agg((e.c).occurrence_id), '{}') INTO v_prevented FROM ended e;

  RETURN QUERY
  SELECT c.occurrence_id, c.occurrence_id = ANY (v_prevented), c.state::text
  FROM sender.claim c
  WHERE c.occurrence_id = ANY (p_occurrence_ids)
    AND c.occurrence_id BETWEEN sender.run_begin(p_run_id) AND sender.run_end(p_run_id)
  ORDER BY c.occurrence_id;
END
$$;

-- Answered: it has a claim, it waits here, or it is parked.
CREATE FUNCTION sender.answered_in_run(p_run_id bytea) RETURNS SETOF bytea
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT c.occurrence_id FROM sender.claim c
  WHERE c.occurrence_id BETWEEN sender.run_begin(p_run_id) AND sender.run_end(p_run_id)
  UNION
  SELECT w.occurrence_id FROM sender.waiting w
  WHERE w.occurrence_id BETWEEN sender.run_begin(p_run_id) AND sender.run_end(p_run_id)
  UNION
  SELECT p.key FROM sender.parked p
  WHERE p.key BETWEEN sender.run_begin(p_run_id) AND sender.run_end(p_run_id)
$$;

-- The same, counted: claims by their index alone, since there can be a million.
CREATE FUNCTION sender.count_answered(p_run_id bytea) RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT (
    SELECT count(*) FROM sender.claim c
    WHERE c.occurrence_id BETWEEN sender.run_begin(p_run_id) AND sender.run_end(p_run_id)
  ) + (
    SELECT count(*) FROM (
      SELECT w.occurrence_id AS id FROM sender.waiting w
      WHERE w.occurrence_id BETWEEN sender.run_begin(p_run_id) AND sender.run_end(p_run_id)
      UNION
      SELECT p.key FROM sender.parked p
      WHERE p.key BETWEEN sender.run_begin(p_run_id) AND sender.run_end(p_run_id)
    ) AS unclaimed
    WHERE NOT EXISTS (SELECT FROM sender.claim c WHERE c.occurrence_id = unclaimed.id)
  )
$$;

CREATE FUNCTION sender.claimed_in_run(p_run_id bytea) RETURNS SETOF bytea
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT c.occurrence_id FROM sender.claim c
  WHERE c.occurrence_id BETWEEN sender.run_begin(p_run_id) AND sender.run_end(p_run_id)
$$;

-- The scheduler gives messages up that nobody answered for; whatever the gate has answered meanwhile stays. The sender refuses
-- what has no content or no recipient: such a message can never be sent, so its waiting row ends with it.
CREATE FUNCTION sender.refuse_unanswered(
  p_schedule_id uuid, p_occurrence_ids bytea[], p_positions int[], p_due_at timestamptz, p_status text, p_reason text
) RETURNS int
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_now timestamptz;
  v_gate sender.gate;
  v_count int;
BEGIN
  IF p_status NOT IN ('refused', 'cancelled', 'expired') THEN
    RAISE EXCEPTION 'a message can not be % without an attempt', p_status USING ERRCODE = '22023';
  END IF;
  PERFORM pg_advisory_xact_lock_shared(7001, sender.stripe(p_schedule_id));
  v_now := clock_timestamp();
  SELECT * INTO STRICT v_gate FROM sender.gate g WHERE g.schedule_id = p_schedule_id;
  WITH ended AS (
    INSERT INTO sender.claim (occurrence_id, schedule_id, number_id, revision, position, priority, attempt, due_at,
      claimed_at, updated_at, state, reason)
    SELECT n.id, p_schedule_id, v_gate.number_id, v_gate.revision, n.pos, 5, 0, p_due_at, v_now, v_now, p_status, p_reason
    FROM (SELECT DISTINCT ON (u.id) u.id, u.pos FROM unnest(p_occurrence_ids, p_positions) AS u (id, pos) ORDER BY u.id) AS n
    WHERE p_reason IN ('content_missing', 'recipient_missing')
      OR NOT EXISTS (SELECT FROM sender.waiting w WHERE w.occurrence_id = n.id)
    ORDER BY n.id
    ON CONFLICT (occurrence_id) DO NOTHING
    RETURNING *
  ), told AS (
    INSERT INTO sender.outbox (lane, topic, key, draft)
    SELECT sender.draft_lane(e.occurrence_id), 'deliveries', e.occurrence_id, sender.refused_draft(e::sender.claim, v_gate.tenant_id, p_status, p_reason, false, v_now)
    FROM ended e ORDER BY e.occurrence_id
  ), unheld AS (
    DELETE FROM sender.waiting w USING ended e WHERE w.occurrence_id = e.occurrence_id
  )
  SELECT count(*) INTO v_count FROM ended;
  RETURN v_count;
END
$$;

-- What of a run is at a provider now, and what waits here. The small index of unsettled claims, not the run's range; not left to
-- the planner, which reads all claims as long as it has no statistics of a partition.
CREATE FUNCTION sender.live_counts(p_run_id bytea, OUT sending bigint, OUT waiting bigint) RETURNS record
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
  WITH unsettled AS MATERIALIZED (SELECT c.occurrence_id, c.state FROM sender.claim c WHERE c.sweep_at IS NOT NULL)
  SELECT (
    SELECT count(*) FROM unsettled u
    WHERE u.state = 'sending' AND u.occurrence_id BETWEEN sender.run_begin(p_run_id) AND sender.run_end(p_run_id)
  ), (
    SELECT count(*) FROM sender.waiting w
    WHERE w.occurrence_id BETWEEN sender.run_begin(p_run_id) AND sender.run_end(p_run_id)
  )
$$;

-- New credentials, or a probe that found the account well again: whatever waited for the number is offered at once.
CREATE FUNCTION sender.clear_number_hold(p_number_id uuid) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_now timestamptz := clock_timestamp();
  v_tried bytea[];
BEGIN
  UPDATE sender.number_state n
  SET hold_reason = NULL, hold_since = NULL, hold_until = NULL, hold_detail = NULL, updated_at = v_now
  WHERE n.number_id = p_number_id AND n.hold_reason IS NOT NULL;
  IF FOUND THEN
    -- What was sent back by the trouble that held the number has the hold's end for its next attempt, also while it waits for
    -- something else by now. A retry or the limit of a pair keeps its own time.
    SELECT array_agg(w.occurrence_id) INTO v_tried FROM sender.waiting w WHERE w.number_id = p_number_id AND w.attempt > 0;
    PERFORM 1 FROM sender.claim c
    WHERE c.occurrence_id = ANY (v_tried) AND c.state = 'retry_wait' AND c.reason IN ('account', 'circuit')
    ORDER BY c.occurrence_id FOR UPDATE;
    UPDATE sender.claim c SET next_attempt_at = v_now
    WHERE c.occurrence_id = ANY (v_tried) AND c.state = 'retry_wait' AND c.reason IN ('account', 'circuit') AND c.next_attempt_at > v_now;
    PERFORM 1 FROM sender.waiting w
    WHERE w.number_id = p_number_id AND w.reason IN ('account', 'circuit', 'template') ORDER BY w.occurrence_id FOR UPDATE;
    UPDATE sender.waiting w SET wake_at = least(w.wake_at, v_now), taken_until = '-infinity'
    WHERE w.number_id = p_number_id AND w.reason IN ('account', 'circuit', 'template');
  END IF;
END
$$;
