import type { UploadSlots } from './upload-slots';
import type { UploadParts } from './storing/store-upload';

export interface UploadLimits {
  /** After decompression. */
  maxBytes: number;
  maxRecipients: number;
  stallMs: number;
}

/** What the steps about audiences work with. A class only so that it can be injected. */
export abstract class AudienceParts implements UploadParts {
  abstract readonly store: UploadParts['store'];
  abstract readonly readers: UploadParts['readers'];
  abstract readonly clock: UploadParts['clock'];
  abstract readonly limits: UploadLimits;
  abstract readonly slots: UploadSlots;
}
