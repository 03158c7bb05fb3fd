// Variables of the workers alone and of the servers alone, where mpirun or srun gives all processes the same: the keeper of
// each process picks its own.
import type { Role } from './job.js';

type Variables = Readonly<Record<string, string>>;

export const roleEnvVariable = 'GRADLINK_ROLE_ENV';

/** What every keeper is told; nothing where no role has variables of its own. */
export function toldToKeepers(roleEnv: Readonly<Record<Role, Variables>> | undefined): Variables {
  const any = Object.values(roleEnv ?? {}).some((of) => Object.keys(of).length > 0);
  return any ? { [roleEnvVariable]: JSON.stringify(roleEnv) } : {};
}

/** Those of one role, from the keeper's environment. */
export function ofRole(role: Role, env: Readonly<Record<string, string | undefined>>): Variables {
  const text = env[roleEnvVariable] ?? '';
  if (text === '') return {};
  const roles = JSON.parse(text) as Partial<Record<Role, Variables>>;
  return roles[role] ?? {};
}
