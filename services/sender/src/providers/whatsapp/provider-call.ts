import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import type { SendCall, SendOutcome } from '../provider';
import { classifyAnswer } from './classify-answer';
import { classifyFailure } from './classify-failure';

const LONGEST_ANSWER = 256 * 1024;

class NotWrittenError extends Error {
  constructor(readonly code: 'NOT_PERMITTED' | 'NOT_WRITTEN_IN_TIME' | 'ALREADY_GIVEN_UP') {
    super(code);
  }
}

class NoAnswerError extends Error {
  constructor(readonly code: 'DEADLINE' | 'ANSWER_TOO_LONG' | 'WRITTEN_TWICE') {
    super(code);
  }
}

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
    this.timer = setTimeout(
      () => this.fail(new NotWrittenError('NOT_WRITTEN_IN_TIME')),
      Math.max(0, call.writeBy - performance.now()),
    );
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // Throwing ends the request before the write and leaves the connection whole; aborting would close it under the next one.
    if (this.writtenAt !== null) throw new NoAnswerError('WRITTEN_TWICE');
    if (this.settled) throw new NotWrittenError('ALREADY_GIVEN_UP');
    if (!this.call.mayWrite()) throw new NotWrittenError('NOT_PERMITTED');
    this.writtenAt = performance.now();
    clearTimeout(this.timer);
    this.timer = setTimeout(
      () => {
        const error = new NoAnswerError('DEADLINE');
        this.fail(error);
        controller.abort(error);
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
    if (this.length > LONGEST_ANSWER) controller.abort(new NoAnswerError('ANSWER_TOO_LONG'));
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
