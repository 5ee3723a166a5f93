import { Controller, Inject, UseFilters } from '@nestjs/common';
import { EventPattern, Payload } from '@nestjs/microservices';
import type { Codec } from '#contracts/codec';
import { KAFKA_BATCH, KeepErrors } from '#runtime/kafka/nest-strategy';
import type { InBatch } from '#runtime/kafka/port';
import type { GatePort } from '../postgres/gate-port';
import { settleEvidence } from '../settle-evidence';

export const GATE = Symbol('gate');
export const CODEC = Symbol('codec');

/** The topic's name holds the installation's prefix, which is known only at start. */
export function evidenceController(topic: string) {
  @Controller()
  @UseFilters(KeepErrors)
  class EvidenceController {
    constructor(
      @Inject(GATE) private readonly gate: GatePort,
      @Inject(CODEC) private readonly codec: Codec,
    ) {}

    @EventPattern(topic, KAFKA_BATCH)
    async onBatch(@Payload() batch: InBatch): Promise<void> {
      await settleEvidence(batch, { codec: this.codec, gate: this.gate });
    }
  }
  return EvidenceController;
}
