import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { LocalStackError } from './local-stack-error';

const DEBIAN_PACKAGES = { java: 'default-jre-headless', mvn: 'maven' } as const;

export function findProgram(name: string, path = process.env.PATH ?? ''): string | undefined {
  return path
    .split(delimiter)
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, name))
    .find(isExecutable);
}

/** JAVA_HOME wins over PATH, as it does for Maven, so that both run on the same Java. */
export function requireJava(environment: NodeJS.ProcessEnv = process.env): string {
  const fromHome = environment.JAVA_HOME === undefined ? undefined : join(environment.JAVA_HOME, 'bin', 'java');
  if (fromHome !== undefined && isExecutable(fromHome)) return fromHome;
  return findProgram('java', environment.PATH) ?? missing('java', 'Apache Kafka runs on Java 17 or newer', 'KAFKA_BROKERS');
}

export function requireMaven(neededFor: string, replacedBy: string, environment: NodeJS.ProcessEnv = process.env): string {
  return findProgram('mvn', environment.PATH) ?? missing('mvn', neededFor, replacedBy);
}

function missing(program: keyof typeof DEBIAN_PACKAGES, reason: string, replacedBy: string): never {
  throw new LocalStackError(
    'program_missing',
    `The program "${program}" was not found: ${reason}. On Debian or Ubuntu install it with ` +
      `"sudo apt-get install ${DEBIAN_PACKAGES[program]}" and start again, or set ${replacedBy} to a server that already runs.`,
  );
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
