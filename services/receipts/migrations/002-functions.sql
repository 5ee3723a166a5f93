-- Instants inside facts are milliseconds since the epoch. Neither of these two sets a search path: then the planner can put
-- their body in the place of the call, and the views call them a dozen times a row.
CREATE FUNCTION receipts.instant(p_ms text) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT pg_catalog.to_timestamp(p_ms::double precision / 1000) $$;

CREATE FUNCTION receipts.to_ms(p_at timestamptz) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT pg_catalog.round(extract(epoch FROM p_at) * 1000)::double precision $$;

-- How many of the positions [p_from, p_until) of a run have facts of their own.
CREATE FUNCTION receipts.count_answered(p_run_id bytea, p_from int, p_until int) RETURNS int
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT coalesce(sum(bit_count(substring(c.positions
      FROM greatest(p_from - c.chunk * 500, 0) + 1
      FOR least(p_until - c.chunk * 500, 500) - greatest(p_from - c.chunk * 500, 0)))), 0)::int
  FROM receipts.answered_chunk AS c
  WHERE c.run_id = p_run_id AND c.chunk BETWEEN p_from / 500 AND (p_until - 1) / 500
$$;

-- Ids of one length that lie one after the other: a parameter that needs no escaping and no hexadecimal on either side.
CREATE FUNCTION receipts.cut(p_all bytea, p_length int) RETURNS TABLE (part bytea, place int)
LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 1000
AS $$
  SELECT pg_catalog.substring(p_all, (i - 1) * p_length + 1, p_length), i
  FROM pg_catalog.generate_series(1, pg_catalog.octet_length(p_all) / p_length) AS i
$$;
