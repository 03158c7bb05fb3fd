// Checks the hosts of the job that this process is a rank of, over the job's own communicator.
import { hostname } from 'node:os';

import { allGatherObject } from '../../communicator/composed/objects.js';
import { Communicator } from '../../communicator/communicator.js';
import type { HostSeen } from './compare.js';
import { factsHere, type HostFacts } from './facts.js';
import { slurmNode } from '../../launch/own-host.js';
import { reachableAddresses, readNetwork } from '../../network.js';
import { callAll, listen, othersOf, type Door, type Reached } from './reach.js';

/** The first message of every rank; one rank of each host then sends more. */
interface Introduction {
  readonly host: string;
  readonly facts?: HostFacts;
  readonly door?: Door;
}

/** The first rank of a host. */
export interface Leader {
  /** Slurm's name in its jobs, else its own host name. */
  readonly host: string;
  /** Its own host name. */
  readonly name: string;
  readonly rank: number;
  readonly address: string;
}

/** @returns the hosts in the order of their first ranks, the same on every rank */
export async function lookOverJob(env: NodeJS.ProcessEnv): Promise<{
  readonly seen: readonly HostSeen[];
  readonly leaders: readonly Leader[];
}> {
  const network = readNetwork(env);
  const world = await Communicator.world();
  try {
    const { rank } = world;
    const name = hostname();
    const ranks = await allGatherObject(world, { name, node: slurmNode(env) ?? '' });
    const names = ranks.map((one) => one.name);
    const first = ranks.filter((_, at) => names.indexOf(names[at]!) === at);
    const nodes = new Set(first.map(({ node }) => node)).add('');
    const own = nodes.size > first.length ? slurmNode(env)! : name;
    const speaks = names.indexOf(name) === rank;
    const listener = speaks ? await listen(network) : undefined;
    try {
      const mine: Introduction =
        listener === undefined
          ? { host: own }
          : {
              host: own,
              facts: await factsHere(env),
              door: {
                host: own,
                addresses: reachableAddresses(network),
                port: listener.port,
                token: listener.token,
              },
            };
      const all = (await allGatherObject(world, mine)) as readonly Introduction[];
      const doors = all.flatMap(({ door }) => (door === undefined ? [] : [door]));
      const reached: Reached[] = speaks ? await callAll(othersOf(doors, own), network) : [];
      const calls = (await allGatherObject(world, reached)) as readonly (readonly Reached[])[];
      const seen = all.flatMap(({ host, facts }, index): HostSeen[] =>
        facts === undefined ? [] : [{ host, facts, reached: calls[index] ?? [] }],
      );
      const leaders = all.flatMap(({ host, door }, index): Leader[] =>
        door === undefined
          ? []
          : [{ host, name: names[index]!, rank: index, address: door.addresses[0] ?? host }],
      );
      return { seen, leaders };
    } finally {
      listener?.close();
    }
  } finally {
    await world.close();
  }
}
