import { takeRunningServers } from './running-servers';

/** After the tests of a run: ends what start-servers started, and only that. */
export default async function stopServers(): Promise<void> {
  await takeRunningServers()?.stop();
}
