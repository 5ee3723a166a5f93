CREATE FUNCTION scheduler.epoch_ms(p_at timestamptz) RETURNS bigint
LANGUAGE sql STABLE AS $$ SELECT (extract(epoch FROM p_at) * 1000)::bigint $$;

-- Spread over 16 lanes, so that instances share the outbox; events of one run stay in order.
CREATE FUNCTION scheduler.outbox_lane(p_run_id bytea) RETURNS int
LANGUAGE sql IMMUTABLE AS $$ SELECT -1 - (get_byte(p_run_id, 11) & 15) $$;

-- A partition of the due index for each of the UTC days. Attached, not created in place: that would lock out every reader.
CREATE FUNCTION scheduler.ensure_due_partitions(p_days date[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
  v_day date;
  v_name text;
BEGIN
  FOR v_day IN SELECT DISTINCT d FROM unnest(p_days) AS d ORDER BY d LOOP
    v_name := 'due_entry_' || to_char(v_day, 'YYYYMMDD');
    CONTINUE WHEN to_regclass('scheduler.' || v_name) IS NOT NULL;
    PERFORM pg_advisory_xact_lock(7003, 0);
    CONTINUE WHEN to_regclass('scheduler.' || v_name) IS NOT NULL;
    EXECUTE format('CREATE TABLE scheduler.%I (LIKE scheduler.due_entry INCLUDING ALL) WITH (autovacuum_vacuum_insert_scale_factor = 0.5, autovacuum_analyze_scale_factor = 0.2)', v_name);
    EXECUTE format('ALTER TABLE scheduler.due_entry ATTACH PARTITION scheduler.%I FOR VALUES FROM (%L) TO (%L)',
      v_name, v_day::timestamp AT TIME ZONE 'UTC', (v_day + 1)::timestamp AT TIME ZONE 'UTC');
  END LOOP;
END
$$;

-- Drops the partitions of days that are over and empty; answers how many. Whoever waits for the lock too long comes again later.
CREATE FUNCTION scheduler.drop_past_due_partitions() RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
  v_table text;
  v_empty boolean;
  v_dropped int := 0;
BEGIN
  FOR v_table IN
    SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'scheduler.due_entry'::regclass
      AND to_date(right(c.relname, 8), 'YYYYMMDD') < (clock_timestamp() AT TIME ZONE 'UTC')::date - 1
    ORDER BY c.relname LIMIT 8
  LOOP
    EXECUTE format('SELECT NOT EXISTS (SELECT FROM scheduler.%I)', v_table) INTO v_empty;
    CONTINUE WHEN NOT v_empty;
    BEGIN
      EXECUTE format('LOCK TABLE scheduler.due_entry, scheduler.%I IN ACCESS EXCLUSIVE MODE', v_table);
      EXECUTE format('SELECT NOT EXISTS (SELECT FROM scheduler.%I)', v_table) INTO v_empty;
      IF v_empty THEN
        EXECUTE format('DROP TABLE scheduler.%I', v_table);
        v_dropped := v_dropped + 1;
      END IF;
    EXCEPTION WHEN lock_not_available OR undefined_table THEN
      RETURN v_dropped;
    END;
  END LOOP;
  RETURN v_dropped;
END
$$;

-- The sender that owns a number says how many records its lane may take. A level, so a lost or repeated report does no harm.
CREATE FUNCTION scheduler.report_credit(p_sender text, p_number_ids uuid[], p_credits int[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_now timestamptz := clock_timestamp();
  v_work boolean;
BEGIN
  WITH report AS (
    SELECT number_id, max(credit) AS credit FROM unnest(p_number_ids, p_credits) AS x(number_id, credit)
    GROUP BY number_id ORDER BY number_id
  ), before AS MATERIALIZED (
    SELECT c.number_id, c.credit, c.reported_at FROM scheduler.number_credit c JOIN report r USING (number_id)
  ), written AS (
    INSERT INTO scheduler.number_credit AS c (number_id, credit, reported_at, sender)
    SELECT number_id, credit, v_now, p_sender FROM report ORDER BY number_id
    ON CONFLICT (number_id) DO UPDATE SET credit = excluded.credit, reported_at = excluded.reported_at, sender = excluded.sender
      -- What a sender says when it gives a number up must not silence the one that has taken it over.
      WHERE excluded.credit > 0 OR c.sender = excluded.sender OR c.reported_at < v_now - interval '5 s'
    RETURNING c.number_id, c.credit
  )
  SELECT EXISTS (
    SELECT FROM written w LEFT JOIN before b USING (number_id)
    WHERE w.credit > 0 AND (b.number_id IS NULL OR b.credit < w.credit OR b.reported_at < v_now - interval '5 s')
      AND EXISTS (SELECT FROM scheduler.active_run a WHERE a.number_id = w.number_id AND a.waiting IS NULL)
  ) INTO v_work;
  IF v_work THEN
    PERFORM pg_notify('punctual_release', '');
  END IF;
END
$$;

-- Wakes what is due, then takes, for every number with credit and no release under way, the least served runs of its most
-- urgent priority, and leases the number. The last row has no run: it says what the clock is and when to come again.
-- Nothing is subtracted here: a release that dies leaves credit and cursor as they were.
CREATE FUNCTION scheduler.pick_slices(
  p_holder text, p_lease_ms int, p_credit_age_ms int, p_wake int, p_numbers int, p_runs int, p_records int, p_look_ahead_ms int
) RETURNS TABLE (
  run_id bytea, schedule_id uuid, number_id uuid, provider_identity text, revision int, priority int, pass int, leave_out text,
  start_tag bigint, from_position int, until_position int, end_position int, quota int, due_at_ms bigint, valid_until_ms bigint,
  traceparent text, hashes bytea, now_ms double precision, next_due_ms double precision,
  woken int, set_aside int, skipped int, unserved boolean, more boolean
)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
-- Fresh tables have no statistics: without this the planner at times hashes whole tables to find a handful of rows.
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
  v_now timestamptz := clock_timestamp();
  v_until timestamptz := v_now + p_look_ahead_ms * interval '1 ms';
  v_next timestamptz;
  v_woken int := 0;
BEGIN
  -- Literal instants let the planner leave out the partitions of all other days before it locks them.
  EXECUTE format('SELECT due_at FROM scheduler.due_entry WHERE due_at <= %L ORDER BY due_at LIMIT 1', v_until) INTO v_next;
  IF v_next <= v_now THEN
    EXECUTE format($wake$
      WITH due AS MATERIALIZED (
        SELECT due_at, run_id FROM scheduler.due_entry WHERE due_at <= %1$L ORDER BY due_at LIMIT %2$s FOR UPDATE SKIP LOCKED
      ), gone AS (
        DELETE FROM scheduler.due_entry d USING due
        WHERE d.due_at = due.due_at AND d.run_id = due.run_id AND d.due_at <= %1$L
        RETURNING d.run_id, d.revision
      )
      INSERT INTO scheduler.active_run (run_id, schedule_id, number_id, provider_identity, revision, audience_id, priority,
                                        until_position, due_at, valid_until, traceparent, leave_out)
      SELECT r.run_id, r.schedule_id, r.number_id, r.provider_identity, r.revision, r.audience_id, r.priority,
             r.total, r.due_at, r.valid_until, r.traceparent, CASE WHEN r.released_before THEN 'claimed' END
      FROM gone JOIN scheduler.run r ON r.run_id = gone.run_id
      WHERE r.revision = gone.revision AND r.status = 'planned'
      ON CONFLICT (run_id) DO NOTHING
    $wake$, v_now, p_wake);
    GET DIAGNOSTICS v_woken = ROW_COUNT;
    EXECUTE format('SELECT due_at FROM scheduler.due_entry WHERE due_at <= %L ORDER BY due_at LIMIT 1', v_until) INTO v_next;
  END IF;

  RETURN QUERY
  WITH RECURSIVE lane(number_id) AS (
    (SELECT a.number_id FROM scheduler.active_run a WHERE a.waiting IS NULL ORDER BY a.number_id LIMIT 1)
    UNION ALL
    SELECT (SELECT a.number_id FROM scheduler.active_run a WHERE a.waiting IS NULL AND a.number_id > lane.number_id
            ORDER BY a.number_id LIMIT 1)
    FROM lane WHERE lane.number_id IS NOT NULL
  ), candidate AS MATERIALIZED (
    SELECT c.number_id, sum(least(c.credit, f.remaining)) OVER turns - least(c.credit, f.remaining) AS before
    FROM lane l JOIN scheduler.number_credit c ON c.number_id = l.number_id
    CROSS JOIN LATERAL (
      SELECT a.until_position - a.position AS remaining FROM scheduler.active_run a
      WHERE a.number_id = l.number_id AND a.waiting IS NULL ORDER BY a.priority, a.served, a.run_id LIMIT 1
    ) f
    WHERE c.credit > 0
      AND c.reported_at > v_now - p_credit_age_ms * interval '1 ms'
      AND (c.lease_until IS NULL OR c.lease_until <= v_now)
      AND NOT EXISTS (SELECT FROM sender.number_hold_public h WHERE h.number_id = c.number_id)
    WINDOW turns AS (ORDER BY c.lease_until NULLS FIRST, c.number_id)
    LIMIT p_numbers
  ), free AS MATERIALIZED (
    SELECT c.number_id, c.credit, c.lane_time, c.lease_until
    FROM scheduler.number_credit c
    WHERE c.number_id = ANY (ARRAY(SELECT x.number_id FROM candidate x WHERE x.before < p_records))
      AND c.credit > 0 AND (c.lease_until IS NULL OR c.lease_until <= v_now)
    -- A report of credit has the row for a millisecond: not worth waiting for, but worth another look at once.
    FOR UPDATE OF c SKIP LOCKED
  ), seen AS MATERIALIZED (
    SELECT f.credit, f.lease_until, greatest(a.served, f.lane_time[a.priority]) AS start_tag, a.*,
      CASE
        WHEN g.status IS NULL THEN 'no_gate'
        WHEN g.status = 'cancelled' THEN 'cancelled'
        WHEN a.valid_until <= v_now THEN 'expired'
        WHEN g.revision <> a.revision THEN 'revised'
        WHEN g.status = 'paused' THEN 'paused'
        WHEN g.run_hold_reason IS NOT NULL THEN 'held'
      END AS obstacle
    FROM free f
    CROSS JOIN LATERAL (
      SELECT x.* FROM scheduler.active_run x WHERE x.number_id = f.number_id AND x.waiting IS NULL
      ORDER BY x.priority, x.served, x.run_id LIMIT p_runs
    ) a
    LEFT JOIN LATERAL (SELECT p.status, p.revision, p.run_hold_reason FROM sender.gate_public p WHERE p.schedule_id = a.schedule_id) g ON true
  ), obstructed AS MATERIALIZED (
    SELECT s.run_id, s.obstacle FROM seen s WHERE s.obstacle IS NOT NULL LIMIT 500
  ), put_aside AS (
    -- By an array and not by a join: the planner takes the table for empty and would read all of it for every row.
    UPDATE scheduler.active_run a
    SET waiting = (SELECT o.obstacle FROM obstructed o WHERE o.run_id = a.run_id), waiting_since = v_now, looked_at = v_now
    WHERE a.run_id = ANY (ARRAY(SELECT o.run_id FROM obstructed o)) AND a.waiting IS NULL
    RETURNING 1
  ), eligible AS (
    SELECT s.*, count(*) OVER (PARTITION BY s.number_id) AS competitors
    FROM (SELECT x.*, min(x.priority) OVER (PARTITION BY x.number_id) AS top FROM seen x WHERE x.obstacle IS NULL) s
    WHERE s.priority = s.top
  ), wanted AS (
    -- A run that leaves recipients out may have to walk far to find one; its quota is what it may hand over.
    SELECT e.*, least(e.until_position - e.position, CASE WHEN e.leave_out IS NULL THEN ceil(e.credit::numeric / e.competitors)::int ELSE 5000 END) AS walk,
      least(e.until_position - e.position, ceil(e.credit::numeric / e.competitors)::int) AS wish
    FROM eligible e
  ), granted AS (
    SELECT w.*, least(w.wish, w.credit - coalesce(sum(w.wish) OVER least_served - w.wish, 0))::int AS grant_of
    FROM wanted w
    WINDOW least_served AS (PARTITION BY w.number_id ORDER BY w.start_tag, w.run_id)
  ), limited AS MATERIALIZED (
    SELECT g.*, sum(g.grant_of) OVER (ORDER BY g.lease_until NULLS FIRST, g.number_id) - sum(g.grant_of) OVER (PARTITION BY g.number_id) AS before
    FROM granted g WHERE g.grant_of > 0
  ), slice AS MATERIALIZED (
    SELECT l.*, l.position + CASE WHEN l.leave_out IS NULL THEN l.grant_of ELSE l.walk END AS stop
    FROM limited l WHERE l.before < p_records
  ), leased AS (
    UPDATE scheduler.number_credit c SET lease_holder = p_holder, lease_until = v_now + p_lease_ms * interval '1 ms'
    WHERE c.number_id = ANY (ARRAY(SELECT DISTINCT s.number_id FROM slice s))
    RETURNING 1
  )
  SELECT s.run_id, s.schedule_id, s.number_id, s.provider_identity, s.revision, s.priority::int, s.pass::int, s.leave_out,
    s.start_tag, s.position, s.stop, s.until_position, s.grant_of, scheduler.epoch_ms(s.due_at), scheduler.epoch_ms(s.valid_until),
    s.traceparent, h.hashes, NULL::double precision, NULL::double precision, NULL::int, NULL::int, NULL::int, NULL::boolean, NULL::boolean
  FROM slice s
  LEFT JOIN LATERAL (
    -- A slice seldom touches more than two chunks; eight bytes for each recipient, in the audience's order.
    SELECT string_agg(
      substring(v.hashes FROM greatest(s.position - v.chunk * 500, 0) * 8 + 1
                         FOR (least(s.stop - v.chunk * 500, v.count) - greatest(s.position - v.chunk * 500, 0)) * 8),
      ''::bytea ORDER BY v.chunk) AS hashes
    FROM api.audience_chunk_public v
    WHERE v.audience_id = s.audience_id AND v.chunk BETWEEN s.position / 500 AND (s.stop - 1) / 500
  ) h ON true
  UNION ALL
  SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    extract(epoch FROM v_now)::double precision * 1000, extract(epoch FROM v_next)::double precision * 1000, v_woken,
    (SELECT count(*)::int FROM put_aside) + 0 * (SELECT count(*)::int FROM leased),
    (SELECT count(*)::int FROM candidate x WHERE x.before < p_records) - (SELECT count(*)::int FROM free),
    -- Counted no further than needed: is there more than what this round brings to its end or sets aside?
    (SELECT count(*) FROM (
       SELECT FROM scheduler.active_run a WHERE a.waiting IS NULL
       LIMIT 1 + (SELECT count(*) FROM slice x WHERE x.stop = x.until_position) + (SELECT count(*) FROM put_aside)) any_active
    ) > (SELECT count(*) FROM slice x WHERE x.stop = x.until_position) + (SELECT count(*) FROM put_aside),
    -- Numbers that did not fit into this round.
    (SELECT count(*) FROM candidate) > (SELECT count(DISTINCT x.number_id) FROM slice x);
END
$$;

-- What was produced: cursors move (only from where they were picked), credit is subtracted, numbers are free again. A slice that
-- could not be produced comes with p_untils = p_froms and 0 released.
CREATE FUNCTION scheduler.advance_slices(
  p_holder text, p_run_ids bytea[], p_revisions int[], p_passes int[], p_froms int[], p_untils int[], p_released int[],
  p_number_ids uuid[], p_priorities int[], p_start_tags bigint[], p_check_after_ms int
) RETURNS TABLE (moved int, finished int)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
SET enable_mergejoin = off SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_now timestamptz := clock_timestamp();
BEGIN
  -- In the order of ids, as everybody else does: first active runs, then runs, then numbers.
  PERFORM 1 FROM scheduler.active_run a WHERE a.run_id = ANY (p_run_ids) ORDER BY a.run_id FOR UPDATE;

  WITH slice AS MATERIALIZED (
    SELECT * FROM unnest(p_run_ids, p_revisions, p_passes, p_froms, p_untils, p_released, p_start_tags)
      AS s(run_id, revision, pass, from_position, until_position, released, start_tag)
  ), at_end AS (
    DELETE FROM scheduler.active_run a USING slice s
    WHERE a.run_id = ANY (p_run_ids) AND a.run_id = s.run_id AND a.revision = s.revision AND a.pass = s.pass AND a.position = s.from_position
      AND s.until_position >= a.until_position
    RETURNING a.run_id, a.until_position, a.pass
  ), under_way AS (
    UPDATE scheduler.active_run a SET position = s.until_position, served = s.start_tag + s.released
    FROM slice s
    WHERE a.run_id = ANY (p_run_ids) AND a.run_id = s.run_id AND a.revision = s.revision AND a.pass = s.pass AND a.position = s.from_position
      AND s.until_position > s.from_position AND s.until_position < a.until_position
    RETURNING 1
  ), released AS (
    UPDATE scheduler.run r SET status = 'released', released_position = e.until_position, changed_at = v_now,
      check_at = v_now + p_check_after_ms * interval '1 ms'
    FROM at_end e WHERE r.run_id = e.run_id
    RETURNING r.run_id, r.schedule_id, r.revision, r.released_position, e.pass
  ), told AS (
    INSERT INTO scheduler.outbox (lane, topic, key, draft)
    SELECT scheduler.outbox_lane(r.run_id), 'runs', r.run_id, scheduler.run_released(r.run_id, r.schedule_id, r.revision, r.released_position, v_now)
    FROM released r WHERE r.pass = 0
    RETURNING 1
  )
  SELECT (SELECT count(*) FROM under_way), (SELECT count(*) FROM at_end) + 0 * (SELECT count(*) FROM told) INTO moved, finished;

  WITH used AS MATERIALIZED (
    SELECT n.number_id, min(n.priority) AS priority, sum(n.released)::int AS released, max(n.start_tag) AS start_tag
    FROM unnest(p_number_ids, p_priorities, p_released, p_start_tags) AS n(number_id, priority, released, start_tag)
    GROUP BY n.number_id
  ), locked AS MATERIALIZED (
    SELECT c.number_id FROM scheduler.number_credit c WHERE c.number_id = ANY (p_number_ids) ORDER BY c.number_id FOR UPDATE
  )
  UPDATE scheduler.number_credit c SET
    credit = greatest(c.credit - u.released, 0),
    lane_time[u.priority] = greatest(c.lane_time[u.priority], u.start_tag),
    lease_holder = CASE WHEN c.lease_holder = p_holder THEN NULL ELSE c.lease_holder END,
    lease_until = CASE WHEN c.lease_holder = p_holder THEN v_now ELSE c.lease_until END
  FROM used u
  WHERE c.number_id = ANY (ARRAY(SELECT l.number_id FROM locked l)) AND c.number_id = u.number_id;
  RETURN NEXT;
END
$$;

CREATE FUNCTION scheduler.run_released(p_run_id bytea, p_schedule_id uuid, p_revision int, p_released int, p_at timestamptz) RETURNS jsonb
LANGUAGE sql STABLE AS $$
  SELECT jsonb_build_object('name', 'RunReleased', 'event', jsonb_build_object(
    'at', scheduler.epoch_ms(p_at), 'runId', encode(p_run_id, 'hex'), 'scheduleId', replace(p_schedule_id::text, '-', ''),
    'revision', p_revision, 'released', p_released))
$$;

CREATE FUNCTION scheduler.recipients_refused(
  p_run scheduler.run, p_from int, p_until int, p_status text, p_reason text, p_at timestamptz
) RETURNS jsonb
LANGUAGE sql STABLE AS $$
  SELECT jsonb_build_object('name', 'RecipientsRefused', 'event', jsonb_build_object(
    'at', scheduler.epoch_ms(p_at), 'runId', encode(p_run.run_id, 'hex'), 'scheduleId', replace(p_run.schedule_id::text, '-', ''),
    'tenantId', replace(p_run.tenant_id::text, '-', ''), 'revision', p_run.revision, 'fromPosition', p_from, 'untilPosition', p_until,
    'count', p_until - p_from, 'status', p_status, 'reason', p_reason))
$$;

-- Takes runs out of the due index and off the active ones, and tells that everybody who was not handed over is final.
-- What was handed over is still watched.
CREATE FUNCTION scheduler.end_runs(p_run_ids bytea[], p_status text, p_reason text, p_check_after_ms int) RETURNS int
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
SET enable_mergejoin = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_now timestamptz := clock_timestamp();
  v_ended int;
BEGIN
  IF cardinality(p_run_ids) = 0 THEN
    RETURN 0;
  END IF;
  -- The entry before the active row, in two statements: a wake that was quicker has committed once the first is done.
  DELETE FROM scheduler.due_entry d USING scheduler.run r
  WHERE r.run_id = ANY (p_run_ids) AND d.due_at = r.due_at AND d.run_id = r.run_id;
  PERFORM 1 FROM scheduler.active_run a WHERE a.run_id = ANY (p_run_ids) ORDER BY a.run_id FOR UPDATE;
  PERFORM 1 FROM scheduler.run r WHERE r.run_id = ANY (p_run_ids) ORDER BY r.run_id FOR UPDATE;

  WITH gone AS (
    DELETE FROM scheduler.active_run a WHERE a.run_id = ANY (p_run_ids)
    RETURNING a.run_id, a.position, a.until_position, a.pass
  ), ended AS (
    UPDATE scheduler.run r SET
      released_position = CASE WHEN g.pass > 0 THEN r.released_position ELSE coalesce(g.position, 0) END,
      status = CASE WHEN coalesce(g.position, 0) > 0 OR g.pass > 0 OR r.released_before THEN 'released' ELSE 'ended' END,
      check_at = CASE WHEN coalesce(g.position, 0) > 0 OR g.pass > 0 OR r.released_before THEN v_now + p_check_after_ms * interval '1 ms' END,
      changed_at = v_now
    FROM scheduler.run b LEFT JOIN gone g ON g.run_id = b.run_id
    WHERE b.run_id = ANY (p_run_ids) AND r.run_id = b.run_id AND r.status = 'planned'
    RETURNING r, coalesce(g.position, 0) AS from_position, coalesce(g.until_position, r.total) AS until_position, coalesce(g.pass, 0) AS pass
  ), told AS (
    INSERT INTO scheduler.outbox (lane, topic, key, draft)
    SELECT scheduler.outbox_lane((e.r).run_id), 'runs', (e.r).run_id, x.draft
    FROM ended e CROSS JOIN LATERAL (VALUES
      (1, scheduler.recipients_refused(e.r, e.from_position, e.until_position, p_status, p_reason, v_now)),
      (2, CASE WHEN e.pass = 0 THEN scheduler.run_released((e.r).run_id, (e.r).schedule_id, (e.r).revision, e.from_position, v_now) END)
    ) AS x(place, draft)
    WHERE x.draft IS NOT NULL
    ORDER BY (e.r).run_id, x.place
    RETURNING 1
  )
  SELECT count(*) + 0 * (SELECT count(*) FROM told) INTO v_ended FROM ended;
  RETURN v_ended;
END
$$;

-- One batch of punctual.schedules, folded to the newest plan, cancel and resume of each schedule. Everything is decided by the
-- stream's version, so a batch that comes again changes nothing. Answers the earliest instant that was planned.
CREATE FUNCTION scheduler.apply_changes(
  p_plans jsonb, p_cancelled uuid[], p_cancelled_versions int[], p_resumed uuid[], p_check_after_ms int
) RETURNS TABLE (planned int, ended int, next_due_ms double precision, now_ms double precision)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
SET enable_mergejoin = off SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
  v_now timestamptz := clock_timestamp();
  v_replaced bytea[];
  v_dropped bytea[];
  v_started bytea[] := '{}';
BEGIN
  planned := 0;
  ended := 0;
  IF jsonb_array_length(p_plans) > 0 THEN
    SELECT array_agg(r.run_id ORDER BY r.run_id) FILTER (WHERE x.run_id IS NOT NULL), array_agg(r.run_id) FILTER (WHERE x.run_id IS NULL)
    INTO v_replaced, v_dropped
    FROM (SELECT DISTINCT s."scheduleId" AS schedule_id, s.version FROM jsonb_to_recordset(p_plans) AS s("scheduleId" uuid, version int)) i
    JOIN scheduler.run r ON r.schedule_id = i.schedule_id AND r.version < i.version
    LEFT JOIN LATERAL (
      SELECT decode(n."runId", 'hex') AS run_id FROM jsonb_to_recordset(p_plans) AS n("runId" text) WHERE decode(n."runId", 'hex') = r.run_id
    ) x ON true;

    IF v_replaced IS NOT NULL THEN
      DELETE FROM scheduler.due_entry d USING scheduler.run r
      WHERE r.run_id = ANY (v_replaced) AND d.due_at = r.due_at AND d.run_id = r.run_id;
      PERFORM 1 FROM scheduler.active_run a WHERE a.run_id = ANY (v_replaced) ORDER BY a.run_id FOR UPDATE;
      -- Active once is enough: a slice may have been produced whose cursor never moved.
      WITH gone AS (DELETE FROM scheduler.active_run a WHERE a.run_id = ANY (v_replaced) RETURNING a.run_id)
      SELECT coalesce(array_agg(run_id), '{}') INTO v_started FROM gone;
    END IF;

    WITH incoming AS MATERIALIZED (
      SELECT decode(p."runId", 'hex') AS run_id, p.*,
        to_timestamp(p."dueAt" / 1000.0) AS due, to_timestamp(p."validUntil" / 1000.0) AS valid
      FROM jsonb_to_recordset(p_plans) AS p("runId" text, "scheduleId" uuid, "tenantId" uuid, "numberId" uuid, "providerIdentity" text,
        slot text, "timeZone" text, version int, revision int, "audienceId" uuid, total int, priority int, "dueAt" bigint,
        "validUntil" bigint, traceparent text, draft jsonb)
    ), written AS (
      INSERT INTO scheduler.run AS r (run_id, schedule_id, tenant_id, number_id, provider_identity, slot, time_zone, version, revision,
        audience_id, total, priority, due_at, valid_until, traceparent)
      SELECT run_id, "scheduleId", "tenantId", "numberId", "providerIdentity", slot, "timeZone", version, revision,
        "audienceId", total, priority, due, valid, traceparent
      FROM incoming ORDER BY run_id
      ON CONFLICT (run_id) DO UPDATE SET number_id = excluded.number_id, provider_identity = excluded.provider_identity,
        time_zone = excluded.time_zone, version = excluded.version, revision = excluded.revision, audience_id = excluded.audience_id,
        total = excluded.total, priority = excluded.priority, due_at = excluded.due_at, valid_until = excluded.valid_until,
        traceparent = excluded.traceparent, status = 'planned', released_position = 0, releases_again = 0, check_at = NULL,
        released_before = r.released_before OR r.status = 'released' OR r.released_position > 0 OR r.run_id = ANY (v_started),
        changed_at = v_now
      WHERE r.version < excluded.version
      RETURNING r.*
    ), later AS (
      INSERT INTO scheduler.due_entry (due_at, run_id, revision)
      SELECT due_at, run_id, revision FROM written WHERE due_at > v_now
      RETURNING due_at
    ), at_once AS (
      INSERT INTO scheduler.active_run (run_id, schedule_id, number_id, provider_identity, revision, audience_id, priority,
                                        until_position, due_at, valid_until, traceparent, leave_out)
      SELECT run_id, schedule_id, number_id, provider_identity, revision, audience_id, priority,
             total, due_at, valid_until, traceparent, CASE WHEN released_before THEN 'claimed' END
      FROM written WHERE due_at <= v_now
      RETURNING due_at
    ), told AS (
      INSERT INTO scheduler.outbox (lane, topic, key, draft)
      SELECT scheduler.outbox_lane(i.run_id), 'runs', i.run_id, i.draft FROM incoming i JOIN written w ON w.run_id = i.run_id ORDER BY i.run_id
      RETURNING 1
    )
    SELECT (SELECT count(*) FROM written) + 0 * (SELECT count(*) FROM told),
      (SELECT extract(epoch FROM min(x.due_at))::double precision * 1000
       FROM (SELECT due_at FROM later UNION ALL SELECT due_at FROM at_once) x)
    INTO planned, next_due_ms;

    -- A revision that no longer has a slot takes that slot's run back.
    ended := scheduler.end_runs(coalesce(v_dropped, '{}'), 'cancelled', 'cancelled', p_check_after_ms);
  END IF;

  IF cardinality(p_cancelled) > 0 THEN
    ended := ended + scheduler.end_runs(
      coalesce((SELECT array_agg(r.run_id ORDER BY r.run_id)
        FROM unnest(p_cancelled, p_cancelled_versions) AS c(schedule_id, version)
        JOIN scheduler.run r ON r.schedule_id = c.schedule_id AND r.version < c.version), '{}'),
      'cancelled', 'cancelled', p_check_after_ms);
    UPDATE scheduler.run r SET version = c.version
    FROM unnest(p_cancelled, p_cancelled_versions) AS c(schedule_id, version)
    WHERE r.schedule_id = c.schedule_id AND r.version < c.version;
  END IF;

  IF cardinality(p_resumed) > 0 THEN
    UPDATE scheduler.active_run a SET waiting = NULL, waiting_since = NULL, looked_at = NULL
    WHERE a.schedule_id = ANY (p_resumed) AND a.waiting IN ('paused', 'held');
    IF FOUND THEN
      next_due_ms := extract(epoch FROM v_now) * 1000;
    END IF;
  END IF;
  now_ms := extract(epoch FROM clock_timestamp()) * 1000;
  IF next_due_ms <= now_ms + 1500 THEN
    PERFORM pg_notify('punctual_release', '');
  END IF;
  RETURN NEXT;
END
$$;

-- Runs whose validity has passed before everybody was handed over.
CREATE FUNCTION scheduler.expire_runs(p_limit int, p_check_after_ms int) RETURNS int
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN scheduler.end_runs(
    coalesce((SELECT array_agg(x.run_id ORDER BY x.run_id) FROM (
      SELECT a.run_id FROM scheduler.active_run a WHERE a.valid_until <= clock_timestamp()
      ORDER BY a.valid_until LIMIT p_limit FOR UPDATE SKIP LOCKED) x), '{}'),
    'expired', 'expired', p_check_after_ms);
END
$$;

-- Looks again at runs that were set aside: releasable ones compete again, cancelled ones end even if the event never came, and
-- those that have waited for as long as a hold may last are given up.
CREATE FUNCTION scheduler.look_again(p_limit int, p_every_ms int, p_give_up_ms bigint, p_check_after_ms int)
RETURNS TABLE (looked_at int, freed int, cancelled int, given_up int)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  v_now timestamptz := clock_timestamp();
  v_cancelled bytea[];
  v_held bytea[];
  v_broken bytea[];
BEGIN
  WITH old AS MATERIALIZED (
    SELECT a.run_id, a.schedule_id, a.revision, a.waiting,
      greatest(a.waiting_since, a.due_at) <= v_now - p_give_up_ms * interval '1 ms' AS given_up
    FROM scheduler.active_run a
    WHERE a.waiting IS NOT NULL AND a.looked_at <= v_now - p_every_ms * interval '1 ms'
    ORDER BY a.looked_at LIMIT p_limit FOR UPDATE SKIP LOCKED
  ), now_is AS MATERIALIZED (
    SELECT o.run_id, o.waiting, o.given_up, coalesce(g.status = 'cancelled', false) AS cancelled,
      coalesce(g.status = 'active' AND g.run_hold_reason IS NULL AND g.revision = o.revision, false) AND o.waiting <> 'expired' AS releasable
    FROM old o LEFT JOIN LATERAL (
      SELECT p.status, p.revision, p.run_hold_reason FROM sender.gate_public p WHERE p.schedule_id = o.schedule_id
    ) g ON true
  ), changed AS (
    UPDATE scheduler.active_run a SET
      waiting = CASE WHEN n.releasable AND NOT n.given_up THEN NULL ELSE a.waiting END,
      waiting_since = CASE WHEN n.releasable AND NOT n.given_up THEN NULL ELSE a.waiting_since END,
      looked_at = CASE WHEN n.releasable AND NOT n.given_up THEN NULL ELSE v_now END
    FROM now_is n WHERE a.run_id = n.run_id
    RETURNING a.waiting IS NULL AS free
  )
  SELECT (SELECT count(*) FROM changed), (SELECT count(*) FILTER (WHERE free) FROM changed),
    array_agg(n.run_id ORDER BY n.run_id) FILTER (WHERE n.cancelled),
    array_agg(n.run_id ORDER BY n.run_id) FILTER (WHERE NOT n.cancelled AND n.given_up AND n.waiting IN ('paused', 'held')),
    array_agg(n.run_id ORDER BY n.run_id) FILTER (WHERE NOT n.cancelled AND n.given_up AND n.waiting IN ('no_gate', 'no_audience', 'revised'))
  INTO looked_at, freed, v_cancelled, v_held, v_broken
  FROM now_is n;
  cancelled := scheduler.end_runs(coalesce(v_cancelled, '{}'), 'cancelled', 'cancelled', p_check_after_ms);
  given_up := scheduler.end_runs(coalesce(v_held, '{}'), 'failed', 'hold_expired', p_check_after_ms)
    + scheduler.end_runs(coalesce(v_broken, '{}'), 'refused', 'internal', p_check_after_ms);
  RETURN NEXT;
END
$$;

-- Runs whose number has been held for as long as a hold may last, counted from the later of hold and due.
CREATE FUNCTION scheduler.give_up_held_numbers(p_limit int, p_give_up_ms bigint, p_check_after_ms int) RETURNS int
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_long_ago timestamptz := clock_timestamp() - p_give_up_ms * interval '1 ms';
BEGIN
  -- Nearly always there is none, and active runs need not be looked at.
  IF NOT EXISTS (SELECT FROM sender.number_hold_public h WHERE h.since <= v_long_ago) THEN
    RETURN 0;
  END IF;
  RETURN scheduler.end_runs(
    coalesce((SELECT array_agg(x.run_id ORDER BY x.run_id) FROM (
      SELECT a.run_id FROM scheduler.active_run a
      WHERE a.number_id IN (SELECT h.number_id FROM sender.number_hold_public h WHERE h.since <= v_long_ago)
        AND a.waiting IS NULL AND a.due_at <= v_long_ago
      LIMIT p_limit FOR UPDATE OF a SKIP LOCKED) x), '{}'),
    'failed', 'hold_expired', p_check_after_ms);
END
$$;

-- Released runs whose time to be looked at has come. Those with an answer for everybody end here. A number whose sender is not
-- there answers nobody: its runs come again later, since nothing is given up because we were down. The rest is answered, for the
-- caller to work on until p_lease_ms from now.
CREATE FUNCTION scheduler.take_unanswered(p_limit int, p_credit_age_ms int, p_lease_ms int) RETURNS TABLE (
  run_id bytea, schedule_id uuid, revision int, audience_id uuid, due_at timestamptz, released_position int, releases_again int,
  gate_status text, expired boolean, ended int, postponed int
)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  v_now timestamptz := clock_timestamp();
BEGIN
  RETURN QUERY
  WITH next AS MATERIALIZED (
    SELECT r.run_id, r.check_at, sum(r.released_position) OVER (ORDER BY r.check_at, r.run_id) - r.released_position AS before
    FROM (SELECT x.run_id, x.check_at, x.released_position FROM scheduler.run x WHERE x.check_at <= v_now ORDER BY x.check_at LIMIT p_limit) r
  ), old AS MATERIALIZED (
    -- A million claims are counted in a good second: no more in one statement.
    SELECT r.* FROM scheduler.run r
    WHERE r.run_id = ANY (ARRAY(SELECT n.run_id FROM next n WHERE n.before < 1000000)) AND r.check_at <= v_now
    FOR UPDATE SKIP LOCKED
  ), seen AS MATERIALIZED (
    SELECT o.*,
      sender.count_answered(o.run_id) >= CASE WHEN o.released_before THEN o.total ELSE o.released_position END AS answered,
      coalesce((SELECT c.reported_at > v_now - p_credit_age_ms * interval '1 ms' FROM scheduler.number_credit c
                WHERE c.number_id = o.number_id), false) AS served
    FROM old o
  ), changed AS (
    UPDATE scheduler.run r SET
      status = CASE WHEN s.answered THEN 'ended' ELSE 'released' END,
      check_at = CASE WHEN s.answered THEN NULL ELSE v_now + p_lease_ms * interval '1 ms' END,
      changed_at = v_now
    FROM seen s WHERE r.run_id = s.run_id
    RETURNING r.run_id
  )
  SELECT s.run_id, s.schedule_id, s.revision, s.audience_id, s.due_at, s.released_position, s.releases_again::int,
    (SELECT g.status FROM sender.gate_public g WHERE g.schedule_id = s.schedule_id), coalesce(s.valid_until <= v_now, false), 0, 0
  FROM seen s WHERE NOT s.answered AND s.served
  UNION ALL
  SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    (SELECT count(*)::int FROM seen s WHERE s.answered) + 0 * (SELECT count(*)::int FROM changed),
    (SELECT count(*)::int FROM seen s WHERE NOT s.answered AND NOT s.served);
END
$$;

-- Puts a released run back among the active ones, to be handed over again without those that have an answer.
CREATE FUNCTION scheduler.release_again(p_run_id bytea, p_revision int) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  WITH again AS (
    UPDATE scheduler.run r SET status = 'planned', check_at = NULL, releases_again = r.releases_again + 1, changed_at = clock_timestamp()
    WHERE r.run_id = p_run_id AND r.revision = p_revision AND r.status = 'released' AND r.releases_again < 3
    RETURNING r.*
  )
  INSERT INTO scheduler.active_run (run_id, schedule_id, number_id, provider_identity, revision, audience_id, priority,
                                    until_position, due_at, valid_until, traceparent, leave_out, pass)
  SELECT run_id, schedule_id, number_id, provider_identity, revision, audience_id, priority,
         released_position, due_at, valid_until, traceparent, 'answered', releases_again
  FROM again;
  RETURN FOUND;
END
$$;

-- Everybody has an answer now.
CREATE FUNCTION scheduler.end_watch(p_run_id bytea, p_revision int) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE scheduler.run r SET status = 'ended', check_at = NULL, changed_at = clock_timestamp()
  WHERE r.run_id = p_run_id AND r.revision = p_revision AND r.status = 'released';
  RETURN FOUND;
END
$$;
