// The job's network interface as settings of the MPIs and of NCCL.
import { isIP } from 'node:net';

import { variablesOf, type JobSpec } from './job.js';
import { interfaceVariable, type Network } from '../network.js';

type Variables = Readonly<Record<string, string>>;

/** For mpirun and its daemons on all hosts: one name or network that fits them all, since they take no alternatives. */
function interfaceVariables(value: string): Variables {
  const [address = ''] = value.split('/', 1);
  if (value.includes(',') || isIP(address) === 6) return {};
  if (isIP(address) === 0) return { OMPI_MCA_oob_tcp_if_include: value, HYDRA_IFACE: value };
  return { OMPI_MCA_oob_tcp_if_include: address === value ? `${value}/32` : value };
}

const unset = (wanted: Variables, given: Readonly<Record<string, string | undefined>>): Variables =>
  Object.fromEntries(Object.entries(wanted).filter(([name]) => given[name] === undefined));

/** Variables for the program that starts the job on its hosts; the user's settings win. */
export function starterNetwork(job: Pick<JobSpec, 'outerEnv' | 'env'>): Variables {
  const given = variablesOf(job);
  const name = given[interfaceVariable] ?? '';
  return name === '' ? {} : unset(interfaceVariables(name), given);
}

/** Variables for a process, from its keeper, which knows the interface chosen on its host. */
export function processNetwork(
  { chosen }: Network,
  env: Readonly<Record<string, string | undefined>>,
): Variables {
  if (chosen === undefined) return {};
  // `=`: NCCL would match name prefixes otherwise.
  const wanted = {
    OMPI_MCA_btl_tcp_if_include: chosen.interface,
    NCCL_SOCKET_IFNAME: `=${chosen.interface}`,
  };
  return unset(wanted, env);
}
