import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The repository's folder: the same from the sources and from dist, which has no package.json of its own. */
export function projectRoot(from = __dirname): string {
  let folder = from;
  while (!existsSync(join(folder, 'package.json'))) {
    const parent = dirname(folder);
    if (parent === folder) throw new Error(`no package.json above ${from}: run this from a checkout of the repository`);
    folder = parent;
  }
  return folder;
}
