/**
 * How many uploads a process reads at the same time, and how many of them for one tenant: each takes up to 30 MB besides 12 to 48
 * bytes a recipient, and one tenant's slow clients must not keep all others out.
 */
export class UploadSlots {
  private readonly taken = new Map<string, number>();
  private all = 0;

  constructor(
    readonly most: number,
    readonly mostOfTenant: number,
  ) {}

  /** A function that gives the slot back, or why there is none. */
  take(tenantId: string): (() => void) | 'all_taken' | 'tenant_has_enough' {
    const own = this.taken.get(tenantId) ?? 0;
    if (own >= this.mostOfTenant) return 'tenant_has_enough';
    if (this.all >= this.most) return 'all_taken';
    this.taken.set(tenantId, own + 1);
    this.all++;
    return () => {
      const left = this.taken.get(tenantId)! - 1;
      if (left === 0) this.taken.delete(tenantId);
      else this.taken.set(tenantId, left);
      this.all--;
    };
  }
}
