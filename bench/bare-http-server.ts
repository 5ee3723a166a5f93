import { createServer } from 'node:http';

/** The least that a server can do with a POST: read it and answer 200. What the webhook endpoint is compared with. */
const server = createServer((request, response) => {
  request.on('data', () => undefined).on('end', () => response.writeHead(200).end());
});
server.listen(0, '127.0.0.1', () => process.stdout.write(`${(server.address() as { port: number }).port}\n`));
