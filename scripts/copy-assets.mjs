// tsc leaves everything but TypeScript behind: statements (.sql), scripts (.lua) and schemas (.avsc, .json) follow here.
import { cpSync, mkdirSync, readdirSync } from 'node:fs';
import { dirname, extname, join } from 'node:path';

const KINDS = new Set(['.sql', '.lua', '.avsc', '.json', '.csv', '.html']);
const SKIP = new Set(['node_modules', 'dist', '.git', '.punctual', 'provider-samples']);

function walk(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (SKIP.has(entry.name)) continue;
    const path = join(folder, entry.name);
    if (entry.isDirectory()) walk(path);
    else if (KINDS.has(extname(entry.name))) {
      const target = join('dist', path);
      mkdirSync(dirname(target), { recursive: true });
      cpSync(path, target);
    }
  }
}
for (const root of ['libs', 'services', 'tools', 'bench']) walk(root);
