import { createServer, type Server } from 'node:net';
import { isPortFree, pickPort, pickPorts, releasePorts, wantedPort } from './pick-port';

const servers: Server[] = [];

function listen(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    servers.push(server);
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
}

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => new Promise((resolve) => server.close(resolve))));
});

describe('picking ports', () => {
  it('never gives the same port to two servers that start side by side', async () => {
    const picked = (await Promise.all(Array.from({ length: 20 }, () => pickPorts(3)))).flat();
    expect(new Set(picked).size).toBe(60);
    releasePorts(picked);
  });

  it('gives ports that a server can listen on', async () => {
    const port = await pickPort();
    await expect(listen(port)).resolves.toBeUndefined();
    releasePorts([port]);
  });

  it('passes over a port that another program has', async () => {
    const looked: number[] = [];
    const port = await pickPort(async (candidate) => looked.push(candidate) > 3);
    expect(looked).toHaveLength(4);
    expect(port).toBe(looked[3]);
    releasePorts([port]);
  });

  it('gives up with advice where nothing is free', async () => {
    await expect(pickPort(async () => false)).rejects.toMatchObject({ code: 'no_free_port' });
  });

  it('takes the port that was asked for, and says so when another program has it', async () => {
    const port = await pickPort();
    releasePorts([port]);
    await expect(wantedPort('Redis', port)).resolves.toBe(port);
    releasePorts([port]);
    await listen(port);
    await expect(isPortFree(port)).resolves.toBe(false);
    await expect(wantedPort('Redis', port)).rejects.toThrow(
      `Redis was asked to listen on 127.0.0.1:${port}, but another program does`,
    );
  });
});
