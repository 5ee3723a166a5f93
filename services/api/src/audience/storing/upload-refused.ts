import type { HeaderFault } from '../reading/read-header';

export type UploadFault =
  | HeaderFault
  | 'upload_empty'
  | 'upload_too_large'
  | 'upload_too_many_rows'
  | 'upload_interrupted'
  | 'upload_stalled'
  | 'compression_invalid'
  | 'encoding_invalid'
  | 'quote_not_closed'
  | 'record_too_long';

/** Where in the file: rows and columns counted from 1, the header included, as RFC 7111 does for text/csv. */
export interface FilePlace {
  row?: number;
  column?: number;
}

/** The file as a whole can't be taken; nothing of it is kept. */
export class UploadRefused extends Error {
  override readonly name = 'UploadRefused';
  constructor(
    readonly code: UploadFault,
    readonly detail: string,
    readonly place: FilePlace = {},
  ) {
    super(detail);
  }
}
