import type { Clock } from '#runtime/clock';
import type { Log } from '#runtime/log';
import { pause } from '#runtime/pause';
import { scrub } from '#runtime/scrub';
import type { LaneMessage } from './lane/lane-message';
import type { Lanes } from './lane/lanes';
import type { LaneHold, NumberLane } from './lane/number-lane';
import type { NumberDirectory, SendingNumber } from './numbers/number-directory';
import type { Decision, Effect } from './outcome/decide-outcome';
import type { HostCircuit } from './outcome/host-circuit';
import { templateKey, type GatePort } from './postgres/gate-port';
import { senderMetrics } from './sender-metrics';

export interface ApplyEffectsOptions {
  gate: Pick<GatePort, 'holdNumber' | 'holdTemplate' | 'addSuppressions' | 'setLearnedRate'>;
  clock: Clock;
  log: Log;
  lanes: Lanes;
  numbers: NumberDirectory;
  circuits: Readonly<Record<'test' | 'live', HostCircuit>>;
  /** A hold is stored: the messages of its lane can be kept as waiting rows now. */
  onHeld(): void;
  /** Fires when the process gives up: what could not be stored by then is found out again by the next answer. */
  signal: AbortSignal;
}

/** Shorter circuits are over before anybody could read about them. */
const WORTH_STORING_MS = 2_000;

export function templateKeyOf(number: Pick<SendingNumber, 'wabaId' | 'providerNumberId'>, message: LaneMessage): string | null {
  const { content } = message.found.content;
  return 'template' in content
    ? templateKey(number.wabaId ?? number.providerNumberId, content.template.name, content.template.language)
    : null;
}

/** What an answer means for the number, its account, its template or the recipient: at once in this process, then in the gate's tables. */
export class ApplyEffects {
  /** How often a number was paused for the same trouble; a pause that came long ago is forgotten. */
  private readonly pauses = new Map<string, { count: number; at: number }>();
  private readonly storing = new Set<Promise<void>>();

  constructor(private readonly options: ApplyEffectsOptions) {}

  repetitionOf(numberId: string): number {
    const known = this.pauses.get(numberId);
    return known && this.options.clock.nowMs() - known.at < 48 * 3_600_000 ? known.count : 0;
  }

  onDecision(sent: { lane: NumberLane; number: SendingNumber; message: LaneMessage; decision: Decision }): void {
    for (const effect of sent.decision.effects) this.apply(effect, sent.lane, sent.number, sent.message);
  }

  /** Resolves when everything that was to be stored is. */
  async settled(): Promise<void> {
    await Promise.all(this.storing);
  }

  /** A try to connect to the provider of that mode; null when it succeeded. */
  onConnection(mode: 'test' | 'live', error: Error | null): void {
    const { circuits, clock, log, gate, lanes, numbers } = this.options;
    const circuit = circuits[mode];
    if (error === null) return circuit.reached();
    const openMs = circuit.notReached(clock.monotonicMs());
    if (openMs === 0) return;
    log.warn('a provider can not be reached; its numbers wait and try again', { durationMs: openMs, reason: mode, error });
    senderMetrics.holds.add(1, { what: 'host', reason: 'circuit' });
    if (openMs < WORTH_STORING_MS) return;
    const until = clock.nowMs() + openMs;
    for (const lane of lanes.active) {
      if (numbers.get(lane.numberId)?.mode !== mode) continue;
      this.store(() =>
        gate.holdNumber({ numberId: lane.numberId, reason: 'circuit', until, detail: 'the provider can not be reached' }),
      );
    }
  }

  private apply(effect: Effect, lane: NumberLane, number: SendingNumber, message: LaneMessage): void {
    const { gate, clock, log, lanes } = this.options;
    switch (effect.kind) {
      case 'slow_number': {
        const now = clock.monotonicMs();
        if (!lane.pace.rate.throttled(now)) return;
        lane.pace.waitUntil(now + effect.waitMs);
        lane.pace.dropSlots();
        const learned = lane.pace.rate.at(now);
        log.warn('a provider throttled a number; its pace is halved and recovers', {
          numberId: number.numberId,
          count: Math.round(learned),
        });
        this.store(() => gate.setLearnedRate(number.numberId, learned));
        return;
      }
      case 'hold_number': {
        const { reason, until, scope } = effect;
        const detail = scrub(effect.detail);
        if (until !== null && scope === 'number') this.countPause(number.numberId);
        for (const numberId of this.affected(number, scope)) {
          const of = lanes.get(numberId);
          // The answers of calls that were out tell the same; one hold is enough.
          if (of?.block === 'held') continue;
          const hold: LaneHold = { reason, until, stored: false };
          if (of && of.block !== 'not_owned') {
            of.block = 'held';
            of.hold = hold;
          }
          senderMetrics.holds.add(1, { what: 'number', reason });
          log.warn('a number is held; its messages wait', { numberId, reason, until, hint: detail });
          this.store(async () => {
            await gate.holdNumber({ numberId, reason, until, detail });
            hold.stored = true;
            this.options.onHeld();
          });
        }
        return;
      }
      case 'hold_template': {
        const key = templateKeyOf(number, message);
        if (key === null) return;
        senderMetrics.holds.add(1, { what: 'template', reason: 'template' });
        this.store(() => gate.holdTemplate({ templateKey: key, until: effect.until, detail: scrub(effect.detail) }));
        return;
      }
      case 'suppress_recipient': {
        const { hash, content } = message.found;
        const entry = { tenantId: number.tenantId, channel: number.channel, category: content.category ?? 'marketing' };
        this.store(() => gate.addSuppressions([{ ...entry, recipientHash: hash, reason: effect.code }]));
        return;
      }
      default:
        return effect satisfies never;
    }
  }

  private affected(number: SendingNumber, scope: 'number' | 'waba' | 'app'): string[] {
    const same = (other: SendingNumber): boolean => {
      if (other.numberId === number.numberId) return true;
      if (scope === 'waba') return number.wabaId !== null && other.wabaId === number.wabaId;
      return scope === 'app' && number.appId !== null && other.appId === number.appId;
    };
    return [...this.options.numbers.all()].filter(same).map(({ numberId }) => numberId);
  }

  private countPause(numberId: string): void {
    this.pauses.set(numberId, { count: this.repetitionOf(numberId) + 1, at: this.options.clock.nowMs() });
  }

  /** Stored however long it takes: a hold that is only in this process's memory is lost with it. */
  private store(work: () => Promise<void>): void {
    const stored = (async () => {
      for (let attempt = 0; !this.options.signal.aborted; attempt++) {
        try {
          return await work();
        } catch (error) {
          if (attempt % 20 === 0) this.options.log.warn('a hold can not be stored; trying again', { error });
          await pause(Math.min(1_000, 50 * 2 ** attempt), this.options.signal);
        }
      }
    })();
    this.storing.add(stored);
    void stored.finally(() => this.storing.delete(stored));
  }
}
