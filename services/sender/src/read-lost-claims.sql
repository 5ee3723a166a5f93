-- Claims that are being sent, as far as anybody knows, and were begun by this very process.
SELECT c.occurrence_id, c.attempt::int AS attempt
FROM sender.claim AS c
JOIN sender.attempt_begun AS b ON b.occurrence_id = c.occurrence_id AND b.attempt = c.attempt
WHERE c.occurrence_id = ANY ($1::bytea[]) AND c.state = 'sending' AND b.instance = $2
