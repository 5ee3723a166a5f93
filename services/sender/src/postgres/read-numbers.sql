SELECT n.number_id, n.learned_rate, n.hold_reason, n.hold_detail, sender.ms(n.hold_since)::double precision AS hold_since,
  sender.ms(n.hold_until)::double precision AS hold_until
FROM sender.number_public n
WHERE n.number_id = ANY ($1::uuid[])
