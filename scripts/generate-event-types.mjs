// Writes libs/contracts/src/events.ts from the newest version of every schema: an event's type has one definition, its Avro file.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { format, resolveConfig } from 'prettier';

const folder = 'libs/contracts/schemas';
const target = 'libs/contracts/src/events.ts';

const newest = new Map();
for (const file of readdirSync(folder).sort()) {
  const match = /^(\w+)\.v(\d+)\.avsc$/.exec(file);
  if (!match) continue;
  const [, name, version] = match;
  if (!newest.has(name) || newest.get(name).version < Number(version)) newest.set(name, { file, version: Number(version) });
}

const declared = new Map();
function typeOf(schema) {
  if (Array.isArray(schema)) return schema.map(typeOf).join(' | ');
  if (typeof schema === 'string') {
    if (['int', 'long', 'float', 'double'].includes(schema)) return 'number';
    if (schema === 'bytes') return 'Buffer';
    if (['string', 'boolean', 'null'].includes(schema)) return schema;
    return schema;
  }
  switch (schema.type) {
    case 'record':
      declare(schema);
      return schema.name;
    case 'enum':
      declared.set(schema.name, `export type ${schema.name} = ${schema.symbols.map((s) => `'${s}'`).join(' | ')};`);
      return schema.name;
    case 'fixed':
      declared.set(schema.name, `/** ${schema.size} bytes. */\nexport type ${schema.name} = Buffer;`);
      return schema.name;
    case 'array':
      return `Array<${typeOf(schema.items)}>`;
    case 'map':
      return `Record<string, ${typeOf(schema.values)}>`;
    default:
      return typeOf(schema.type);
  }
}
function declare(record) {
  const members = record.fields.map(
    (field) => `${field.doc ? `  /** ${field.doc}. */\n` : ''}  ${field.name}: ${typeOf(field.type)};`,
  );
  declared.set(
    record.name,
    `${record.doc ? `/** ${record.doc}. */\n` : ''}export interface ${record.name} {\n${members.join('\n')}\n}`,
  );
}

for (const { file } of newest.values()) declare(JSON.parse(readFileSync(`${folder}/${file}`, 'utf8')));
const names = [...newest.keys()];
const text = `// Generated from libs/contracts/schemas by scripts/generate-event-types.mjs; change the schemas, not this file.
// Instants are milliseconds since the epoch.
${[...declared.values()].join('\n\n')}

export interface Events {
${names.map((name) => `  ${name}: ${name};`).join('\n')}
}

export type EventName = keyof Events;

/** An event with its name: a closed union to switch over. */
export type AnyEvent = { [N in EventName]: { name: N; event: Events[N] } }[EventName];
`;
const pretty = await format(text, { ...(await resolveConfig(target)), parser: 'typescript' });
if (process.argv.includes('--check')) {
  if (readFileSync(target, 'utf8') !== pretty) {
    console.error(`${target} is not what the schemas say; run: npm run generate`);
    process.exit(1);
  }
} else writeFileSync(target, pretty);
