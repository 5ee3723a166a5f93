import { request } from 'undici';

/** The API answered a problem (RFC 9457). */
export class ApiProblem extends Error {
  constructor(
    readonly status: number,
    readonly problem: Record<string, unknown>,
    call: string,
  ) {
    super(
      `${call} answered ${status} ${String(problem.code ?? '')}: ${String(problem.detail ?? '')} ${JSON.stringify(problem.errors ?? '')}`,
    );
  }
}

/** Calls of one key. */
export class Api {
  constructor(
    readonly url: string,
    private readonly key: string,
  ) {}

  get<T>(path: string): Promise<T> {
    return this.call<T>('GET', path);
  }

  post<T>(path: string, body: unknown = {}, headers: Record<string, string> = {}): Promise<T> {
    return this.call<T>('POST', path, JSON.stringify(body), { 'content-type': 'application/json', ...headers });
  }

  put<T>(path: string, body: unknown): Promise<T> {
    return this.call<T>('PUT', path, JSON.stringify(body), { 'content-type': 'application/json' });
  }

  patch<T>(path: string, body: unknown, headers: Record<string, string> = {}): Promise<T> {
    return this.call<T>('PATCH', path, JSON.stringify(body), { 'content-type': 'application/json', ...headers });
  }

  uploadCsv<T>(path: string, csv: Buffer): Promise<T> {
    return this.call<T>('POST', path, csv, { 'content-type': 'text/csv' });
  }

  private async call<T>(
    method: 'GET' | 'POST' | 'PUT' | 'PATCH',
    path: string,
    body?: string | Buffer,
    headers: Record<string, string> = {},
  ): Promise<T> {
    const answer = await request(this.url + path, {
      method,
      body,
      headers: { authorization: `Bearer ${this.key}`, ...headers },
      headersTimeout: 120_000,
    });
    const json = (await answer.body.json()) as Record<string, unknown>;
    if (answer.statusCode >= 300) throw new ApiProblem(answer.statusCode, json, `${method} ${path}`);
    return json as T;
  }
}
