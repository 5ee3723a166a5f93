SELECT
  (SELECT jsonb_agg(jsonb_build_object('version', e.version, 'name', e.name, 'data', e.data - 'definition', 'atMs',
      (extract(epoch FROM e.at) * 1000)::bigint, 'actor', e.actor, 'traceparent', e.traceparent) ORDER BY e.version)
    FROM api.schedule_event AS e WHERE e.schedule_id = $2::uuid) AS events,
  (SELECT jsonb_agg(jsonb_build_object('attempt', a.attempt, 'begunAtMs', (extract(epoch FROM a.begun_at) * 1000)::bigint,
      'calledAtMs', (extract(epoch FROM a.called_at) * 1000)::bigint, 'endedAtMs', (extract(epoch FROM a.ended_at) * 1000)::bigint,
      'outcome', a.outcome, 'errorCode', a.error_code, 'providerCode', a.provider_code, 'text', a.text, 'waits', a.waits,
      'traceId', a.trace_id) ORDER BY a.attempt)
    FROM sender.attempt_public AS a WHERE a.occurrence_id = $1::bytea) AS attempts,
  (SELECT jsonb_agg(jsonb_build_object('attempt', e.attempt, 'kind', e.kind, 'providerAtMs',
      (extract(epoch FROM e.provider_at) * 1000)::bigint, 'recordedAtMs', (extract(epoch FROM e.recorded_at) * 1000)::bigint,
      'code', e.code, 'providerCode', e.provider_code) ORDER BY e.recorded_at, e.provider_at)
    FROM receipts.evidence_public AS e WHERE e.occurrence_id = $1::bytea) AS evidence
