// The hosts of the job that this process is a rank of. Rank 0 tells them what to run; the first rank of each host runs it
// beside the job, as a process of its own.
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

import type { Fleet, FleetHost, Outcome } from './fleet.js';
import type { HostSeen } from '../../doctor/hosts/compare.js';
import { lookOverJob } from '../../doctor/hosts/over-job.js';
import { beatMs, silenceMs } from '../../doctor/hosts/remote.js';
import { startOwn, type Ended, type Task } from '../../doctor/hosts/own-command.js';
import { allGatherObject, broadcastObject } from '../../communicator/composed/objects.js';
import { Communicator } from '../../communicator/communicator.js';
import { launcherVariables } from '../../launch/job.js';
import { meetingVariables } from '../../launch/torchrun.js';
import { reachableAddresses, readNetwork } from '../../network.js';

type Env = NodeJS.ProcessEnv;

/** Of which each rank says something at least every `beatMs`: one that is lost is noticed. */
const soon = { timeoutMs: silenceMs } as const;

const told: ReadonlySet<string> = new Set([...launcherVariables, ...meetingVariables]);
const others = /^(?:OMPI_|PMIX?_|MPI_LOCAL|HYDRA_|SLURM_|TORCHELASTIC_)/;

/** What a command is to know that is no rank of the job. */
function withoutJob(env: Env): Env {
  return Object.fromEntries(
    Object.entries(env).filter(([name]) => !told.has(name) && !others.test(name)),
  );
}

interface Command {
  /** By host; null ends the ranks. */
  readonly tasks: Readonly<Record<string, Task>> | null;
}

interface Introduction {
  readonly host: string;
  readonly address: string;
}

/** One round: what each rank's host was told to run, and how that ended. */
async function round(
  world: Communicator,
  { tasks }: Command,
  own: string | undefined,
  env: Env,
): Promise<readonly (Ended | null)[]> {
  const task = own === undefined ? undefined : tasks?.[own];
  const running = task === undefined ? undefined : startOwn(task, withoutJob(env));
  const ending = running?.ended ?? Promise.resolve(null);
  const state = { isOver: false };
  void ending.then(() => (state.isOver = true));
  try {
    do await Promise.race([ending, sleep(beatMs)]);
    while ((await allGatherObject(world, state.isOver, soon)).includes(false));
  } catch (error) {
    if (!state.isOver) running?.stop();
    throw error;
  }
  return allGatherObject(world, await ending, soon);
}

/** What rank 0 has of the job's hosts. */
class JobFleet implements Fleet {
  readonly unseen = [];

  constructor(
    private readonly world: Communicator,
    private readonly seen: readonly HostSeen[],
    /** Of each host, its first rank. */
    private readonly leaders: ReadonlyMap<string, number>,
    private readonly addresses: ReadonlyMap<string, string>,
    private readonly env: Env,
  ) {}

  get hosts(): readonly FleetHost[] {
    return [...this.leaders.keys()].map((host) => ({
      host,
      name: host,
      address: this.addresses.get(host) ?? host,
    }));
  }

  /** A job has what it was started with. */
  enter(): Promise<void> {
    return Promise.resolve();
  }

  /** As they were in the beginning: a job ends with the first host that it loses. */
  look(): Promise<readonly HostSeen[]> {
    return Promise.resolve(this.seen);
  }

  async run(tasks: ReadonlyMap<string, Task>): Promise<ReadonlyMap<string, Outcome>> {
    const command: Command = { tasks: Object.fromEntries(tasks) };
    await broadcastObject(this.world, command, soon);
    const [own] = this.leaders.keys();
    const all = await round(this.world, command, own, this.env);
    return new Map(
      [...this.leaders].flatMap(([host, rank]) => {
        const ended = all[rank];
        return ended === null || ended === undefined ? [] : [[host, ended] as const];
      }),
    );
  }

  async end(): Promise<void> {
    const over: Command = { tasks: null };
    await broadcastObject(this.world, over, soon);
  }
}

/**
 * Every rank of the job calls it.
 *
 * @param lead what rank 0 does with the hosts; the others serve it meanwhile
 * @returns what that came to; undefined on the other ranks
 */
export async function withJobFleet<T>(
  env: Env,
  lead: (fleet: Fleet, hosts: readonly string[]) => Promise<T>,
): Promise<T | undefined> {
  const { seen } = await lookOverJob(env);
  const world = await Communicator.world();
  try {
    const [address = ''] = reachableAddresses(readNetwork(env));
    const host = hostname();
    const mine: Introduction = { host, address };
    const all = (await allGatherObject(world, mine)) as readonly Introduction[];
    const leaders = new Map<string, number>();
    all.forEach((one, rank) => {
      if (!leaders.has(one.host)) leaders.set(one.host, rank);
    });
    const leads = leaders.get(host) === world.rank;
    if (world.rank === 0) {
      const addresses = new Map(
        [...leaders].map(([name, rank]) => [name, all[rank]?.address ?? '']),
      );
      const fleet = new JobFleet(world, seen, leaders, addresses, env);
      const result = await lead(fleet, [...leaders.keys()]).catch(async (error: unknown) => {
        // Where they are lost themselves, that is what the error says.
        await fleet.end().catch(() => undefined);
        throw error;
      });
      await fleet.end();
      return result;
    }
    for (;;) {
      const none: Command = { tasks: null };
      const command = await broadcastObject(world, none, soon);
      if (command.tasks === null) return undefined;
      await round(world, command, leads ? host : undefined, env);
    }
  } finally {
    await world.close();
  }
}
