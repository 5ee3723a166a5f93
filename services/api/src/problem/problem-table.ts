/** Every problem that the API answers: status, title, and what the caller should do. One table, so that nothing answers otherwise. */
export const PROBLEMS = {
  body_unparseable: [400, 'The body can not be read', 'Send well-formed JSON in UTF-8, at most 32 levels deep.'],
  unknown_member: [400, 'Unknown members or parameters', 'Take them out or correct their spelling; `errors` lists each one.'],
  request_unreadable: [400, 'The request is not HTTP/1.1', 'Send well-formed HTTP/1.1; the connection was closed.'],
  header_invalid: [400, 'A header can not be read', 'Correct the header named in `errors`.'],
  upload_interrupted: [400, 'The upload ended before its end', 'Upload the file again; nothing of it was kept.'],
  key_in_query: [
    400,
    'A key in the URL',
    'Send it as `Authorization: Bearer <key>`, and replace it: URLs are logged everywhere.',
  ],
  cursor_mismatch: [
    400,
    'The cursor does not belong to this list',
    'Start again without a cursor, or repeat the filters it was made with.',
  ],
  unauthorized: [401, 'No valid key', 'Send `Authorization: Bearer punctual_...` with a key that exists and was not revoked.'],
  scope_missing: [403, 'The key may not do this', 'Use a key that has the scope named in `detail`.'],
  not_found: [404, 'There is nothing at this address', 'Check the path against /docs.'],
  tenant_not_found: [404, 'No such tenant', 'Check the id.'],
  number_not_found: [404, 'No such number', 'Check its name; PUT creates it.'],
  schedule_not_found: [404, 'No such schedule', 'Check the id, and that the key belongs to the same tenant.'],
  run_not_found: [404, 'No such run', 'Check the id, and that the key belongs to the same tenant.'],
  message_not_found: [404, 'No such message', 'Check the id, and that the key belongs to the same tenant.'],
  audience_not_found: [404, 'No such audience', 'Check the id, and that the key belongs to the same tenant.'],
  request_stalled: [408, 'The request did not come to its end', 'Send it again, whole, within the time that `detail` names.'],
  upload_stalled: [408, 'The upload stood still', 'Upload the file again; nothing of it was kept.'],
  external_id_taken: [
    409,
    'The external id is in use',
    'External ids are unique for good; `existing` is the schedule that has it.',
  ],
  duplicate_schedule: [
    409,
    'The same campaign is scheduled already',
    '`existing` has the same number, content, instant and recipients. Send `"allowDuplicate": true` if you mean it.',
  ],
  number_taken: [
    409,
    'This provider number is registered already',
    'A provider number exists once per installation; remove the other.',
  ],
  schedule_ended: [409, 'The schedule has ended', 'It was cancelled or completed; create a new one.'],
  audience_in_use: [
    409,
    'Messages are on their way to this audience',
    'Content and time can still change; for other recipients create a new schedule.',
  ],
  too_late: [409, 'Too late to cancel this message', '`messageStatus` says how far it is.'],
  request_in_progress: [409, 'The first request with this key is still running', 'Repeat it after a second.'],
  version_mismatch: [
    412,
    'The schedule has changed meanwhile',
    'Read it again and repeat with the `ETag` it has now; see `currentVersion`.',
  ],
  body_too_large: [413, 'The body is too large', 'Upload large audiences with POST /v1/audiences and give `audienceId`.'],
  upload_too_large: [413, 'The file is too large', 'Make several audiences of it; `errors` says what the limit is.'],
  media_type_unsupported: [415, 'This kind of body is not understood', 'Send `Content-Type: application/json`.'],
  expectation_unsupported: [417, 'This expectation can not be met', 'Leave the header Expect out, or send `100-continue`.'],
  request_invalid: [422, 'The request is not valid', 'Correct every member listed in `errors`.'],
  upload_invalid: [422, 'The file can not be taken', 'Correct what `errors` names and upload it again; nothing of it was kept.'],
  idempotency_key_reused: [422, 'The Idempotency-Key was used for another request', 'Use a new key for a new request.'],
  precondition_required: [428, 'If-Match is required', 'Send the `ETag` of the version that you changed.'],
  too_many_uploads: [429, 'Too many uploads at once', 'Wait until one of them is answered, or for `Retry-After` seconds.'],
  headers_too_large: [431, 'The headers are too large', 'Send fewer or shorter headers: 16 KB with the request line.'],
  internal: [
    500,
    'A fault on our side',
    'Repeat the request with the same Idempotency-Key; tell us the correlation id if it stays.',
  ],
  unavailable: [503, 'Not available right now', 'Repeat the request with the same Idempotency-Key after `Retry-After` seconds.'],
} as const satisfies Record<string, readonly [status: number, title: string, action: string]>;

export type ProblemCode = keyof typeof PROBLEMS;

/** One thing that is wrong, and where: exactly one of pointer, parameter and header is set. */
export interface Fault {
  pointer?: string;
  parameter?: string;
  header?: string;
  code: string;
  detail: string;
  given?: unknown;
  allowed?: unknown;
  hint?: string;
}

/** A refusal on its way to the caller. A value: nothing throws it. */
export interface Refusal {
  refused: ProblemCode;
  detail?: string;
  errors?: Fault[];
  /** Extension members such as `existing` or `currentVersion`. */
  members?: Record<string, unknown>;
  headers?: Record<string, string>;
}

export function refuse(code: ProblemCode, more: Omit<Refusal, 'refused'> = {}): Refusal {
  return { refused: code, ...more };
}

export function isRefusal(value: object): value is Refusal {
  return 'refused' in value;
}

const MOST_FAULTS = 100;

export interface Problem {
  status: number;
  body: Record<string, unknown>;
  headers: Record<string, string>;
}

/** RFC 9457. `origin` is where the API is reached: the type is a URL that answers what the code means. */
export function problemOf(refusal: Refusal, origin: string, instance: string): Problem {
  const [status, title, action] = PROBLEMS[refusal.refused];
  const errors = refusal.errors ?? [];
  const body: Record<string, unknown> = {
    type: `${origin}/errors/${refusal.refused}`,
    title,
    status,
    code: refusal.refused,
    detail: refusal.detail ?? action,
    instance,
    ...refusal.members,
  };
  if (errors.length > 0) body.errors = errors.slice(0, MOST_FAULTS);
  if (errors.length > MOST_FAULTS) body.errorsOmitted = errors.length - MOST_FAULTS;
  return { status, body, headers: refusal.headers ?? {} };
}
