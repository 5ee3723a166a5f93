import { LocalStackError } from './local-stack-error';

const ATTEMPTS = 3;
const PORT_TAKEN = /address already in use|EADDRINUSE|could not bind|Address in use/i;

/** Between the look at a port and the server's start another program may take it: then the start is repeated on others. */
export async function startAgainOnOtherPorts<T>(allowed: boolean, start: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start();
    } catch (error) {
      const portTaken = error instanceof LocalStackError && error.code === 'server_exited' && PORT_TAKEN.test(error.message);
      if (!portTaken || !allowed || attempt === ATTEMPTS) throw error;
    }
  }
}
