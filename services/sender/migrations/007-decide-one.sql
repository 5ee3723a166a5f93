-- An item that did not get the plain yes. The caller holds the stripe of its schedule. The order of the questions is part of
-- the rules: a duplicate is silent whatever else holds, evidence comes before any further attempt, an end before a hold.
CREATE FUNCTION sender.decide_one(
  p_occurrence_id bytea, p_schedule_id uuid, p_revision int, p_number_id uuid, p_due_at timestamptz, p_valid_until timestamptz,
  p_priority smallint, p_position int, p_recipient_hash bytea, p_template_key text,
  p_instance text, p_now timestamptz, p_deadline timestamptz, p_may_claim boolean
) RETURNS jsonb
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  g sender.gate;
  c sender.claim;
  w sender.waiting;
  v_has_claim boolean;
  v_number_id uuid;
  v_due_at timestamptz;
  v_valid_until timestamptz;
  v_end text;
  v_hold text;
  v_wake_at timestamptz;
BEGIN
  SELECT * INTO g FROM sender.gate x WHERE x.schedule_id = p_schedule_id;
  IF NOT FOUND THEN
    RETURN jsonb_build_object('kind', 'parked');
  END IF;

  SELECT * INTO c FROM sender.claim x WHERE x.occurrence_id = p_occurrence_id FOR UPDATE;
  v_has_claim := FOUND;
  SELECT * INTO w FROM sender.waiting x WHERE x.occurrence_id = p_occurrence_id FOR UPDATE;

  IF v_has_claim THEN
    IF NOT (c.state = 'retry_wait' OR c.state = 'uncertain' AND c.next_attempt_at IS NOT NULL AND g.on_uncertain = 'resend') THEN
      DELETE FROM sender.waiting x WHERE x.occurrence_id = p_occurrence_id;
      RETURN jsonb_build_object('kind', 'silent', 'why', 'duplicate');
    END IF;
    IF sender.settle_by_evidence(ARRAY[p_occurrence_id], p_now) > 0 THEN
      SELECT * INTO c FROM sender.claim x WHERE x.occurrence_id = p_occurrence_id;
      RETURN jsonb_build_object('kind', 'settled', 'state', c.state);
    END IF;
    -- What was claimed finishes under the claim's own terms.
    v_number_id := c.number_id;
    v_due_at := c.due_at;
    v_valid_until := c.valid_until;
  ELSE
    IF p_revision <> g.revision THEN
      DELETE FROM sender.waiting x WHERE x.occurrence_id = p_occurrence_id;
      RETURN jsonb_build_object('kind', 'silent', 'why', 'superseded');
    END IF;
    v_number_id := p_number_id;
    v_due_at := p_due_at;
    v_valid_until := p_valid_until;
  END IF;

  v_end := CASE
    WHEN g.status = 'cancelled' THEN 'cancelled'
    WHEN v_valid_until <= p_now THEN 'expired'
    WHEN p_recipient_hash IS NOT NULL AND EXISTS (
      SELECT FROM sender.suppression s
      WHERE s.tenant_id = g.tenant_id AND s.channel = g.channel AND s.recipient_hash = p_recipient_hash
        AND s.category IN ('*', coalesce(g.category, '*'))) THEN 'suppressed'
    WHEN w.gives_up_at <= p_now THEN 'hold_expired'
  END;
  IF v_end IS NOT NULL THEN
    IF NOT v_has_claim THEN
      c.occurrence_id := p_occurrence_id;
      c.schedule_id := p_schedule_id;
      c.number_id := p_number_id;
      c.revision := p_revision;
      c.position := p_position;
      c.priority := p_priority;
      c.due_at := p_due_at;
      c.valid_until := p_valid_until;
    END IF;
    RETURN sender.end_occurrence(c, v_has_claim, g.tenant_id, v_end, p_now);
  END IF;

  IF g.status = 'paused' THEN
    v_hold := 'paused';
  ELSIF g.run_hold_reason IS NOT NULL THEN
    v_hold := g.run_hold_reason;
  ELSE
    SELECT n.hold_reason, n.hold_until INTO v_hold, v_wake_at FROM sender.number_state n
    WHERE n.number_id = v_number_id AND n.hold_reason IS NOT NULL AND (n.hold_until IS NULL OR n.hold_until > p_now);
    IF v_hold IS NULL THEN
      SELECT 'template', t.until INTO v_hold, v_wake_at FROM sender.template_hold t
      WHERE t.template_key = p_template_key AND (t.until IS NULL OR t.until > p_now);
    END IF;
    IF v_hold IS NULL AND v_due_at > p_now THEN
      v_hold := 'not_yet';
      v_wake_at := v_due_at;
    ELSIF v_hold IS NULL AND c.next_attempt_at > p_now THEN
      v_hold := CASE c.state WHEN 'retry_wait' THEN coalesce(c.reason, 'retry') ELSE 'retry' END;
      v_wake_at := c.next_attempt_at;
    END IF;
  END IF;

  IF v_hold IS NOT NULL THEN
    RETURN sender.hold_occurrence(g, c, w, p_occurrence_id, p_revision, v_number_id, p_position, p_priority, v_due_at, v_valid_until,
      v_hold, v_wake_at, p_now);
  END IF;

  IF NOT p_may_claim THEN
    RETURN jsonb_build_object('kind', 'left');
  END IF;

  IF v_has_claim THEN
    UPDATE sender.claim x
    SET state = 'sending', attempt = x.attempt + 1, step = x.step + 1, deadline = p_deadline, sweep_at = p_deadline,
      next_attempt_at = NULL, reason = NULL, error_code = NULL, provider_message_id = NULL, called_at = NULL, updated_at = p_now
    WHERE x.occurrence_id = p_occurrence_id
    RETURNING x.* INTO c;
  ELSE
    -- What forbade the plain yes has gone in between (a hold ended).
    INSERT INTO sender.claim (occurrence_id, schedule_id, number_id, revision, position, priority, attempt, due_at, valid_until,
      deadline, sweep_at, claimed_at, updated_at, state)
    VALUES (p_occurrence_id, p_schedule_id, p_number_id, p_revision, p_position, p_priority, 1, p_due_at, p_valid_until,
      p_deadline, p_deadline, p_now, p_now, 'sending')
    ON CONFLICT (occurrence_id) DO NOTHING
    RETURNING * INTO c;
    IF NOT FOUND THEN
      RETURN jsonb_build_object('kind', 'silent', 'why', 'duplicate');
    END IF;
  END IF;
  INSERT INTO sender.attempt_begun (occurrence_id, attempt, begun_at, instance) VALUES (p_occurrence_id, c.attempt, p_now, p_instance);
  DELETE FROM sender.waiting x WHERE x.occurrence_id = p_occurrence_id;
  RETURN jsonb_build_object('kind', 'claimed', 'attempt', c.attempt, 'step', c.step, 'revision', c.revision,
    'retriesUsed', c.retries_used);
END
$$;

-- A final answer: cancelled, expired, suppressed or hold_expired. After an uncertain outcome it ends the resend and leaves the
-- uncertainty, which only evidence or the end of its window resolves.
CREATE FUNCTION sender.end_occurrence(c sender.claim, p_has_claim boolean, p_tenant_id uuid, p_end text, p_now timestamptz)
RETURNS jsonb
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_after_uncertain boolean := p_has_claim AND c.state = 'uncertain';
  v_state text := CASE p_end WHEN 'suppressed' THEN 'refused' WHEN 'hold_expired' THEN 'failed' ELSE p_end END;
BEGIN
  IF v_after_uncertain THEN
    UPDATE sender.claim x SET next_attempt_at = NULL, step = x.step + 1, updated_at = p_now
    WHERE x.occurrence_id = c.occurrence_id RETURNING x.* INTO c;
  ELSIF p_has_claim THEN
    UPDATE sender.claim x
    SET state = v_state, step = x.step + 1, next_attempt_at = NULL, updated_at = p_now,
      reason = CASE v_state WHEN 'failed' THEN NULL ELSE p_end END,
      error_code = CASE v_state WHEN 'failed' THEN p_end ELSE x.error_code END
    WHERE x.occurrence_id = c.occurrence_id RETURNING x.* INTO c;
  ELSE
    INSERT INTO sender.claim AS x (occurrence_id, schedule_id, number_id, revision, position, priority, attempt, due_at, valid_until,
      claimed_at, updated_at, state, reason, error_code)
    VALUES (c.occurrence_id, c.schedule_id, c.number_id, c.revision, c.position, c.priority, 0, c.due_at, c.valid_until,
      p_now, p_now, v_state, CASE v_state WHEN 'failed' THEN NULL ELSE p_end END, CASE v_state WHEN 'failed' THEN p_end END)
    ON CONFLICT (occurrence_id) DO NOTHING
    RETURNING x.* INTO c;
    IF NOT FOUND THEN
      RETURN jsonb_build_object('kind', 'silent', 'why', 'duplicate');
    END IF;
  END IF;
  DELETE FROM sender.waiting x WHERE x.occurrence_id = c.occurrence_id;

  INSERT INTO sender.outbox (lane, topic, key, draft)
  VALUES (sender.draft_lane(c.occurrence_id), 'deliveries', c.occurrence_id, CASE
    WHEN v_state = 'failed' AND NOT v_after_uncertain THEN
      sender.failed_draft(c, p_tenant_id, p_end, NULL, NULL, false, NULL, p_now)
    -- Not failed: whether the attempt before arrived is still open.
    ELSE sender.refused_draft(c, p_tenant_id, CASE v_state WHEN 'failed' THEN 'refused' ELSE v_state END, p_end, v_after_uncertain, p_now)
  END);
  RETURN jsonb_build_object('kind', 'final', 'status', v_state, 'reason', p_end, 'afterUncertain', v_after_uncertain);
END
$$;

-- Keeps it as a waiting row. Told once per reason, and not at all while it is merely ahead of its time.
CREATE FUNCTION sender.hold_occurrence(
  g sender.gate, c sender.claim, w sender.waiting, p_occurrence_id bytea, p_revision int, p_number_id uuid, p_position int,
  p_priority smallint, p_due_at timestamptz, p_valid_until timestamptz, p_reason text, p_wake_at timestamptz, p_now timestamptz
) RETURNS jsonb
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_since timestamptz := CASE WHEN w.reason = p_reason THEN w.since ELSE p_now END;
  v_gives_up_at timestamptz := coalesce(w.gives_up_at,
    greatest(p_due_at, coalesce(c.held_since, p_now)) + g.hold_give_up_ms * interval '1 ms');
  v_wake_at timestamptz := least(p_wake_at, p_valid_until, v_gives_up_at);
BEGIN
  INSERT INTO sender.waiting AS x (occurrence_id, schedule_id, number_id, revision, position, priority, attempt, due_at, valid_until,
    since, wake_at, gives_up_at, reason)
  VALUES (p_occurrence_id, g.schedule_id, p_number_id, coalesce(c.revision, p_revision), coalesce(c.position, p_position),
    coalesce(c.priority, p_priority), coalesce(c.attempt, 0), p_due_at, p_valid_until, v_since, v_wake_at, v_gives_up_at, p_reason)
  ON CONFLICT (occurrence_id) DO UPDATE
  SET number_id = excluded.number_id, revision = excluded.revision, position = excluded.position, priority = excluded.priority,
    attempt = excluded.attempt, due_at = excluded.due_at, valid_until = excluded.valid_until, since = excluded.since,
    wake_at = excluded.wake_at, reason = excluded.reason, taken_until = '-infinity';

  IF p_reason <> 'not_yet' AND w.reason IS DISTINCT FROM p_reason THEN
    -- Step 0 without a claim: whatever follows is later.
    c.occurrence_id := p_occurrence_id;
    c.schedule_id := g.schedule_id;
    c.revision := coalesce(c.revision, p_revision);
    c.position := coalesce(c.position, p_position);
    c.step := coalesce(c.step, 0);
    c.due_at := p_due_at;
    INSERT INTO sender.outbox (lane, topic, key, draft)
    VALUES (sender.draft_lane(p_occurrence_id), 'deliveries', p_occurrence_id,
      sender.message_draft('MessageHeld', c, g.tenant_id, p_now,
        ',"reason":' || sender.quoted(p_reason) || ',"since":' || sender.ms(v_since)
        || ',"until":' || CASE WHEN p_wake_at IS NULL THEN 'null' ELSE sender.ms(v_wake_at)::text END
        || ',"givesUpAt":' || sender.ms(v_gives_up_at)));
  END IF;
  RETURN jsonb_build_object('kind', 'held', 'reason', p_reason, 'wakeAt', sender.ms(v_wake_at), 'since', sender.ms(v_since),
    'givesUpAt', sender.ms(v_gives_up_at));
END
$$;

GRANT EXECUTE ON FUNCTION
  sender.decide_one(bytea, uuid, int, uuid, timestamptz, timestamptz, smallint, int, bytea, text, text, timestamptz, timestamptz, boolean),
  sender.end_occurrence(sender.claim, boolean, uuid, text, timestamptz),
  sender.hold_occurrence(sender.gate, sender.claim, sender.waiting, bytea, int, uuid, int, smallint, timestamptz, timestamptz, text,
    timestamptz, timestamptz) TO punctual_sender;
