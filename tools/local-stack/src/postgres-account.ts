import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { LocalStackError } from './local-stack-error';
import { runAs, type Account } from './run-as';

/**
 * PostgreSQL refuses to run as root, so root lends it an account that the system has: postgres, else nobody. No account is
 * created. In a checkout that this account cannot enter (root's home, say) the server keeps the right to open files.
 */
export function accountForPostgres(folder: string, program: string): Account | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const account = readAccount('postgres') ?? readAccount('nobody');
  if (account === undefined) {
    throw new LocalStackError(
      'program_missing',
      'PostgreSQL does not run as root, and the system has neither a user "postgres" nor "nobody" to run it. ' +
        'Start as an ordinary user, or add one with "useradd --system postgres", or set DATABASE_URL to a server that already runs.',
    );
  }
  return canReach(account, folder, program) ? account : { ...account, needsFileAccess: true };
}

function canReach(account: Account, folder: string, program: string): boolean {
  const [command, args, identity] = runAs(account, 'sh', ['-c', 'test -x "$1" && exec "$2" --version', 'sh', folder, program]);
  return spawnSync(command, args, { timeout: 10_000, ...identity }).status === 0;
}

function readAccount(name: string): Account | undefined {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((entry) => entry.startsWith(`${name}:`));
  const [, , uid, gid] = line?.split(':') ?? [];
  return uid === undefined || gid === undefined ? undefined : { uid: Number(uid), gid: Number(gid) };
}
