// Looks at the hosts of a hostfile, through ssh or what stands for it.
import type { HostSeen, HostUnseen } from './compare.js';
import type { HostFacts } from './facts.js';
import { othersOf, type Door, type Reached } from './reach.js';
import { Remote, silenceMs } from './remote.js';

/** A login, and libraries that take their time. */
const factsPatienceMs = 60_000;

/** What one host said of itself; the rest is asked once all have. */
export interface Met {
  readonly host: string;
  /** What it calls itself. */
  readonly name: string;
  readonly remote: Remote;
  readonly facts: HostFacts;
  readonly door: Door;
}

async function meet(host: string, remote: Remote): Promise<Met | HostUnseen> {
  try {
    const { facts, port, token, address: chosen, name } = await remote.hear(factsPatienceMs);
    // What the hostfile calls it is what the others would call it, too, unless it listens on a network of its choice.
    const called = host.replace(/^.*@/, '').replace(/^\[(.*)\]$/, '$1');
    const address = typeof chosen === 'string' ? chosen : called;
    return {
      host,
      name: String(name),
      remote,
      facts: facts as HostFacts,
      door: { host, addresses: [address], port: Number(port), token: String(token) },
    };
  } catch (error) {
    return { host, reason: (error as Error).message };
  }
}

async function reach(
  { host, remote, facts }: Met,
  others: readonly Door[],
): Promise<HostSeen | HostUnseen> {
  try {
    remote.say({ call: others });
    const { reached } = await remote.hear(silenceMs);
    return { host, facts, reached: reached as Reached[] };
  } catch (error) {
    return { host, reason: (error as Error).message };
  }
}

/** Hosts that answer, until they are let go, and those that do not. */
export interface Meeting {
  readonly met: readonly Met[];
  readonly unseen: readonly HostUnseen[];
  readonly end: () => Promise<void>;
}

/** Never fails: a host that does not answer is one with a reason. */
export async function meetOverShell(
  hosts: readonly string[],
  remoteShell: string | undefined,
  env: NodeJS.ProcessEnv,
): Promise<Meeting> {
  const remotes = hosts.map((host) => Remote.start(host, remoteShell, env));
  const all = await Promise.all(hosts.map((host, index) => meet(host, remotes[index]!)));
  return {
    met: all.filter((one): one is Met => 'remote' in one),
    unseen: all.filter((one): one is HostUnseen => !('remote' in one)),
    end: async () => {
      await Promise.all(remotes.map((remote) => remote.end()));
    },
  };
}

/** Each calls all others. Never fails: a host that is lost meanwhile is one with a reason. */
export async function reachAll(
  met: readonly Met[],
): Promise<{ readonly seen: readonly HostSeen[]; readonly unseen: readonly HostUnseen[] }> {
  const doors = met.map(({ door }) => door);
  const all = await Promise.all(met.map((one) => reach(one, othersOf(doors, one.host))));
  return {
    seen: all.filter((one): one is HostSeen => 'reached' in one),
    unseen: all.filter((one): one is HostUnseen => 'reason' in one),
  };
}

/** Never fails: a host that cannot be looked at is one with a reason. */
export async function lookOverShell(
  hosts: readonly string[],
  remoteShell: string | undefined,
  env: NodeJS.ProcessEnv,
): Promise<{ readonly seen: readonly HostSeen[]; readonly unseen: readonly HostUnseen[] }> {
  const meeting = await meetOverShell(hosts, remoteShell, env);
  try {
    const { seen, unseen } = await reachAll(meeting.met);
    return { seen, unseen: [...meeting.unseen, ...unseen] };
  } finally {
    await meeting.end();
  }
}
