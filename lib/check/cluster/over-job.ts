// The hosts of the job that this process is a rank of. Rank 0 chooses the commands; the first rank of each host runs
// them beside the job, as separate processes.
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

/** Each rank sends something at least every `beatMs`, so that a lost one is noticed. */
const soon = { timeoutMs: silenceMs } as const;

const jobVariables: ReadonlySet<string> = new Set([...launcherVariables, ...meetingVariables]);
const others = /^(?:OMPI_|PMIX?_|MPI_LOCAL|HYDRA_|SLURM_|TORCHELASTIC_)/;

/** The environment for a command that is not a rank of the job. */
function withoutJob(env: Env): Env {
  return Object.fromEntries(
    Object.entries(env).filter(([name]) => !jobVariables.has(name) && !others.test(name)),
  );
}

interface Command {
  /** By host; null ends the ranks. */
  readonly tasks: Readonly<Record<string, Task>> | null;
}

/** One round: the command of each rank's host, and how it ended. */
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

/** Rank 0's view of the job's hosts. */
class JobFleet implements Fleet {
  readonly unseen = [];

  constructor(
    private readonly world: Communicator,
    private readonly seen: readonly HostSeen[],
    readonly hosts: readonly Leader[],
    private readonly env: Env,
  ) {}

  /** A job keeps its initial hosts. */
  enter(): Promise<void> {
    return Promise.resolve();
  }

  /** As found at the start: a job ends with the first host that it loses. */
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
 * Called by every rank of the job.
 *
 * @param lead rank 0's work with the hosts, which the others serve
 * @returns its result; undefined on the other ranks
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
        // If they are lost too, the first error already says so.
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
