/**
 * What the Graph API says for each code: HTTP status, title and details. Statuses follow Meta's error table; for codes that
 * the table leaves out, 400. A caller must judge by `code` and not by the status, so rules may override the status.
 */
interface GraphErrorKind {
  httpStatus: number;
  title: string;
  details?: string;
  subcode?: number;
  /** The codes below 1,000 put no `(#code)` before the message when the message stands alone. */
  bare?: boolean;
}

const GRAPH_ERRORS: Record<number, GraphErrorKind> = {
  0: { httpStatus: 401, title: 'We were unable to authenticate the app user.', bare: true },
  1: { httpStatus: 400, title: 'An unknown error occurred', bare: true },
  2: { httpStatus: 503, title: 'Service temporarily unavailable' },
  3: { httpStatus: 500, title: 'Application does not have the capability to make this API call.' },
  4: { httpStatus: 400, title: 'Application request limit reached' },
  10: { httpStatus: 403, title: 'Application does not have permission for this action' },
  17: { httpStatus: 400, title: 'User request limit reached' },
  33: { httpStatus: 400, title: 'The business phone number has been deleted.' },
  100: { httpStatus: 400, title: 'Invalid parameter', details: 'Invalid parameter' },
  104: { httpStatus: 401, title: 'An access token is required to request this resource.', bare: true },
  190: { httpStatus: 401, title: 'Error validating access token: Session has expired', subcode: 463, bare: true },
  200: { httpStatus: 403, title: 'Permissions error' },
  368: { httpStatus: 403, title: 'Temporarily blocked for policies violations' },
  613: { httpStatus: 400, title: 'Calls to this api have exceeded the rate limit.' },
  80007: { httpStatus: 400, title: 'Rate limit issues', details: 'The WhatsApp Business Account has reached its rate limit.' },
  130403: { httpStatus: 400, title: 'User is blocked by the business' },
  130429: { httpStatus: 400, title: 'Rate limit hit', details: 'Cloud API message throughput has been reached.' },
  130472: {
    httpStatus: 400,
    title: "User's number is part of an experiment",
    details: "Failed to send message because this user's phone number is part of an experiment",
  },
  130497: { httpStatus: 403, title: 'Business account is restricted from messaging users in this country.' },
  131000: { httpStatus: 500, title: 'Something went wrong', details: 'Message failed to send due to an unknown error.' },
  131005: { httpStatus: 403, title: 'Access denied', details: 'Permission is either not granted or has been removed.' },
  131008: { httpStatus: 400, title: 'Required parameter is missing', details: 'The request is missing a required parameter.' },
  131009: { httpStatus: 400, title: 'Parameter value is not valid', details: 'One or more parameter values are invalid.' },
  131016: { httpStatus: 500, title: 'Service unavailable', details: 'A service is temporarily unavailable.' },
  131021: { httpStatus: 400, title: 'Recipient cannot be sender', details: 'Sender and recipient phone number is the same.' },
  131026: { httpStatus: 400, title: 'Message undeliverable', details: 'Message Undeliverable.' },
  131030: { httpStatus: 400, title: 'Recipient phone number not in allowed list' },
  131031: { httpStatus: 403, title: 'Business Account locked', details: 'The account has been restricted or disabled.' },
  131037: { httpStatus: 400, title: 'WhatsApp provided number needs display name approval before message can be sent.' },
  131042: {
    httpStatus: 400,
    title: 'Business eligibility payment issue',
    details: 'Message failed to send because there were one or more errors related to your payment method.',
  },
  131045: {
    httpStatus: 500,
    title: 'Incorrect certificate',
    details: 'Message failed to send due to a phone number registration error.',
  },
  131047: {
    httpStatus: 400,
    title: 'Re-engagement message',
    details: 'More than 24 hours have passed since the recipient last replied to the sender number.',
  },
  131048: {
    httpStatus: 400,
    title: 'Spam rate limit hit',
    details: 'Message failed to send because there are restrictions on how many messages can be sent from this phone number.',
  },
  131049: {
    httpStatus: 400,
    title: 'This message was not delivered to maintain healthy ecosystem engagement.',
    details: 'In order to maintain a healthy ecosystem engagement, the message failed to be delivered.',
  },
  131050: {
    httpStatus: 400,
    title: 'User has stopped receipt of marketing messages',
    details:
      'Unable to deliver the message. This recipient has chosen to stop receiving marketing messages on WhatsApp from your business.',
  },
  131051: { httpStatus: 400, title: 'Message type unknown', details: 'Message type is not currently supported.' },
  131053: { httpStatus: 400, title: 'Media upload error', details: 'Unable to upload the media used in the message.' },
  131056: {
    httpStatus: 400,
    title: '(Business Account, Consumer Account) pair rate limit hit',
    details:
      'Message failed to send because there were too many messages sent from this phone number to the same phone number in a short period of time.',
  },
  131057: { httpStatus: 500, title: 'Account in maintenance mode', details: 'The business account is in maintenance mode.' },
  131062: { httpStatus: 400, title: 'Business-scoped user ids are not supported for this message' },
  131063: { httpStatus: 400, title: 'Marketing messages are disabled on this endpoint' },
  131064: { httpStatus: 400, title: 'Account limit for template classification violations' },
  132000: {
    httpStatus: 400,
    title: 'Number of parameters does not match the expected number of params',
    details: 'The number of variable values does not match the template.',
  },
  132001: { httpStatus: 404, title: 'Template name does not exist in the translation', details: 'The template does not exist.' },
  132005: { httpStatus: 400, title: 'Template hydrated text too long', details: 'The translated text is too long.' },
  132007: { httpStatus: 400, title: 'Template format character policy violated', details: 'Template content violates a policy.' },
  132008: { httpStatus: 400, title: 'Template parameter value format mismatch' },
  132012: { httpStatus: 400, title: 'Parameter format does not match format in the created template' },
  132015: {
    httpStatus: 400,
    title: 'Template is paused',
    details: 'Template is paused due to low quality so it cannot be sent in a template message.',
  },
  132016: { httpStatus: 400, title: 'Template is disabled', details: 'Template was paused too often and is now disabled.' },
  132018: { httpStatus: 400, title: 'Template validation error' },
  132068: { httpStatus: 400, title: 'Flow is blocked' },
  132069: { httpStatus: 400, title: 'Flow is throttled' },
  133004: { httpStatus: 503, title: 'Server temporarily unavailable' },
  133010: { httpStatus: 400, title: 'Phone number not registered' },
  134101: { httpStatus: 400, title: 'Template is syncing' },
  134102: { httpStatus: 500, title: 'Template is unavailable for use' },
  135000: { httpStatus: 400, title: 'Generic user error', details: 'There was an error with your request parameters.' },
};

const UNLISTED: GraphErrorKind = { httpStatus: 400, title: 'Unknown error' };

/** A refusal that the Graph API words itself. */
export interface GraphRefusal {
  code: number;
  httpStatus?: number;
  subcode?: number;
  title?: string;
  details?: string;
  type?: string;
  transient?: boolean;
}

export function graphErrorStatus(refusal: GraphRefusal): number {
  return refusal.httpStatus ?? (GRAPH_ERRORS[refusal.code] ?? UNLISTED).httpStatus;
}

/** The body of a synchronous error, members in Meta's order. */
export function graphErrorBody(refusal: GraphRefusal, traceId: string): string {
  const kind = GRAPH_ERRORS[refusal.code] ?? UNLISTED;
  const title = refusal.title ?? kind.title;
  const details = refusal.details ?? kind.details;
  const subcode = refusal.subcode ?? kind.subcode;
  return JSON.stringify({
    error: {
      message: kind.bare || refusal.title ? title : `(#${refusal.code}) ${title}`,
      type: refusal.type ?? 'OAuthException',
      code: refusal.code,
      ...(refusal.transient === undefined ? {} : { is_transient: refusal.transient }),
      ...(details === undefined ? {} : { error_data: { messaging_product: 'whatsapp', details } }),
      ...(subcode === undefined ? {} : { error_subcode: subcode }),
      fbtrace_id: traceId,
    },
  });
}

/** The same error as `statuses[].errors[]` tells it. */
export function webhookError(code: number, details?: string): object {
  const kind = GRAPH_ERRORS[code] ?? UNLISTED;
  return {
    code,
    title: kind.title,
    message: kind.title,
    error_data: { details: details ?? kind.details ?? kind.title },
    href: 'https://developers.facebook.com/documentation/business-messaging/whatsapp/support/error-codes',
  };
}
