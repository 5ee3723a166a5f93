-- Uploads that nothing was added to for as long as given: their process died. A few at a time; chunks and rejected rows go with them.
DELETE FROM api.audience
WHERE id IN (
  SELECT id FROM api.audience
  WHERE status = 'uploading' AND touched_at < now() - make_interval(secs => $1)
  ORDER BY touched_at LIMIT 2 FOR UPDATE SKIP LOCKED)
RETURNING id::text
