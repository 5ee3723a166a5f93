import { sample } from '../../test-support/samples';
import { graphErrorBody, graphErrorStatus, webhookError, type GraphRefusal } from './graph-errors';

describe('graphErrorBody', () => {
  const cases: [string, GraphRefusal][] = [
    ['wa-error-100-invalid-parameter', { code: 100, details: 'Invalid parameter: template[components][1]' }],
    ['wa-error-130429-throughput', { code: 130429 }],
    ['wa-error-131000-something-wrong', { code: 131000 }],
    ['wa-error-131042-payment', { code: 131042 }],
    ['wa-error-131047-reengagement', { code: 131047 }],
    ['wa-error-131048-spam', { code: 131048 }],
    ['wa-error-131056-pair', { code: 131056 }],
    [
      'wa-error-132000-param-count',
      { code: 132000, details: 'body: number of localizable_params (1) does not match the expected number of params (2)' },
    ],
    ['wa-error-132001-template-missing', { code: 132001, details: 'template name (autumn_offer) does not exist in fr_FR' }],
    ['wa-error-190-token-expired', { code: 190 }],
    ['wa-error-2-service', { code: 2 }],
    ['wa-error-4-app-limit', { code: 4 }],
  ];

  it.each(cases)('is the body of %s', (name, refusal) => {
    const expected = sample(name);
    expect(graphErrorStatus(refusal)).toBe(expected.http_status);
    expect(JSON.parse(graphErrorBody(refusal, 'AFakeTraceId0000000000'))).toEqual(expected.body);
  });

  it('keeps its shape for a code that it does not know', () => {
    const body = JSON.parse(graphErrorBody({ code: 139999, httpStatus: 418, subcode: 7 }, 'A')) as unknown;
    expect(body).toEqual({
      error: { message: '(#139999) Unknown error', type: 'OAuthException', code: 139999, error_subcode: 7, fbtrace_id: 'A' },
    });
  });
});

describe('webhookError', () => {
  const cases = ['130472-experiment', '131026', '131049', '131050-optout', '132015-held-dropped'];

  it.each(cases)('is the error of wa-webhook-status-failed-%s', (name) => {
    const body = sample<{ entry: { changes: { value: { statuses: { errors: { code: number }[] }[] } }[] }[] }>(
      `wa-webhook-status-failed-${name}`,
    );
    const [expected] = body.entry[0]!.changes[0]!.value.statuses[0]!.errors;
    expect(webhookError(expected!.code)).toEqual(expected);
  });
});
