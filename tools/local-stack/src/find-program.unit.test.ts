import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findProgram, requireJava, requireMaven } from './find-program';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'punctual-path-'));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

function install(name: string, mode: number): string {
  const file = join(folder, name);
  writeFileSync(file, '#!/bin/sh\n');
  chmodSync(file, mode);
  return file;
}

describe('finding programs', () => {
  it('finds what is executable in a folder of PATH', () => {
    const file = install('mvn', 0o755);
    expect(findProgram('mvn', `/nowhere:${folder}`)).toBe(file);
  });

  it('passes over files that cannot be run', () => {
    install('mvn', 0o644);
    expect(findProgram('mvn', folder)).toBeUndefined();
  });

  it('names a missing program, the Debian command that installs it, and the variable that makes it unnecessary', () => {
    const environment = { PATH: folder };
    expect(() => requireJava(environment)).toThrow(
      /"java" was not found.*sudo apt-get install default-jre-headless.*KAFKA_BROKERS/s,
    );
    expect(() => requireMaven('Kafka is fetched with Maven once', 'KAFKA_BROKERS', environment)).toThrow(
      /"mvn" was not found.*sudo apt-get install maven.*KAFKA_BROKERS/s,
    );
  });

  it('falls back to PATH when JAVA_HOME names no Java', () => {
    const java = install('java', 0o755);
    expect(requireJava({ PATH: folder, JAVA_HOME: '/nowhere' })).toBe(java);
  });
});
