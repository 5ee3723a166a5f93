import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { LocalStackError } from './local-stack-error';

const LOWEST = 20_000;
const HIGHEST = 48_000;
const ATTEMPTS = 200;

/** Handed out by this process, whether or not the server listens yet: servers that start side by side never share one. */
const reserved = new Set<number>();

/**
 * A free loopback port below the kernel's range for outgoing connections. A port from that range could be taken by any
 * client while a server is being restarted, and a client that retries a dead server there can end up connected to itself.
 */
export async function pickPort(isFree: (port: number) => Promise<boolean> = isPortFree): Promise<number> {
  const highest = highestPort();
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const port = LOWEST + Math.floor(Math.random() * (highest - LOWEST));
    if (reserved.has(port)) continue;
    reserved.add(port);
    if (await isFree(port)) return port;
    reserved.delete(port);
  }
  throw new LocalStackError(
    'no_free_port',
    `No free port was found on 127.0.0.1 between ${LOWEST} and ${highest} in ${ATTEMPTS} attempts. Stop servers that you no longer need and start again.`,
  );
}

export async function pickPorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) ports.push(await pickPort());
  return ports;
}

/** The port that the caller asked for, if it is free, else an error that names the way out; a picked one without a wish. */
export async function wantedPort(server: string, wanted: number | undefined): Promise<number> {
  if (wanted === undefined) return pickPort();
  if (!(await isPortFree(wanted))) {
    throw new LocalStackError(
      'port_taken',
      `${server} was asked to listen on 127.0.0.1:${wanted}, but another program does. Name another port or none (a free one is then picked).`,
    );
  }
  reserved.add(wanted);
  return wanted;
}

export function releasePorts(ports: readonly number[]): void {
  for (const port of ports) reserved.delete(port);
}

export function isPortFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen({ port, host: '127.0.0.1', exclusive: true }, () => probe.close(() => resolve(true)));
  });
}

function highestPort(): number {
  try {
    const firstOutgoing = Number(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').trim().split(/\s+/)[0]);
    return firstOutgoing > LOWEST + 1_000 ? Math.min(firstOutgoing, HIGHEST) : HIGHEST;
  } catch {
    return HIGHEST;
  }
}
