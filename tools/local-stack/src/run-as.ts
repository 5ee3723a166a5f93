import { spawnSync } from 'node:child_process';
import { findProgram } from './find-program';

export interface Account {
  uid: number;
  gid: number;
  /** Set where the account cannot reach the folders by itself: the program then keeps root's right to open files, and no other. */
  needsFileAccess?: boolean;
}

export type OrphanSignal = 'KILL' | 'INT' | 'TERM';

/**
 * What to spawn so that the program runs under the account and, if asked, is sent a signal by the kernel when our process dies
 * (even by kill -9). Both need util-linux' setpriv; elsewhere spawn's own uid and gid serve, and the next start cleans up.
 */
export function runAs(
  account: Account | undefined,
  program: string,
  args: readonly string[],
  orphanSignal?: OrphanSignal,
): [string, string[], { uid?: number; gid?: number }] {
  const setpriv = setprivProgram();
  if (setpriv === undefined) return [program, [...args], account === undefined ? {} : { uid: account.uid, gid: account.gid }];
  const options = [...deathSignalArguments(orphanSignal), ...accountArguments(account)];
  return options.length === 0 ? [program, [...args], {}] : [setpriv, [...options, '--', program, ...args], {}];
}

function deathSignalArguments(orphanSignal: OrphanSignal | undefined): string[] {
  return orphanSignal === undefined ? [] : ['--pdeathsig', orphanSignal];
}

function accountArguments(account: Account | undefined): string[] {
  if (account === undefined) return [];
  // Without the securebit access(2) answers for the bare account, and initdb asks it whether the postgres program is there.
  const keepAccess = ['--inh-caps', '+dac_override', '--ambient-caps', '+dac_override', '--securebits', '+no_setuid_fixup'];
  const access = account.needsFileAccess === true ? keepAccess : [];
  return ['--reuid', String(account.uid), '--regid', String(account.gid), '--clear-groups', ...access];
}

let found: { program: string | undefined } | undefined;

/** Releases of setpriv before 2.33 do not know the death signal. */
function setprivProgram(): string | undefined {
  if (found === undefined) {
    const program = process.platform === 'linux' ? findProgram('setpriv') : undefined;
    const help = program === undefined ? '' : String(spawnSync(program, ['--help']).stdout);
    found = { program: help.includes('--pdeathsig') && help.includes('--ambient-caps') ? program : undefined };
  }
  return found.program;
}
