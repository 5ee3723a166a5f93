export type LocalStackErrorCode =
  | 'program_missing'
  | 'program_too_old'
  | 'package_missing'
  | 'download_failed'
  | 'folder_in_use'
  | 'port_taken'
  | 'no_free_port'
  | 'server_exited'
  | 'server_not_ready'
  | 'server_not_stopped'
  | 'stopped_while_starting';

/** A fault of the local stack. The message says what was tried, what happened and what to do. */
export class LocalStackError extends Error {
  override readonly name = 'LocalStackError';

  constructor(
    readonly code: LocalStackErrorCode,
    message: string,
    options?: { cause?: unknown },
  ) {
    super(message, options);
  }
}
