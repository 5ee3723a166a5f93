-- The gate. For each item: may this occurrence be sent now; if not, what becomes of it.
--
-- 1. The stripes of the batch's schedules, shared and in order. A cancel, pause or revise that holds one is waited for.
-- 2. Only then, in statements of their own, everything is read: a statement sees what was committed when it began, so a read in
--    the locking statement would still see the schedule as it was before the cancel it has waited for.
-- 3. The plain yes, for the whole batch in one statement: insert the claim or find that there is one.
-- 4. Plain duplicates: their claim is there and waits for nothing. After a rebalance a fifth of the records come twice.
-- 5. Whatever is left, one by one in the order of the ids.
--
-- This and the other functions of the hot path keep one plan for all calls (force_generic_plan): planned anew for each batch, as
-- PostgreSQL prefers with arrays, a small call costs three times what it does, and results took nested loops over CTEs: 2,600/s
-- instead of 17,000/s. A plan that is kept must not have been made for a partition that was empty then (enable_seqscan).
--
-- `claimed` are the items (numbered from 1) with a first claim: attempt 1, step 1, the item's own revision.
-- `others` has an object for every item that is neither. With p_may_claim false nothing is claimed; items that could be are left.
CREATE FUNCTION sender.decide(
  p_occurrence_ids bytea[], p_schedule_ids uuid[], p_revisions int[], p_number_ids uuid[],
  p_due_at double precision[], p_valid_until double precision[], p_priorities smallint[], p_positions int[],
  p_recipient_hashes bytea[], p_template_keys text[], p_instance text, p_deadline_ms int, p_may_claim boolean,
  OUT claimed int[], OUT duplicates int[], OUT deadline_at double precision, OUT policies jsonb, OUT others jsonb
) RETURNS record
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
  v_now timestamptz;
  v_deadline timestamptz;
  v_others jsonb[] := '{}';
  v_woken bytea[];
  i record;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'the gate needs READ COMMITTED: under % it would not see the cancel it has waited for',
      current_setting('transaction_isolation') USING ERRCODE = '25001';
  END IF;

  PERFORM pg_advisory_xact_lock_shared(7001, s.stripe)
  FROM (SELECT DISTINCT sender.stripe(u.id) AS stripe FROM unnest(p_schedule_ids) AS u (id) ORDER BY 1) AS s;

  v_now := clock_timestamp();
  v_deadline := v_now + p_deadline_ms * interval '1 ms';
  deadline_at := extract(epoch FROM v_deadline) * 1000;
  claimed := '{}';
  duplicates := '{}';

  IF p_may_claim THEN
    WITH plain AS MATERIALIZED (
      -- The same occurrence twice: the second is no plain yes.
      SELECT DISTINCT ON (m.occurrence_id) m.ord::int AS ord, m.occurrence_id, m.schedule_id, m.number_id, m.revision, m.position,
        m.priority, sender.instant(m.due_at) AS due_at, sender.instant(m.valid_until) AS valid_until,
        w.occurrence_id IS NOT NULL AS waited
      FROM unnest(p_occurrence_ids, p_schedule_ids, p_revisions, p_number_ids, p_due_at, p_valid_until, p_priorities, p_positions,
        p_recipient_hashes, p_template_keys) WITH ORDINALITY
        AS m (occurrence_id, schedule_id, revision, number_id, due_at, valid_until, priority, position, recipient_hash, template_key, ord)
      JOIN sender.gate g ON g.schedule_id = m.schedule_id
      LEFT JOIN sender.waiting w ON w.occurrence_id = m.occurrence_id
      WHERE g.status = 'active' AND g.run_hold_reason IS NULL AND g.revision = m.revision
        AND sender.instant(m.due_at) <= v_now AND (m.valid_until IS NULL OR sender.instant(m.valid_until) > v_now)
        AND (w.gives_up_at IS NULL OR w.gives_up_at > v_now)
        AND NOT EXISTS (
          SELECT FROM sender.number_state n
          WHERE n.number_id = m.number_id AND n.hold_reason IS NOT NULL AND (n.hold_until IS NULL OR n.hold_until > v_now))
        AND (m.template_key IS NULL OR NOT EXISTS (
          SELECT FROM sender.template_hold t WHERE t.template_key = m.template_key AND (t.until IS NULL OR t.until > v_now)))
        AND (m.recipient_hash IS NULL OR NOT EXISTS (
          SELECT FROM sender.suppression s
          WHERE s.tenant_id = g.tenant_id AND s.channel = g.channel AND s.recipient_hash = m.recipient_hash
            AND s.category IN ('*', coalesce(g.category, '*'))))
      ORDER BY m.occurrence_id, m.ord
    ), inserted AS (
      INSERT INTO sender.claim (occurrence_id, schedule_id, number_id, revision, position, priority, attempt, due_at, valid_until,
        deadline, sweep_at, claimed_at, updated_at, state)
      SELECT p.occurrence_id, p.schedule_id, p.number_id, p.revision, p.position, p.priority, 1, p.due_at, p.valid_until,
        v_deadline, v_deadline, v_now, v_now, 'sending'
      FROM plain p
      -- Unordered, two batches with the same ids wait for each other: 1,300 claims/s and deadlocks instead of 69,000.
      ORDER BY p.occurrence_id
      ON CONFLICT (occurrence_id) DO NOTHING
      RETURNING occurrence_id
    ), begun AS (
      INSERT INTO sender.attempt_begun (occurrence_id, attempt, begun_at, instance)
      SELECT n.occurrence_id, 1, v_now, p_instance FROM inserted n
    )
    -- FULL, since a full join can't be a nested loop: the planner expects one row, and 200 x 200 comparisons cost 5 ms.
    SELECT coalesce(array_agg(p.ord) FILTER (WHERE n.occurrence_id IS NOT NULL), '{}'),
      array_agg(n.occurrence_id) FILTER (WHERE p.waited AND n.occurrence_id IS NOT NULL)
    INTO claimed, v_woken
    FROM plain p FULL JOIN inserted n ON n.occurrence_id = p.occurrence_id;
    IF v_woken IS NOT NULL THEN
      DELETE FROM sender.waiting w WHERE w.occurrence_id = ANY (v_woken);
    END IF;
  END IF;

  IF cardinality(claimed) < cardinality(p_occurrence_ids) THEN
    -- With a waiting row it is no plain one: the row goes, which needs the claim's lock.
    SELECT coalesce(array_agg(u.ord::int), '{}') INTO duplicates
    FROM unnest(p_occurrence_ids) WITH ORDINALITY AS u (occurrence_id, ord)
    JOIN sender.claim c ON c.occurrence_id = u.occurrence_id
    WHERE NOT u.ord = ANY (claimed) AND c.state <> 'retry_wait' AND c.next_attempt_at IS NULL
      AND NOT EXISTS (SELECT FROM sender.waiting w WHERE w.occurrence_id = u.occurrence_id);
  END IF;

  IF cardinality(claimed) + cardinality(duplicates) < cardinality(p_occurrence_ids) THEN
    FOR i IN
      SELECT u.* FROM unnest(p_occurrence_ids, p_schedule_ids, p_revisions, p_number_ids, p_due_at, p_valid_until, p_priorities,
        p_positions, p_recipient_hashes, p_template_keys) WITH ORDINALITY
        AS u (occurrence_id, schedule_id, revision, number_id, due_at, valid_until, priority, position, recipient_hash, template_key, ord)
      WHERE NOT u.ord = ANY (claimed || duplicates)
      ORDER BY u.occurrence_id, u.ord
    LOOP
      v_others := v_others || (jsonb_build_object('ord', i.ord) || sender.decide_one(
        i.occurrence_id, i.schedule_id, i.revision, i.number_id, sender.instant(i.due_at), sender.instant(i.valid_until), i.priority,
        i.position, i.recipient_hash, i.template_key, p_instance, v_now, v_deadline, p_may_claim));
    END LOOP;
  END IF;

  others := to_jsonb(v_others);
  SELECT jsonb_object_agg(g.schedule_id,
    jsonb_build_object('tenantId', g.tenant_id, 'mode', g.mode, 'onUncertain', g.on_uncertain, 'retryDelaysMs', g.retry_delays_ms))
  INTO policies
  FROM sender.gate g WHERE g.schedule_id = ANY (p_schedule_ids);
END
$$;

GRANT EXECUTE ON FUNCTION sender.decide(bytea[], uuid[], int[], uuid[], double precision[], double precision[], smallint[], int[],
  bytea[], text[], text, int, boolean) TO punctual_sender;
