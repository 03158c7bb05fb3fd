// Variables for workers only and for servers only. mpirun and srun give all processes the same, so each keeper picks
// its role's.
import type { Role } from './job.js';

type Variables = Readonly<Record<string, string>>;

export const roleEnvVariable = 'GRADLINK_ROLE_ENV';

/** The variables for every keeper; empty if no role has its own. */
export function keeperVariables(roleEnv: Readonly<Record<Role, Variables>> | undefined): Variables {
  const any = Object.values(roleEnv ?? {}).some((of) => Object.keys(of).length > 0);
  return any ? { [roleEnvVariable]: JSON.stringify(roleEnv) } : {};
}

/** The variables of one role, from the keeper's environment. */
export function variablesOfRole(
  role: Role,
  env: Readonly<Record<string, string | undefined>>,
): Variables {
  const text = env[roleEnvVariable] ?? '';
  if (text === '') return {};
  const roles = JSON.parse(text) as Partial<Record<Role, Variables>>;
  return roles[role] ?? {};
}
