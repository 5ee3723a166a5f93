import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import type { SendCall, SendOutcome } from '../provider';
import { classifyAnswer } from './classify-answer';
import { classifyFailure } from './classify-failure';

const LONGEST_ANSWER = 256 * 1024;

/** Made once: with its stack an error costs more than the request, and these come in thousands when a process is overloaded. */
class CallError extends Error {
  constructor(readonly code: string) {
    super(code);
    delete this.stack;
  }
}

const NOT_PERMITTED = new CallError('NOT_PERMITTED');
const NOT_WRITTEN_IN_TIME = new CallError('NOT_WRITTEN_IN_TIME');
const ALREADY_GIVEN_UP = new CallError('ALREADY_GIVEN_UP');
const WRITTEN_TWICE = new CallError('WRITTEN_TWICE');
const ANSWER_TOO_LONG = new CallError('ANSWER_TOO_LONG');
const DEADLINE = new CallError('DEADLINE');

/**
 * One request as the client library sees it. It calls `onRequestStart` in the very tick in which it writes the request to a
 * socket, and goes on to the write only if the request was not aborted in there: so this is where the last check is made, and
 * where "not sent" ends and "uncertain" begins.
 */
export class ProviderCall implements Dispatcher.DispatchHandler {
  private writtenAt: number | null = null;
  private settled = false;
  private status = 0;
  private headers: IncomingHttpHeaders = {};
  private readonly chunks: Buffer[] = [];
  private length = 0;
  private timer: NodeJS.Timeout;

  constructor(
    private readonly call: SendCall,
    private readonly resolve: (outcome: SendOutcome) => void,
  ) {
    this.timer = setTimeout(() => this.fail(NOT_WRITTEN_IN_TIME), Math.max(0, call.writeBy - performance.now()));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // Throwing ends the request before the write and leaves the connection whole; aborting would close it under the next one.
    if (this.writtenAt !== null) throw WRITTEN_TWICE;
    if (this.settled) throw ALREADY_GIVEN_UP;
    if (!this.call.mayWrite()) throw NOT_PERMITTED;
    this.writtenAt = performance.now();
    clearTimeout(this.timer);
    this.timer = setTimeout(
      () => {
        this.fail(DEADLINE);
        controller.abort(DEADLINE);
      },
      Math.max(0, this.call.deadlineAt - this.writtenAt),
    );
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    this.status = status;
    this.headers = headers;
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.length += chunk.length;
    if (this.length > LONGEST_ANSWER) controller.abort(ANSWER_TOO_LONG);
    else this.chunks.push(chunk);
  }

  onResponseEnd(): void {
    const body = (this.chunks.length === 1 ? this.chunks[0]! : Buffer.concat(this.chunks)).toString('utf8');
    this.settle(() => classifyAnswer({ status: this.status, headers: this.headers, body }, Date.now()));
  }

  onResponseError(_: Dispatcher.DispatchController | undefined, error: Error): void {
    this.fail(error);
  }

  private fail(error: Error): void {
    this.settle(() => classifyFailure({ written: this.writtenAt !== null, error }));
  }

  private settle(classify: () => SendOutcome['answer']): void {
    if (this.settled) return;
    this.settled = true;
    clearTimeout(this.timer);
    this.resolve({ answer: classify(), writtenAt: this.writtenAt, answeredAt: performance.now() });
  }
}
