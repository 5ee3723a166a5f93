// Freezes every schema version that has no golden file yet: its hash, and the bytes of one example. Files that exist stay as they are.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const { loadSchemas } = createRequire(import.meta.url)('../dist/libs/contracts/src/schemas.js');
const folder = 'libs/contracts/golden';
mkdirSync(folder, { recursive: true });

/** A value for every field that is easy to recognise in a hex dump; deterministic. */
function example(type, name) {
  switch (type.typeName) {
    case 'null':
      return null;
    case 'boolean':
      return true;
    case 'int':
      return 7 + name.length;
    case 'long':
    case 'logical:timestamp-millis':
      return 1_800_000_000_000 + name.length;
    case 'string':
      return `${name}-example`;
    case 'bytes':
      return Buffer.from(name);
    case 'fixed':
      return Buffer.alloc(type.size, name.length);
    case 'enum':
      return type.symbols[type.symbols.length - 1];
    case 'array':
      return [example(type.itemsType, name), example(type.itemsType, name)];
    case 'map':
      return { [name]: example(type.valuesType, name) };
    case 'record':
      return Object.fromEntries(type.fields.map((field) => [field.name, example(field.type, field.name)]));
    case 'union:unwrapped':
      return example(type.types.find((branch) => branch.typeName !== 'null'), name);
    default:
      throw new Error(`no example for ${type.typeName} of ${name}`);
  }
}
const plain = (value) =>
  JSON.parse(JSON.stringify(value, (_key, inner) => (inner && inner.type === 'Buffer' ? { hex: Buffer.from(inner.data).toString('hex') } : inner)));

for (const { name, version, file, type, header } of loadSchemas()) {
  const target = `${folder}/${name}.v${version}.json`;
  if (existsSync(target)) continue;
  const event = example(type, name);
  const golden = {
    schemaSha256: createHash('sha256').update(readFileSync(`libs/contracts/schemas/${file}`)).digest('hex'),
    hex: Buffer.concat([header, type.toBuffer(event)]).toString('hex'),
    event: plain(event),
  };
  writeFileSync(target, JSON.stringify(golden, null, 2) + '\n');
  console.log(`froze ${target}`);
}
