import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import type { OpenAPIObject } from '@nestjs/swagger';

const ASSETS: Record<string, string> = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'favicon-32x32.png': 'image/png',
};

// It comes with @nestjs/swagger.
const FOLDER = dirname(require.resolve('swagger-ui-dist/package.json'));

const PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <title>Punctual</title>
    <link rel="icon" href="docs/favicon-32x32.png" />
    <link rel="stylesheet" href="docs/swagger-ui.css" />
  </head>
  <body>
    <div id="docs"></div>
    <script src="docs/swagger-ui-bundle.js"></script>
    <script src="docs/start.js"></script>
  </body>
</html>
`;

const START = `SwaggerUIBundle({ url: 'docs-json', dom_id: '#docs', deepLinking: true, tryItOutEnabled: true });\n`;

/**
 * /docs and /docs-json. Three files of Swagger UI are served by hand: @fastify/static depends on a module that only newer
 * loaders can require, and the test runner's is none of them.
 */
export function addDocsPages(server: FastifyInstance, document: () => OpenAPIObject): void {
  let json: string | undefined;
  server.get('/docs-json', (_request, reply) =>
    reply.type('application/json; charset=utf-8').send((json ??= JSON.stringify(document()))),
  );
  server.get('/docs', (_request, reply) => reply.type('text/html; charset=utf-8').send(PAGE));
  server.get('/docs/start.js', (_request, reply) => reply.type('text/javascript; charset=utf-8').send(START));
  for (const [file, type] of Object.entries(ASSETS)) {
    server.get(`/docs/${file}`, async (_request, reply) => reply.type(type).send(await readFile(join(FOLDER, file))));
  }
}
