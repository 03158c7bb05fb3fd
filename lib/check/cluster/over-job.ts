// The hosts of the job that this process is a rank of. Rank 0 tells them what to run; the first rank of each host runs it
// beside the job, as a process of its own.
import { setTimeout as sleep } from 'node:timers/promises';

import type { Fleet, Outcome } from './fleet.js';
import type { HostSeen } from '../../doctor/hosts/compare.js';
import { lookOverJob, type Leader } from '../../doctor/hosts/over-job.js';
import { beatMs, silenceMs } from '../../doctor/hosts/remote.js';
import { startOwn, type Ended, type Task } from '../../doctor/hosts/own-command.js';
import { allGatherObject, broadcastObject } from '../../communicator/composed/objects.js';
import { Communicator } from '../../communicator/communicator.js';
import { launcherVariables } from '../../launch/job.js';
import { meetingVariables } from '../../launch/torchrun.js';

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
    do await Promise.race([ending, sleep(beatMs, undefined, { ref: false })]);
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
    readonly hosts: readonly Leader[],
    private readonly env: Env,
  ) {}

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
    const all = await round(this.world, command, this.hosts[0]?.host, this.env);
    return new Map(
      this.hosts.flatMap(({ host, rank }) => {
        const ended = all[rank] ?? null;
        return ended === null ? [] : [[host, ended] as const];
      }),
    );
  }

  async end(): Promise<void> {
    await broadcastObject<Command>(this.world, { tasks: null }, soon);
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
  const { seen, leaders } = await lookOverJob(env);
  const world = await Communicator.world();
  try {
    if (world.rank === 0) {
      const fleet = new JobFleet(world, seen, leaders, env);
      const result = await lead(
        fleet,
        leaders.map(({ host }) => host),
      ).catch(async (error: unknown) => {
        // Where they are lost themselves, that is what the error says.
        await fleet.end().catch(() => undefined);
        throw error;
      });
      await fleet.end();
      return result;
    }
    for (;;) {
      const command = await broadcastObject<Command>(world, { tasks: null }, soon);
      if (command.tasks === null) return undefined;
      await round(world, command, leaders.find(({ rank }) => rank === world.rank)?.host, env);
    }
  } finally {
    await world.close();
  }
}
