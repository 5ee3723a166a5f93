// tsc leaves everything but TypeScript behind: statements (.sql), scripts (.lua) and schemas (.avsc, .json) follow here.
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { dirname, extname, join } from 'node:path';

const KINDS = new Set(['.sql', '.lua', '.avsc', '.json', '.csv', '.html']);
const SKIP = new Set(['node_modules', 'dist', '.git', '.punctual']);

function* filesBelow(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (SKIP.has(entry.name)) continue;
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* filesBelow(path);
    else yield path;
  }
}

for (const root of ['libs', 'services', 'tools', 'bench']) {
  const target = join('dist', root);
  // What was deleted or renamed must not live on: a migration that is gone would still be applied.
  if (existsSync(target)) for (const path of filesBelow(target)) if (KINDS.has(extname(path))) rmSync(path);
  for (const path of filesBelow(root)) {
    if (!KINDS.has(extname(path))) continue;
    mkdirSync(dirname(join('dist', path)), { recursive: true });
    cpSync(path, join('dist', path));
  }
}
