-- Events that the database writes itself, as drafts: the relay encodes them. Ids as lower-case hex, instants in milliseconds.
-- eventId is left to the encoder: it is derived from what is here. Put together as text: jsonb_build_object and || took three
-- times as long as everything else that writing an outbox row costs.

CREATE FUNCTION sender.ms(p_at timestamptz) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE RETURN round(date_part('epoch', p_at) * 1000)::bigint;

CREATE FUNCTION sender.instant(p_ms double precision) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN to_timestamp(p_ms / 1000);

CREATE FUNCTION sender.hex(p_id uuid) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN encode(uuid_send(p_id), 'hex');

-- A JSON string, or null.
CREATE FUNCTION sender.quoted(p_text text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN coalesce(to_json(p_text)::text, 'null');

-- The relay computes the partition of a row with a negative lane. Eight lanes, so that several senders share the work; one
-- occurrence is always in the same lane, so its events keep their order.
CREATE FUNCTION sender.draft_lane(p_key bytea) RETURNS int
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN -1 - (get_byte(p_key, length(p_key) - 1) & 7);

-- `p_more` is JSON text that begins with a comma. NULL anywhere makes the draft NULL, which the outbox refuses.
CREATE FUNCTION sender.message_draft(p_name text, c sender.claim, p_tenant_id uuid, p_at timestamptz, p_more text) RETURNS json
LANGUAGE sql STABLE PARALLEL SAFE
RETURN (
  '{"name":"' || p_name || '","event":{"at":' || sender.ms(p_at)
  || ',"occurrenceId":"' || encode(c.occurrence_id, 'hex')
  || '","scheduleId":"' || sender.hex(c.schedule_id)
  || '","tenantId":"' || sender.hex(p_tenant_id)
  || '","revision":' || c.revision
  || ',"position":' || c.position
  || ',"step":' || c.step
  || ',"dueAt":' || sender.ms(c.due_at)
  || p_more || '}}'
)::json;

CREATE FUNCTION sender.refused_draft(
  c sender.claim, p_tenant_id uuid, p_status text, p_reason text, p_after_uncertain boolean, p_at timestamptz
) RETURNS json
LANGUAGE sql STABLE PARALLEL SAFE
RETURN sender.message_draft('MessageRefused', c, p_tenant_id, p_at,
  ',"status":' || sender.quoted(p_status) || ',"reason":' || sender.quoted(p_reason) || ',"afterUncertain":' || p_after_uncertain
  || ',"traceparent":null');

CREATE FUNCTION sender.failed_draft(
  c sender.claim, p_tenant_id uuid, p_code text, p_provider_code text, p_text text, p_reached_provider boolean, p_traceparent text,
  p_at timestamptz
) RETURNS json
LANGUAGE sql STABLE PARALLEL SAFE
RETURN sender.message_draft('MessageFailed', c, p_tenant_id, p_at,
  ',"attempt":' || c.attempt || ',"code":' || sender.quoted(p_code) || ',"providerCode":' || sender.quoted(p_provider_code)
  || ',"text":' || sender.quoted(p_text) || ',"reachedProvider":' || p_reached_provider
  || ',"traceparent":' || sender.quoted(p_traceparent));

CREATE FUNCTION sender.uncertain_draft(c sender.claim, p_tenant_id uuid, p_traceparent text, p_at timestamptz) RETURNS json
LANGUAGE sql STABLE PARALLEL SAFE
RETURN sender.message_draft('OutcomeUncertain', c, p_tenant_id, p_at,
  ',"attempt":' || c.attempt || ',"reason":' || sender.quoted(c.reason) || ',"since":' || sender.ms(p_at)
  || ',"until":' || sender.ms(c.sweep_at) || ',"traceparent":' || sender.quoted(p_traceparent));

-- `p_waits` is JSON text.
CREATE FUNCTION sender.submitted_draft(
  c sender.claim, p_tenant_id uuid, p_attempt int, p_provider_message_id text, p_provider_status text, p_called_at timestamptz,
  p_submitted_at timestamptz, p_waits text, p_by text, p_traceparent text, p_at timestamptz
) RETURNS json
LANGUAGE sql STABLE PARALLEL SAFE
RETURN sender.message_draft('MessageSubmitted', c, p_tenant_id, p_at,
  ',"attempt":' || p_attempt || ',"providerMessageId":' || sender.quoted(p_provider_message_id)
  || ',"providerStatus":' || sender.quoted(p_provider_status) || ',"calledAt":' || sender.ms(p_called_at)
  || ',"submittedAt":' || sender.ms(p_submitted_at) || ',"waits":' || coalesce(p_waits, '[]') || ',"by":' || sender.quoted(p_by)
  || ',"traceparent":' || sender.quoted(p_traceparent));

GRANT EXECUTE ON FUNCTION sender.ms(timestamptz), sender.instant(double precision), sender.hex(uuid), sender.quoted(text),
  sender.draft_lane(bytea), sender.message_draft(text, sender.claim, uuid, timestamptz, text),
  sender.refused_draft(sender.claim, uuid, text, text, boolean, timestamptz),
  sender.failed_draft(sender.claim, uuid, text, text, text, boolean, text, timestamptz),
  sender.uncertain_draft(sender.claim, uuid, text, timestamptz),
  sender.submitted_draft(sender.claim, uuid, int, text, text, timestamptz, timestamptz, text, text, text, timestamptz) TO punctual_sender;
