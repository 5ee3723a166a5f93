import type { Log } from '#runtime/log';
import type { Lanes } from './lane/lanes';
import type { NumberDirectory } from './numbers/number-directory';
import type { GatePort } from './postgres/gate-port';
import type { ProviderAdapter } from './providers/provider';
import type { RefreshNumbers } from './refresh-numbers';

export interface ProbeHeldNumbersOptions {
  gate: Pick<GatePort, 'endNumberHold'>;
  log: Log;
  lanes: Lanes;
  numbers: NumberDirectory;
  refresh: RefreshNumbers;
  adapter: ProviderAdapter;
}

/** A hold without an end is ended by new credentials, or by the provider saying that the number can send again. */
export class ProbeHeldNumbers {
  constructor(private readonly options: ProbeHeldNumbersOptions) {}

  /** Asks about each of our numbers that is held without an end. Answers how many holds ended. */
  async probeOnce(): Promise<number> {
    const { gate, log, lanes, numbers, refresh, adapter } = this.options;
    let ended = 0;
    for (const { numberId, holdUntil, holdReason } of [...refresh.held.values()]) {
      const number = numbers.get(numberId);
      if (
        holdUntil !== null ||
        holdReason !== 'account' ||
        !number ||
        number.removed ||
        !number.accessToken ||
        !lanes.owns(number)
      )
        continue;
      const { mode, providerNumberId, accessToken } = number;
      const health = await adapter.health({ numberId, mode, providerNumberId, accessToken });
      if (health.sendable !== true) {
        log.debug('a held number can not send yet', { numberId, hint: health.detail });
        continue;
      }
      await gate.endNumberHold(numberId);
      log.info('the provider says that a held number can send again; its messages are woken', { numberId });
      ended++;
    }
    if (ended > 0) await refresh.refreshOnce();
    return ended;
  }
}
