-- $1: ids, one after the other. $2: a line for each: position, status, reason, told status, facts, between tabs, empty for
-- null; JSON has neither tabs nor line ends. As arrays, each quote would be escaped here and read back there.
-- A row that another transaction inserted meanwhile is left out of the answer: its facts have to be read and merged.
INSERT INTO receipts.message (occurrence_id, updated_at, position, status, reason, told_status, facts)
SELECT c.part, to_timestamp($3::float8 / 1000), nullif(split_part(l.line, E'\t', 1), '')::int, split_part(l.line, E'\t', 2),
  nullif(split_part(l.line, E'\t', 3), ''), nullif(split_part(l.line, E'\t', 4), ''), split_part(l.line, E'\t', 5)::json
FROM receipts.cut($1::bytea, 20) AS c
JOIN string_to_table($2::text, E'\n') WITH ORDINALITY AS l (line, place) ON l.place = c.place
ORDER BY c.part
ON CONFLICT (occurrence_id) DO NOTHING
RETURNING occurrence_id
