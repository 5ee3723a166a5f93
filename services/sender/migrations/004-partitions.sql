-- The first four bytes of an occurrence id are the day it is filed under (days since the epoch), so a day's claims, attempts
-- and evidence are partitions that can be dropped. Ids of days without a partition of their own go into the default ones.

CREATE FUNCTION sender.day_begin(p_day int) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN substring(int8send(p_day::bigint) FROM 5 FOR 4);

CREATE FUNCTION sender.ensure_day_partition(p_table text, p_day int, p_options text) RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_partition text := format('%s_d%s', p_table, p_day);
  v_from text := encode(sender.day_begin(p_day), 'hex');
  v_until text := encode(sender.day_begin(p_day + 1), 'hex');
BEGIN
  IF to_regclass(format('sender.%I', v_partition)) IS NOT NULL THEN
    RETURN false;
  END IF;
  EXECUTE format('CREATE TABLE sender.%I (LIKE sender.%I INCLUDING ALL) %s', v_partition, p_table, p_options);
  -- Rows of the day that came before its partition move over; attaching would refuse them otherwise.
  EXECUTE format('LOCK TABLE sender.%I IN ACCESS EXCLUSIVE MODE', p_table || '_default');
  EXECUTE format(
    'WITH moved AS (DELETE FROM sender.%I WHERE occurrence_id >= %L::bytea AND occurrence_id < %L::bytea RETURNING *)
     INSERT INTO sender.%I SELECT * FROM moved',
    p_table || '_default', '\x' || v_from, '\x' || v_until, v_partition);
  -- ATTACH holds up writers of the default partition only; CREATE TABLE ... PARTITION OF would hold up the whole table.
  EXECUTE format('ALTER TABLE sender.%I ATTACH PARTITION sender.%I FOR VALUES FROM (%L) TO (%L)',
    p_table, v_partition, '\x' || v_from, '\x' || v_until);
  RETURN true;
END
$$;

-- Yesterday (a time zone's day, a slow start) up to the given number of days ahead. Answers how many partitions are new.
CREATE FUNCTION sender.ensure_claim_partitions(p_days_ahead int) RETURNS int
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_today int := floor(extract(epoch FROM now()) / 86400);
  v_day int;
  v_count int := 0;
BEGIN
  PERFORM pg_advisory_xact_lock(7003, 0);
  FOR v_day IN v_today - 1 .. v_today + p_days_ahead LOOP
    -- Claims are updated a few times: room for that in the page saves bloat. The others are only added to.
    v_count := v_count
      + sender.ensure_day_partition('claim', v_day, 'WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05)')::int
      + sender.ensure_day_partition('attempt_begun', v_day, '')::int
      + sender.ensure_day_partition('attempt_outcome', v_day, '')::int
      + sender.ensure_day_partition('evidence', v_day, '')::int;
  END LOOP;
  RETURN v_count;
END
$$;

SELECT sender.ensure_claim_partitions(3);

GRANT EXECUTE ON FUNCTION sender.ensure_claim_partitions(int) TO punctual_sender;
