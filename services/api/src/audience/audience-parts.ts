import type { UploadParts } from './store-upload';

export interface UploadLimits {
  /** After decompression. */
  maxBytes: number;
  maxRecipients: number;
  /** Uploads that are read at the same time; each takes up to 30 MB besides 12 to 48 bytes a recipient. */
  atOnce: number;
  stallMs: number;
}

/** What the steps about audiences work with. A class only so that it can be injected. */
export abstract class AudienceParts implements UploadParts {
  abstract readonly store: UploadParts['store'];
  abstract readonly readers: UploadParts['readers'];
  abstract readonly clock: UploadParts['clock'];
  abstract readonly limits: UploadLimits;
  /** How many uploads are being read. */
  underWay = 0;
}
