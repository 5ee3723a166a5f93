-- Events that the database writes itself, as drafts: the relay encodes them. Ids as lower-case hex, instants in milliseconds.
-- eventId is left to the encoder: it is derived from what is here.

CREATE FUNCTION sender.ms(p_at timestamptz) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE RETURN floor(extract(epoch FROM p_at) * 1000)::bigint;

CREATE FUNCTION sender.instant(p_ms double precision) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN to_timestamp(p_ms / 1000);

CREATE FUNCTION sender.hex(p_id uuid) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN encode(uuid_send(p_id), 'hex');

-- The relay computes the partition of a row with a negative lane. Eight lanes, so that several senders share the work; one
-- occurrence is always in the same lane, so its events keep their order.
CREATE FUNCTION sender.draft_lane(p_key bytea) RETURNS int
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN -1 - (get_byte(p_key, length(p_key) - 1) & 7);

CREATE FUNCTION sender.message_draft(p_name text, c sender.claim, p_tenant_id uuid, p_at timestamptz, p_more jsonb) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE
RETURN jsonb_build_object(
  'name', p_name,
  'event', jsonb_build_object(
    'at', sender.ms(p_at),
    'occurrenceId', encode(c.occurrence_id, 'hex'),
    'scheduleId', sender.hex(c.schedule_id),
    'tenantId', sender.hex(p_tenant_id),
    'revision', c.revision,
    'position', c.position,
    'step', c.step,
    'dueAt', sender.ms(c.due_at)
  ) || p_more
);

CREATE FUNCTION sender.refused_draft(
  c sender.claim, p_tenant_id uuid, p_status text, p_reason text, p_after_uncertain boolean, p_at timestamptz
) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE
RETURN sender.message_draft('MessageRefused', c, p_tenant_id, p_at, jsonb_build_object(
  'status', p_status, 'reason', p_reason, 'afterUncertain', p_after_uncertain, 'traceparent', NULL));

GRANT EXECUTE ON FUNCTION sender.draft_lane(bytea), sender.ms(timestamptz), sender.instant(double precision), sender.hex(uuid),
  sender.message_draft(text, sender.claim, uuid, timestamptz, jsonb),
  sender.refused_draft(sender.claim, uuid, text, text, boolean, timestamptz) TO punctual_sender;
