SELECT r.applied, r.state, r.step
FROM sender.record_results($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19) AS r
ORDER BY r.ord
