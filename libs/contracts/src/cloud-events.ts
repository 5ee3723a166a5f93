/** CloudEvents 1.0, Kafka binding, binary mode: the headers of a record on a public topic. */
export interface CloudEvent {
  id: string;
  /** For instance `punctual.message.status_changed`. */
  type: string;
  /** `/tenants/<id>` */
  source: string;
  subject: string;
  timeMs: number;
  dataSchema: string;
  /** What the partition was computed from. */
  partitionKey: string;
  sequence?: number;
  traceparent?: string | null;
}

/** Sequences sort as text: 20 digits hold every 64-bit number. */
export function formatSequence(sequence: number): string {
  return String(sequence).padStart(20, '0');
}

export function cloudEventHeaders(event: CloudEvent): Record<string, string> {
  const headers: Record<string, string> = {
    'content-type': 'application/avro',
    ce_specversion: '1.0',
    ce_id: event.id,
    ce_type: event.type,
    ce_source: event.source,
    ce_subject: event.subject,
    ce_time: new Date(event.timeMs).toISOString(),
    ce_dataschema: event.dataSchema,
    ce_partitionkey: event.partitionKey,
  };
  if (event.sequence !== undefined) headers.ce_sequence = formatSequence(event.sequence);
  if (event.traceparent) headers.ce_traceparent = event.traceparent;
  return headers;
}
