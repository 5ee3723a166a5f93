import type { Health } from '../provider';

interface HealthStatus {
  can_send_message?: unknown;
  entities?: Array<{ entity_type?: unknown; can_send_message?: unknown; errors?: Array<{ error_code?: unknown }> }>;
}

/**
 * `GET /{phone}?fields=health_status`: AVAILABLE, LIMITED (works, with less) or BLOCKED, for the number and for what it depends on.
 * Meta's word for whether a send would be taken, at the price of one read.
 */
export function readHealth(body: string): Health {
  let status: HealthStatus | undefined;
  try {
    status = (JSON.parse(body) as { health_status?: HealthStatus }).health_status;
  } catch {
    return { sendable: null, detail: 'an answer that is not JSON' };
  }
  const overall = status?.can_send_message;
  if (overall === 'AVAILABLE' || overall === 'LIMITED') return { sendable: true };
  if (overall !== 'BLOCKED') return { sendable: null, detail: 'no health status' };
  const blocked = (status?.entities ?? [])
    .filter((entity) => entity.can_send_message === 'BLOCKED')
    .map(({ entity_type, errors }) =>
      [String(entity_type), ...(errors ?? []).map(({ error_code }) => String(error_code))].join(' '),
    );
  return { sendable: false, detail: blocked.join(', ') || 'blocked' };
}
