interface RequestQueue {
  pending: unknown[];
  scheduleCheckPendingRequests(): void;
}

const patched = Symbol('idle request queue');

/**
 * kafkajs 2.2.4 looks for pending requests in a timer of 1 ms that starts itself anew for as long as a connection lives
 * (tulios/kafkajs#1704): a thousand wake-ups a second for each connection, a tenth of a core for a service that does nothing. The
 * look is needed only while a request waits for its turn, and whatever makes one wait schedules it.
 */
export function letIdleConnectionsSleep(): void {
  // eslint-disable-next-line @typescript-eslint/no-require-imports -- the class is not exported and has no types
  const { prototype } = require('kafkajs/src/network/requestQueue') as { prototype: RequestQueue & { [patched]?: true } };
  if (prototype[patched]) return;
  const schedule = prototype.scheduleCheckPendingRequests;
  prototype.scheduleCheckPendingRequests = function (this: RequestQueue) {
    if (this.pending.length > 0) schedule.call(this);
  };
  prototype[patched] = true;
}
