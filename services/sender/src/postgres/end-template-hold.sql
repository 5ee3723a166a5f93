-- What waits for it can't be told from what waits for another template of the same number: all of them ask the gate again.
WITH ended AS (
  DELETE FROM sender.template_hold t WHERE t.template_key = $1 RETURNING 1
), asked AS MATERIALIZED (
  SELECT w.occurrence_id FROM sender.waiting w
  WHERE w.reason = 'template' AND EXISTS (SELECT FROM ended)
  ORDER BY w.occurrence_id
  FOR UPDATE
)
UPDATE sender.waiting w SET wake_at = least(w.wake_at, clock_timestamp()) FROM asked a WHERE w.occurrence_id = a.occurrence_id
