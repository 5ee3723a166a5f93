import { counter, gauge, histogram } from '#runtime/metrics';

/** What operators see of a sender. Labels are closed words; a number's figures are in the API, not here. */
export const senderMetrics = {
  verdicts: counter('punctual_sender_gate_verdicts', 'Answers of the gate, by kind and reason'),
  gateSeconds: histogram('punctual_sender_gate_duration', 'One call to the gate'),
  gateBatch: histogram('punctual_sender_gate_batch', 'Messages in one call to the gate', {
    unit: '1',
    buckets: [1, 2, 5, 10, 20, 50, 100, 200],
  }),
  sends: counter('punctual_sender_sends', 'Calls to providers, by class of their outcome'),
  notPermitted: counter(
    'punctual_sender_writes_refused',
    'Claims that were not written to the socket, by the check that stopped them',
  ),
  providerSeconds: histogram('punctual_sender_provider_duration', 'From the write to the answer of a provider'),
  lagSeconds: histogram('punctual_sender_lag', 'From the due time to the write to the socket, first attempts'),
  recordSeconds: histogram('punctual_sender_record_duration', 'Recording one batch of results'),
  recordFailures: counter('punctual_sender_record_failures', 'Batches of results that could not be recorded at first'),
  slotsSpent: counter('punctual_sender_slots_unused', 'Reserved slots that passed without a message'),
  localSlots: counter(
    'punctual_sender_slots_local',
    'Slots given by the local clock at half the rate because Redis did not answer',
  ),
  parked: counter('punctual_sender_parked_records', 'Records that could not be read or placed, by reason'),
  woken: counter('punctual_sender_woken_messages', 'Waiting messages taken into lanes'),
  evidence: counter('punctual_sender_settled_claims', 'Claims settled by evidence'),
  swept: counter('punctual_sender_swept_claims', 'Claims moved by the sweeper, by what they became'),
  holds: counter('punctual_sender_holds', 'Holds begun, by what is held and why'),
};

export interface LaneFigures {
  lanes: number;
  queued: number;
  claiming: number;
  ready: number;
  inFlight: number;
  blocked: number;
  /** What the numbers with work may send now, all together; the sends beside it tell what is reached. */
  allowedPerSecond: number;
}

export function observeLanes(read: () => LaneFigures & { redisAvailable: boolean; unrecorded: number }): () => void {
  return gauge('punctual_sender_state', 'Lanes and what is in them; redis_available is 0 while pace is local', () => {
    const figures = read();
    return [
      { value: figures.lanes, labels: { what: 'lanes' } },
      { value: figures.blocked, labels: { what: 'blocked_lanes' } },
      { value: figures.allowedPerSecond, labels: { what: 'allowed_per_second' } },
      { value: figures.queued, labels: { what: 'queued' } },
      { value: figures.claiming, labels: { what: 'at_the_gate' } },
      { value: figures.ready, labels: { what: 'claimed' } },
      { value: figures.inFlight, labels: { what: 'with_providers' } },
      { value: figures.unrecorded, labels: { what: 'unrecorded_results' } },
      { value: figures.redisAvailable ? 1 : 0, labels: { what: 'redis_available' } },
    ];
  });
}
