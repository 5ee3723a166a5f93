SELECT d.claimed, d.duplicates, d.deadline_at, d.policies, d.others
FROM sender.decide($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) AS d
