import { graphErrorBody, graphErrorStatus, type GraphRefusal } from './graph/graph-errors';
import { accountNode, phoneNumberNode, templatePage } from './graph/read-node';
import type { Simulator } from './simulator';

const NODE_PATH = /^(?:\/v[0-9]+\.[0-9]+)?\/([0-9]{1,32})(\/message_templates)?$/;

/** `GET /{id}?fields=...` and `GET /{WABA id}/message_templates`; anything else as Graph refuses it. */
export function answerRead(
  simulator: Simulator,
  method: string,
  url: string,
  accessToken: string | undefined,
): { httpStatus: number; body: string } {
  const { pathname, searchParams } = new URL(url, 'http://simulator');
  const path = method === 'GET' ? NODE_PATH.exec(pathname) : null;
  if (!path) return refuse({ code: 2500, title: `Unknown path components: ${pathname}` });
  if (!accessToken) return refuse({ code: 104 });
  if (simulator.rules.hasExpired(accessToken)) return refuse({ code: 190 });
  const id = path[1]!;
  if (path[2]) {
    const page = templatePage([...simulator.templates.values()], {
      name: searchParams.get('name') ?? undefined,
      status: searchParams.get('status') ?? undefined,
      limit: Math.min(Math.max(Number(searchParams.get('limit') ?? 25) || 25, 1), 1000),
      after: searchParams.get('after') ?? undefined,
    });
    return { httpStatus: 200, body: JSON.stringify(page) };
  }
  const ofAccount = [...simulator.numbers.values()].filter((number) => number.identity.wabaId === id);
  if (ofAccount.length > 0 || id === simulator.settings.wabaId)
    return { httpStatus: 200, body: JSON.stringify(accountNode(id, ofAccount)) };
  const number = simulator.numberFor(id);
  if (!number)
    return refuse({
      code: 100,
      subcode: 33,
      type: 'GraphMethodException',
      title: `Unsupported get request. Object with ID '${id}' does not exist`,
    });
  const expected = number.configuration.accessToken;
  if (expected && expected !== accessToken) {
    return refuse({ code: 190, subcode: 467, title: 'Invalid OAuth access token - Cannot parse access token' });
  }
  const fields = (searchParams.get('fields') ?? '').split(',').filter((field) => field !== '');
  return { httpStatus: 200, body: JSON.stringify(phoneNumberNode(number, fields)) };
}

function refuse(refusal: GraphRefusal): { httpStatus: number; body: string } {
  return { httpStatus: graphErrorStatus(refusal), body: graphErrorBody(refusal, 'Aread0000000000000') };
}
