-- The first four bytes of an occurrence id are the day it is filed under (days since the epoch). Seven days share a partition of
-- claims, attempts and evidence, which is dropped when they are over. Not one a day: a statement that looks ids up locks every
-- partition and its indexes, and with 97 day partitions the results of one batch held 900 of the 6,400 locks that a server has
-- by default. Ids of weeks without a partition of their own go into the default ones.

CREATE FUNCTION sender.week_begin(p_week int) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN substring(int8send(p_week::bigint * 7) FROM 5 FOR 4);

CREATE FUNCTION sender.ensure_week_partition(p_table text, p_week int, p_options text) RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_partition text := format('%s_w%s', p_table, p_week);
  v_from text := '\x' || encode(sender.week_begin(p_week), 'hex');
  v_until text := '\x' || encode(sender.week_begin(p_week + 1), 'hex');
BEGIN
  IF to_regclass(format('sender.%I', v_partition)) IS NOT NULL THEN
    RETURN false;
  END IF;
  EXECUTE format('CREATE TABLE sender.%I (LIKE sender.%I INCLUDING ALL) %s', v_partition, p_table, p_options);
  -- Rows that came before their partition move over; attaching would refuse them otherwise.
  EXECUTE format('LOCK TABLE sender.%I IN ACCESS EXCLUSIVE MODE', p_table || '_default');
  EXECUTE format(
    'WITH moved AS (DELETE FROM sender.%I WHERE occurrence_id >= %L::bytea AND occurrence_id < %L::bytea RETURNING *)
     INSERT INTO sender.%I SELECT * FROM moved',
    p_table || '_default', v_from, v_until, v_partition);
  -- ATTACH holds up writers of the default partition only; CREATE TABLE ... PARTITION OF would hold up the whole table.
  EXECUTE format('ALTER TABLE sender.%I ATTACH PARTITION sender.%I FOR VALUES FROM (%L) TO (%L)', p_table, v_partition, v_from, v_until);
  RETURN true;
END
$$;

-- From yesterday (a time zone's day, a slow start) up to the given number of days ahead. Answers how many partitions are new.
CREATE FUNCTION sender.ensure_claim_partitions(p_days_ahead int) RETURNS int
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_today int := floor(extract(epoch FROM now()) / 86400);
  v_week int;
  v_count int := 0;
BEGIN
  PERFORM pg_advisory_xact_lock(7003, 0);
  FOR v_week IN (v_today - 1) / 7 .. (v_today + p_days_ahead) / 7 LOOP
    -- Claims are updated a few times: room for that in the page saves bloat. The others are only added to.
    v_count := v_count
      + sender.ensure_week_partition('claim', v_week, 'WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05)')::int
      + sender.ensure_week_partition('attempt_begun', v_week, '')::int
      + sender.ensure_week_partition('attempt_outcome', v_week, '')::int
      + sender.ensure_week_partition('evidence', v_week, '')::int;
  END LOOP;
  RETURN v_count;
END
$$;

SELECT sender.ensure_claim_partitions(8);

GRANT EXECUTE ON FUNCTION sender.ensure_claim_partitions(int) TO punctual_sender;
