SELECT (c.sending + c.accepted + c.retry_wait + c.uncertain + c.unconfirmed + c.failed + c.refused + c.expired + c.cancelled)::int AS claimed
FROM sender.count_claims($1::bytea) AS c
