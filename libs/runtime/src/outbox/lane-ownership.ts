import { createHash } from 'node:crypto';
import type { DedicatedClient } from '../postgres/dedicated-client';
import { sqlFile } from '../postgres/sql-file';

/** Lanes are owned in groups (lane modulo 16), so that up to 16 instances share an outbox and each asks for few locks. */
export const LANE_GROUPS = 16;
const MEMBERSHIP = 1_000_000;

const JOIN = sqlFile(__dirname, 'join-members.sql');
const COUNT = sqlFile(__dirname, 'count-members.sql');

/** One number per outbox, so that relays of two schemas don't take each other's locks; above those that SQL functions use. */
export function lockClassOf(schema: string): number {
  return 1_000_000_000 + (createHash('sha256').update(`outbox/${schema}`).digest().readUInt32BE(0) % 1_000_000_000);
}

export function groupOf(lane: number): number {
  return ((lane % LANE_GROUPS) + LANE_GROUPS) % LANE_GROUPS;
}

/**
 * Which lane groups this instance relays: its fair share of those that nobody else holds. The locks end with the connection,
 * so a dead instance's lanes are free as soon as the server sees its socket closed.
 */
export class LaneOwnership {
  private readonly lockClass: number;
  private joinedConnection = 0;
  private owned = new Set<number>();
  private next = Math.floor(Math.random() * LANE_GROUPS);

  constructor(
    private readonly client: DedicatedClient,
    schema: string,
  ) {
    this.lockClass = lockClassOf(schema);
  }

  /** Asked before every send: false from the moment that the loss of the connection is noticed. */
  owns(group: number): boolean {
    return this.owned.has(group) && this.client.holds(this.lockClass, group);
  }

  groups(): number[] {
    return [...this.owned].filter((group) => this.owns(group));
  }

  /** One step towards the fair share. `inUse` groups are given up only once they are idle. */
  async balanceOnce(inUse: (group: number) => boolean): Promise<void> {
    this.owned = new Set(this.groups());
    if (!this.client.connected) return;
    if (this.joinedConnection !== this.client.connection) {
      this.joinedConnection = this.client.connection;
      await this.client.rows(JOIN, [this.lockClass, MEMBERSHIP]);
    }
    const [row] = await this.client.rows<{ members: number }>(COUNT, [this.lockClass, MEMBERSHIP]);
    const share = Math.ceil(LANE_GROUPS / Math.max(1, row?.members ?? 1));
    for (const group of this.owned) {
      if (this.owned.size <= share) break;
      if (inUse(group)) continue;
      this.owned.delete(group);
      await this.client.unlock(this.lockClass, group);
    }
    for (let tried = 0; tried < LANE_GROUPS && this.owned.size < share; tried++) {
      const group = this.next;
      this.next = (this.next + 1) % LANE_GROUPS;
      if (!this.owned.has(group) && (await this.client.tryLock(this.lockClass, group))) this.owned.add(group);
    }
  }
}
