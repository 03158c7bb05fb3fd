// Findings about several hosts: differences, reachability and clock offsets.
import type { Finding } from '../types.js';
import { factNames, type HostFacts } from './facts.js';
import type { Reached } from './reach.js';

/** A host with its facts, and the results of its calls to the others. */
export interface HostSeen {
  readonly host: string;
  readonly facts: HostFacts;
  readonly reached: readonly Reached[];
}

/** A host that could not be checked. */
export interface HostUnseen {
  readonly host: string;
  readonly reason: string;
}

const titles: Readonly<Record<keyof HostFacts, string>> = {
  gradlink: 'gradlink',
  node: 'Node',
  driver: 'driver',
  nccl: 'NCCL',
  // The text begins with the library's name.
  openmpi: '',
  mpich: '',
  gpus: 'GPUs',
  processor: 'processor',
};

const advices: Readonly<Record<keyof HostFacts, string>> = {
  gradlink: 'ranks of different versions may not work together: install one version',
  node: 'install one version of Node everywhere',
  driver: 'install one driver everywhere: NCCL and kernels must suit the oldest',
  nccl: 'ranks of one communicator need the same NCCL: install one everywhere',
  openmpi:
    'ranks of one job need the same Open MPI: install one everywhere, or choose MPICH with GRADLINK_MPI',
  mpich:
    'ranks of one job need the same MPICH: install one everywhere, or choose Open MPI with GRADLINK_MPI',
  gpus: 'give each host as many ranks as it has GPUs (slots of the hostfile); all wait for the slowest',
  processor: 'all ranks wait for the slowest host',
};

const mostNames = 8;
/** Beyond this, logs of several hosts are out of order, and certificates may not be valid yet. */
const mostAheadMs = 100;

function names(hosts: readonly string[]): string {
  const rest = hosts.length - mostNames;
  return [...hosts.slice(0, mostNames), ...(rest > 0 ? [`${rest} more`] : [])].join(', ');
}

/** `535 on a, b; 550 on c; none on d`, the most common first. */
function difference(seen: readonly HostSeen[], fact: keyof HostFacts): string | undefined {
  const having = new Map<string, string[]>();
  for (const { host, facts } of seen) {
    const value = facts[fact] ?? 'none';
    having.set(value, [...(having.get(value) ?? []), host]);
  }
  if (having.size < 2) return undefined;
  return [...having]
    .sort(([, one], [, other]) => other.length - one.length)
    .map(([value, hosts]) => `${value} on ${names(hosts)}`)
    .join('; ');
}

function factFindings(seen: readonly HostSeen[]): Finding[] {
  const [first] = seen;
  if (first === undefined || seen.length < 2) return [];
  const alike: string[] = [];
  const different = factNames.flatMap((fact): Finding[] => {
    const text = difference(seen, fact);
    if (text !== undefined) {
      return [{ name: `hosts:${fact}`, status: 'degraded', text, advice: advices[fact] }];
    }
    const value = first.facts[fact];
    if (value !== null) alike.push(`${titles[fact]} ${value}`.trimStart());
    return [];
  });
  const text = alike.length === 0 ? 'nothing' : alike.join(', ');
  return [{ name: 'hosts:alike', status: 'ok', text, advice: null }, ...different];
}

function reachFinding(seen: readonly HostSeen[]): Finding {
  const name = 'hosts:reach';
  const broken = seen.flatMap(({ host, reached }) =>
    reached.flatMap(({ to, error }) => (error === undefined ? [] : [{ host, to, error }])),
  );
  if (broken.length === 0) {
    const ways = seen.flatMap(({ host, reached }) =>
      reached.map(({ to, roundTripMs = 0 }) => ({ way: `${host} to ${to}`, roundTripMs })),
    );
    const slowest = ways.reduce((one, other) =>
      other.roundTripMs > one.roundTripMs ? other : one,
    );
    return {
      name,
      status: 'ok',
      text: `all reach each other by TCP; slowest ${slowest.way}, ${slowest.roundTripMs.toFixed(2)} ms there and back`,
      advice: null,
    };
  }
  // An unreachable host is one problem, not one per host.
  const lost = seen
    .map(({ host }) => host)
    .filter(
      (host) =>
        seen.length > 2 && broken.filter(({ to }) => to === host).length === seen.length - 1,
    );
  const texts = [
    ...lost.map((host) => {
      const { error } = broken.find(({ to }) => to === host)!;
      return `no host reaches ${host} (${error})`;
    }),
    ...broken
      .filter(({ to }) => !lost.includes(to))
      .map(({ host, to, error }) => `${host} cannot reach ${to} (${error})`),
  ];
  const rest = texts.length - mostNames;
  return {
    name,
    status: 'degraded',
    text: [...texts.slice(0, mostNames), ...(rest > 0 ? [`${rest} more`] : [])].join('; '),
    advice:
      'ranks open TCP connections on any port: names, routes and firewalls between the hosts must let them',
  };
}

function clockFinding(seen: readonly HostSeen[]): Finding | undefined {
  const [first] = seen;
  if (first === undefined) return undefined;
  const clocks = first.reached.flatMap(({ to, aheadMs, roundTripMs = 0 }) =>
    aheadMs === undefined ? [] : [{ to, aheadMs, doubt: roundTripMs / 2 }],
  );
  if (clocks.length === 0) return undefined;
  const name = 'hosts:clock';
  const off = clocks.filter(({ aheadMs, doubt }) => Math.abs(aheadMs) - doubt > mostAheadMs);
  if (off.length === 0) {
    const text = `all within ${mostAheadMs} ms of that of ${first.host}`;
    return { name, status: 'ok', text, advice: null };
  }
  const texts = off.map(({ to, aheadMs }) => {
    const size = Math.abs(aheadMs);
    const by = size < 1000 ? `${size.toFixed(0)} ms` : `${(size / 1000).toFixed(1)} s`;
    return `${to} is ${by} ${aheadMs > 0 ? 'ahead' : 'behind'}`;
  });
  return {
    name,
    status: 'degraded',
    text: `compared with ${first.host}: ${names(texts)}`,
    advice: 'logs and timelines of the hosts do not line up: let NTP set the clocks (timedatectl)',
  };
}

/** Findings about several hosts, in display order. */
export function hostFindings(seen: readonly HostSeen[], unseen: readonly HostUnseen[]): Finding[] {
  const all = seen.length + unseen.length;
  const clock = clockFinding(seen);
  return [
    {
      name: 'hosts',
      status: unseen.length === 0 ? 'ok' : 'missing',
      text:
        unseen.length === 0
          ? `${all} host${all === 1 ? '' : 's'}: ${names(seen.map(({ host }) => host))}`
          : `${seen.length} of ${all} could be looked at; ${names(unseen.map(({ host, reason }) => `${host}: ${reason}`))}`,
      advice:
        unseen.length === 0
          ? null
          : 'each needs a login without a password, and Node and this package under the same paths as here',
    },
    ...factFindings(seen),
    ...(seen.length > 1 ? [reachFinding(seen)] : []),
    ...(clock === undefined ? [] : [clock]),
  ];
}
