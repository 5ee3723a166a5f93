import { formatId, uuidBytes } from '#contracts/ids';
import type { AudienceTotals, RejectedRow } from './storing/audience-store';
import { RECIPIENT_FAULTS } from './reading/read-recipient';

export interface ViewedAudience extends Omit<AudienceTotals, 'chunkCount' | 'setHash' | 'sample'> {
  id: string;
  name: string | null;
  columns: string[];
  createdAt: Date;
}

/** An audience as customers see it. */
export function audienceView(audience: ViewedAudience): Record<string, unknown> {
  const { id, name, accepted, rejected, duplicates, columns, missing, rejectedSample, warnings, createdAt } = audience;
  return {
    id: formatId('aud', uuidBytes(id)),
    name,
    status: 'ready',
    accepted,
    rejected,
    duplicates,
    parameters: columns.map((column) => ({
      name: column,
      missing: missing[column]?.count ?? 0,
      firstMissingRow: missing[column]?.firstRow ?? null,
    })),
    rejectedSample: rejectedSample.map(rejectedView),
    warnings,
    createdAt: createdAt.toISOString(),
  };
}

export function rejectedView({ row, value, code }: RejectedRow): { row: number; value: string; code: string; reason: string } {
  return { row, value, code, reason: RECIPIENT_FAULTS[code] };
}
