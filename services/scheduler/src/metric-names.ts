export const METRICS = {
  planned: 'punctual_scheduler_planned_runs',
  ended: 'punctual_scheduler_ended_runs',
  released: 'punctual_scheduler_released_messages',
  lagSeconds: 'punctual_scheduler_release_lag',
  pickSeconds: 'punctual_scheduler_pick_duration',
  failures: 'punctual_scheduler_release_failures',
  releasedAgain: 'punctual_scheduler_released_again',
  refused: 'punctual_scheduler_refused_messages',
  activeRuns: 'punctual_scheduler_active_runs',
  backlog: 'punctual_scheduler_due_messages',
  waitingRuns: 'punctual_scheduler_waiting_runs',
} as const;
