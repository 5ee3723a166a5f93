-- The rows are locked by this transaction. $1 and $2 as in insert-messages.sql.
UPDATE receipts.message AS m
SET updated_at = to_timestamp($3::float8 / 1000), position = nullif(split_part(l.line, E'\t', 1), '')::int,
  status = split_part(l.line, E'\t', 2), reason = nullif(split_part(l.line, E'\t', 3), ''),
  told_status = nullif(split_part(l.line, E'\t', 4), ''), facts = split_part(l.line, E'\t', 5)::json
FROM receipts.cut($1::bytea, 20) AS c
JOIN string_to_table($2::text, E'\n') WITH ORDINALITY AS l (line, place) ON l.place = c.place
WHERE m.occurrence_id = c.part
