-- $1: keys and values, one after the other. $2: a line for each row: topic, lane, where it begins, the lengths of key and value,
-- headers, between tabs; headers empty where there are none. In the order of the lines: rows of a lane are relayed by their id.
INSERT INTO receipts.outbox (topic, lane, key, value, headers)
SELECT split_part(n.line, E'\t', 1), split_part(n.line, E'\t', 2)::int, substring($1::bytea, p.start, p.key_length),
  substring($1::bytea, p.start + p.key_length, split_part(n.line, E'\t', 5)::int), nullif(split_part(n.line, E'\t', 6), '')::json
FROM string_to_table($2::text, E'\n') WITH ORDINALITY AS n (line, place)
CROSS JOIN LATERAL (SELECT split_part(n.line, E'\t', 3)::int AS start, split_part(n.line, E'\t', 4)::int AS key_length) AS p
ORDER BY n.place
