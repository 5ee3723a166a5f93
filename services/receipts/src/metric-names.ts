/** Every metric of this service. */
export const METRICS = {
  webhooksKept: 'punctual_webhooks_kept',
  webhooksRefused: 'punctual_webhooks_refused',
  webhookItemsIgnored: 'punctual_webhook_items_ignored',
  evidenceUnclaimed: 'punctual_evidence_unclaimed',
  projectedRecords: 'punctual_projected_records',
  projectionSeconds: 'punctual_projection_duration',
  projectionBatch: 'punctual_projection_batch',
} as const;
