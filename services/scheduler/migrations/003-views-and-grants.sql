CREATE VIEW scheduler.run_public AS
SELECT r.run_id, r.schedule_id, r.revision, r.total,
  CASE WHEN a.run_id IS NULL OR a.pass > 0 THEN r.released_position ELSE a.position END AS released_position,
  CASE WHEN a.run_id IS NULL THEN r.status ELSE 'active' END AS status,
  r.due_at
FROM scheduler.run r LEFT JOIN scheduler.active_run a ON a.run_id = r.run_id;

GRANT SELECT, INSERT, UPDATE, DELETE ON scheduler.run, scheduler.due_entry, scheduler.active_run, scheduler.number_credit, scheduler.outbox,
  scheduler.outbox_parked
  TO punctual_scheduler;

GRANT EXECUTE ON FUNCTION
  scheduler.epoch_ms, scheduler.outbox_lane, scheduler.ensure_due_partitions, scheduler.drop_past_due_partitions, scheduler.pick_slices,
  scheduler.advance_slices, scheduler.run_released, scheduler.recipients_refused, scheduler.end_runs, scheduler.apply_changes,
  scheduler.expire_runs, scheduler.look_again, scheduler.give_up_held_numbers, scheduler.take_unanswered, scheduler.release_again,
  scheduler.end_watch
  TO punctual_scheduler;

GRANT USAGE ON SCHEMA scheduler TO punctual_sender, punctual_api, punctual_receipts;
GRANT EXECUTE ON FUNCTION scheduler.report_credit TO punctual_sender;
GRANT SELECT ON scheduler.run_public TO punctual_api, punctual_receipts;
