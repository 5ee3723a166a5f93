-- $5: headers, one JSON text a line, empty where there are none. In the order of the arrays: rows of one lane are relayed by their id.
INSERT INTO receipts.outbox (topic, lane, key, value, headers)
SELECT n.topic, n.lane, n.key, n.value, nullif(n.headers, '')::jsonb
FROM ROWS FROM (
  unnest($1::text[]), unnest($2::int[]), unnest($3::bytea[]), unnest($4::bytea[]), string_to_table($5::text, E'\n')
) WITH ORDINALITY AS n (topic, lane, key, value, headers, place)
ORDER BY n.place
