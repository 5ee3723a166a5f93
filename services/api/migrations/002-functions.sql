-- The whole write of a command in one round trip: as begin, call and commit it has a third of the rate.
-- Refusals are SQLSTATEs or named constraints, so that everything rolls back:
--   PA412 the stream is not at the expected version; PA404 no such schedule; PT409 (sender) the audience is in use;
--   PA208 and PA409 of remember_answer; schedule_external_id_key, schedule_duplicate_key: unique violations.
CREATE FUNCTION api.append(
  p_command jsonb,
  p_request_hash bytea,
  p_duplicate_hash bytea,
  p_chunk_counts int[],
  p_chunk_hashes bytea[],
  p_chunk_bodies bytea[],
  p_outbox_values bytea[]
) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_schedule uuid := p_command ->> 'scheduleId';
  v_tenant uuid := p_command ->> 'tenantId';
  v_expected int := p_command ->> 'expectedVersion';
  v_at timestamptz := p_command ->> 'at';
  v_row jsonb := p_command -> 'snapshot';
  v_found int;
  v_change jsonb;
BEGIN
  -- First, so that a concurrent repeat of the same request waits here and not with half of its work done.
  PERFORM api.remember_answer(v_tenant, p_command -> 'idempotency', p_request_hash, v_at);

  IF v_expected > 0 THEN
    SELECT s.version INTO v_found FROM api.schedule AS s WHERE s.id = v_schedule AND s.tenant_id = v_tenant FOR UPDATE;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'no such schedule' USING ERRCODE = 'PA404';
    ELSIF v_found <> v_expected THEN
      RAISE EXCEPTION 'the schedule is at version %', v_found USING ERRCODE = 'PA412', DETAIL = v_found::text;
    END IF;
  END IF;

  IF p_command -> 'audience' IS NOT NULL AND p_command -> 'audience' <> 'null'::jsonb THEN
    PERFORM api.store_inline_audience(v_tenant, p_command -> 'audience', v_at, p_chunk_counts, p_chunk_hashes, p_chunk_bodies);
  END IF;

  IF v_expected = 0 THEN
    INSERT INTO api.schedule AS s (id, tenant_id, external_id, version, revision, status, number_id, audience_id, recipients, run_id,
      due_at, labels, state, duplicate_hash, created_at, updated_at)
    VALUES (v_schedule, v_tenant, v_row ->> 'externalId', (v_row ->> 'version')::int, (v_row ->> 'revision')::int, v_row ->> 'status',
      (v_row ->> 'numberId')::uuid, (v_row ->> 'audienceId')::uuid, (v_row ->> 'recipients')::int,
      decode(v_row ->> 'runId', 'hex'), (v_row ->> 'dueAt')::timestamptz, v_row -> 'labels', p_command -> 'state', p_duplicate_hash,
      v_at, v_at);
  ELSE
    UPDATE api.schedule AS s
    SET version = (v_row ->> 'version')::int, revision = (v_row ->> 'revision')::int, status = v_row ->> 'status',
      audience_id = (v_row ->> 'audienceId')::uuid, recipients = (v_row ->> 'recipients')::int,
      due_at = (v_row ->> 'dueAt')::timestamptz, labels = v_row -> 'labels', state = p_command -> 'state',
      duplicate_hash = CASE WHEN (p_command ->> 'keepDuplicateHash')::boolean THEN s.duplicate_hash ELSE p_duplicate_hash END,
      updated_at = v_at
    WHERE s.id = v_schedule;
  END IF;

  INSERT INTO api.schedule_event (schedule_id, version, name, data, at, actor, correlation_id, traceparent)
  SELECT v_schedule, v_expected + e.ordinality::int, e.value ->> 'name', e.value -> 'data', v_at, p_command ->> 'actor',
    p_command ->> 'correlationId', p_command ->> 'traceparent'
  FROM jsonb_array_elements(p_command -> 'events') WITH ORDINALITY AS e;

  INSERT INTO api.content (schedule_id, revision, tenant_id, audience_id, content, category, mode, labels, external_id, correlation_id,
    traceparent)
  SELECT v_schedule, (c ->> 'revision')::int, v_tenant, (c ->> 'audienceId')::uuid, c -> 'content', c ->> 'category', c ->> 'mode',
    c -> 'labels', c ->> 'externalId', p_command ->> 'correlationId', p_command ->> 'traceparent'
  FROM (SELECT p_command -> 'content' AS c) AS given
  WHERE c IS NOT NULL AND c <> 'null'::jsonb
  ON CONFLICT (schedule_id, revision) DO UPDATE SET labels = excluded.labels;

  INSERT INTO api.outbox (lane, topic, key, headers, value)
  SELECT (o.value ->> 'lane')::int, o.value ->> 'topic', convert_to(o.value ->> 'key', 'UTF8'), o.value -> 'headers',
    p_outbox_values[o.ordinality]
  FROM jsonb_array_elements(p_command -> 'outbox') WITH ORDINALITY AS o;

  -- Last: from here to the commit no send of this stripe passes the gate.
  FOR v_change IN SELECT g.value FROM jsonb_array_elements(p_command -> 'gate') AS g LOOP
    PERFORM sender.change_gate(v_schedule, v_change ->> 'action', (v_change ->> 'revision')::int, v_change -> 'details');
  END LOOP;
END
$$;

-- PA409: the first request with this key is still at work. PA208: it is done, and its answer can be read.
CREATE FUNCTION api.remember_answer(p_tenant_id uuid, p_record jsonb, p_request_hash bytea, p_at timestamptz) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF p_record ->> 'key' IS NULL THEN
    RETURN;
  END IF;
  IF NOT pg_try_advisory_xact_lock(7002, hashtext(p_tenant_id::text || (p_record ->> 'endpoint') || (p_record ->> 'key'))) THEN
    RAISE EXCEPTION 'the first request with this key is still at work' USING ERRCODE = 'PA409';
  END IF;
  INSERT INTO api.idempotency (tenant_id, endpoint, key, request_hash, status, headers, body, created_at)
  VALUES (p_tenant_id, p_record ->> 'endpoint', p_record ->> 'key', p_request_hash, (p_record ->> 'status')::smallint,
    p_record -> 'headers', p_record ->> 'body', p_at)
  ON CONFLICT ON CONSTRAINT idempotency_key DO UPDATE
  SET request_hash = excluded.request_hash, status = excluded.status, headers = excluded.headers, body = excluded.body,
    created_at = excluded.created_at
  WHERE idempotency.created_at <= now() - interval '24 hours';
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the first request with this key was answered' USING ERRCODE = 'PA208';
  END IF;
END
$$;

CREATE FUNCTION api.store_inline_audience(
  p_tenant_id uuid, p_audience jsonb, p_at timestamptz, p_counts int[], p_hashes bytea[], p_bodies bytea[]
) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  INSERT INTO api.audience (id, tenant_id, source, status, accepted, rejected, duplicates, chunk_count, columns, missing, set_hash,
    created_at, touched_at)
  VALUES ((p_audience ->> 'id')::uuid, p_tenant_id, 'inline', 'ready', (p_audience ->> 'accepted')::int,
    (p_audience ->> 'rejected')::int, (p_audience ->> 'duplicates')::int, cardinality(p_counts),
    ARRAY(SELECT jsonb_array_elements_text(p_audience -> 'columns')), p_audience -> 'missing',
    decode(p_audience ->> 'setHash', 'hex'), p_at, p_at);

  INSERT INTO api.audience_chunk (audience_id, chunk, count, hashes, body)
  SELECT (p_audience ->> 'id')::uuid, c.ordinality::int - 1, c.count, c.hashes, c.body
  FROM unnest(p_counts, p_hashes, p_bodies) WITH ORDINALITY AS c (count, hashes, body, ordinality);
END
$$;

-- What a cancel prevented. Runs after the cancel's own commit: no claim can appear any more, so the sum is exact, and nobody
-- waited for the counting. Ending the waiting claims and keeping the receipt are one transaction, so that a crash between
-- them can't make a second count look different.
CREATE FUNCTION api.settle_cancel(p_tenant_id uuid, p_schedule_id uuid, p_run_id bytea, p_total int, p_version int, p_at timestamptz)
RETURNS SETOF api.schedule_receipt
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  c record;
BEGIN
  -- Two repeats at once: the second waits here and then finds the receipt of the first.
  PERFORM 1 FROM api.schedule AS s WHERE s.id = p_schedule_id AND s.tenant_id = p_tenant_id FOR UPDATE;
  IF NOT EXISTS (SELECT 1 FROM api.schedule_receipt AS r WHERE r.schedule_id = p_schedule_id AND r.version = p_version) THEN
    SELECT * INTO c FROM sender.settle_cancel(p_schedule_id, p_run_id);
    PERFORM api.keep_receipt(p_schedule_id, p_run_id, 'cancel', p_total, p_version, p_at, c.sending, c.accepted,
      c.uncertain + c.unconfirmed, c.failed + c.refused + c.expired + c.cancelled);
  END IF;
  RETURN QUERY SELECT r.* FROM api.schedule_receipt AS r WHERE r.schedule_id = p_schedule_id AND r.version = p_version;
END
$$;

CREATE FUNCTION api.count_pause(p_tenant_id uuid, p_schedule_id uuid, p_run_id bytea, p_total int, p_version int, p_at timestamptz)
RETURNS SETOF api.schedule_receipt
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  c record;
BEGIN
  PERFORM 1 FROM api.schedule AS s WHERE s.id = p_schedule_id AND s.tenant_id = p_tenant_id FOR UPDATE;
  IF NOT EXISTS (SELECT 1 FROM api.schedule_receipt AS r WHERE r.schedule_id = p_schedule_id AND r.version = p_version) THEN
    SELECT * INTO c FROM sender.count_claims(p_run_id);
    PERFORM api.keep_receipt(p_schedule_id, p_run_id, 'pause', p_total, p_version, p_at, c.sending, c.accepted,
      c.uncertain + c.unconfirmed, c.failed + c.refused + c.expired + c.cancelled);
  END IF;
  RETURN QUERY SELECT r.* FROM api.schedule_receipt AS r WHERE r.schedule_id = p_schedule_id AND r.version = p_version;
END
$$;

-- Recipients that ended by range (expired before they were released, say) have no claim and were not prevented either.
CREATE FUNCTION api.keep_receipt(
  p_schedule_id uuid, p_run_id bytea, p_kind text, p_total int, p_version int, p_at timestamptz,
  p_in_flight bigint, p_submitted bigint, p_uncertain bigint, p_ended_claims bigint
) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  INSERT INTO api.schedule_receipt (schedule_id, version, kind, at, total, prevented, in_flight, submitted, uncertain, ended)
  SELECT p_schedule_id, p_version, p_kind, p_at, p_total, unclaimed - by_range, p_in_flight, p_submitted, p_uncertain,
    p_ended_claims + by_range
  FROM (SELECT p_total - p_in_flight - p_submitted - p_uncertain - p_ended_claims AS unclaimed) AS u
  CROSS JOIN LATERAL (
    SELECT least(u.unclaimed, coalesce(sum(r.count), 0))::int AS by_range
    FROM receipts.range_public AS r WHERE r.run_id = p_run_id AND r.status <> 'cancelled' AND r.at < p_at
  ) AS ranges;
END
$$;

-- False: the number is not at the expected version (0: it exists already).
CREATE FUNCTION api.put_number(p_number jsonb, p_credentials bytea, p_webhook_secret bytea, p_webhook_verify_token bytea) RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_id uuid := p_number ->> 'id';
  v_at timestamptz := p_number ->> 'at';
  v_expected int := p_number ->> 'expectedVersion';
BEGIN
  IF v_expected = 0 THEN
    INSERT INTO api.number (id, tenant_id, name, kind, mode, channel, provider, provider_identity, provider_number_id, waba_id, app_id,
      rate_per_second, credentials, credentials_fingerprint, credentials_updated_at, webhook_secret, webhook_verify_token, version,
      created_at, updated_at)
    VALUES (v_id, (p_number ->> 'tenantId')::uuid, p_number ->> 'name', p_number ->> 'kind', p_number ->> 'mode',
      p_number ->> 'channel', p_number ->> 'provider', p_number ->> 'providerIdentity', p_number ->> 'providerNumberId',
      p_number ->> 'wabaId', p_number ->> 'appId', (p_number ->> 'ratePerSecond')::numeric, p_credentials,
      p_number ->> 'fingerprint', v_at, p_webhook_secret, p_webhook_verify_token, 1, v_at, v_at)
    ON CONFLICT DO NOTHING;
    IF FOUND THEN
      RETURN true;
    END IF;
    -- Two first registrations of one number may meet at either index; only a row with another name is a taken identity.
    IF EXISTS (
      SELECT FROM api.number AS n
      WHERE n.provider_identity = p_number ->> 'providerIdentity'
        AND (n.tenant_id, n.name) IS DISTINCT FROM ((p_number ->> 'tenantId')::uuid, p_number ->> 'name')
    ) THEN
      RAISE unique_violation USING MESSAGE = 'the provider identity is taken', CONSTRAINT = 'number_provider_identity_key';
    END IF;
    RETURN false;
  END IF;

  UPDATE api.number AS n
  SET provider_identity = p_number ->> 'providerIdentity', provider_number_id = p_number ->> 'providerNumberId',
    waba_id = p_number ->> 'wabaId', app_id = p_number ->> 'appId', rate_per_second = (p_number ->> 'ratePerSecond')::numeric,
    credentials = coalesce(p_credentials, n.credentials),
    credentials_fingerprint = coalesce(p_number ->> 'fingerprint', n.credentials_fingerprint),
    credentials_updated_at = CASE WHEN p_credentials IS NULL THEN n.credentials_updated_at ELSE v_at END,
    webhook_secret = coalesce(p_webhook_secret, n.webhook_secret),
    webhook_verify_token = coalesce(p_webhook_verify_token, n.webhook_verify_token),
    version = n.version + 1, updated_at = v_at
  WHERE n.id = v_id AND n.tenant_id = (p_number ->> 'tenantId')::uuid AND n.version = v_expected AND NOT n.removed;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  -- An account hold means "these credentials do not work"; with others it is worth trying again at once.
  IF p_credentials IS NOT NULL THEN
    PERFORM sender.clear_number_hold(v_id);
  END IF;
  RETURN true;
END
$$;

CREATE FUNCTION api.create_tenant(p_tenant jsonb, p_idempotency jsonb, p_request_hash bytea) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_at timestamptz := p_tenant ->> 'at';
BEGIN
  PERFORM api.remember_answer('00000000-0000-0000-0000-000000000000', p_idempotency, p_request_hash, v_at);
  INSERT INTO api.tenant (id, name, mode, created_at)
  VALUES ((p_tenant ->> 'id')::uuid, p_tenant ->> 'name', p_tenant ->> 'mode', v_at);
END
$$;

-- `p_asking_tenant`: whose Idempotency-Key it is; the nil UUID for the operator. False: no such tenant.
CREATE FUNCTION api.create_api_key(p_key jsonb, p_key_hash bytea, p_asking_tenant uuid, p_idempotency jsonb, p_request_hash bytea)
RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_at timestamptz := p_key ->> 'at';
BEGIN
  IF NOT EXISTS (SELECT 1 FROM api.tenant AS t WHERE t.id = (p_key ->> 'tenantId')::uuid) THEN
    RETURN false;
  END IF;
  PERFORM api.remember_answer(p_asking_tenant, p_idempotency, p_request_hash, v_at);
  INSERT INTO api.api_key (id, tenant_id, name, scopes, key_hash, hint, created_by, created_at)
  VALUES ((p_key ->> 'id')::uuid, (p_key ->> 'tenantId')::uuid, p_key ->> 'name',
    ARRAY(SELECT jsonb_array_elements_text(p_key -> 'scopes')), p_key_hash, p_key ->> 'hint', p_key ->> 'by', v_at);
  RETURN true;
END
$$;
