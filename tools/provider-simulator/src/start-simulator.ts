import { configurationSchema, type ConfigurationInput } from './configuration';
import { SimulatorControl } from './control-client';
import { DEFAULT_BOUNDS, type OracleBounds } from './oracle/oracle';
import { ProviderServer } from './provider-server';
import { Simulator } from './simulator';
import { systemClock, type SimulatorClock } from './timing/clock';

export interface SimulatorOptions {
  /** 0, the default: any free port. */
  port?: number;
  /** 127.0.0.1 by default. The control API has no password: anything else belongs in a closed network. */
  host?: string;
  configuration?: ConfigurationInput;
  bounds?: Partial<OracleBounds>;
  clock?: SimulatorClock;
}

export interface RunningSimulator {
  /** Base URL for sends: `${url}/v25.0/{phone number id}/messages`. */
  url: string;
  port: number;
  control: SimulatorControl;
  stop(): Promise<void>;
}

/** Starts the simulator in this process. A configuration that doesn't hold is thrown as a ZodError before anything listens. */
export async function startSimulator(options: SimulatorOptions = {}): Promise<RunningSimulator> {
  const configuration = configurationSchema.parse(options.configuration ?? {});
  const simulator = new Simulator(
    options.clock ?? systemClock(),
    { ...DEFAULT_BOUNDS, ...options.bounds },
    configuration.seed ?? 1,
  );
  const configured = await simulator.configure(configuration, false);
  if (!configured.ok) {
    await simulator.webhooks.stop();
    throw new Error(
      `The simulator did not start: the webhook endpoint ${configured.url} could not be verified: ${configured.reason}`,
    );
  }
  const server = new ProviderServer(simulator);
  const host = options.host ?? '127.0.0.1';
  const port = await server.listen(options.port ?? 0, host);
  const url = `http://${host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host}:${port}`;
  const control = new SimulatorControl(url);
  return {
    url,
    port,
    control,
    stop: async () => {
      await control.close();
      await server.stop();
      await simulator.webhooks.stop();
    },
  };
}
