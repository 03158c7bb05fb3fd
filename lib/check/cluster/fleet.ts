// The hosts of a cluster, each of which runs commands of this package when it is told to.
import { randomBytes } from 'node:crypto';

import type { HostSeen, HostUnseen } from '../../doctor/hosts/compare.js';
import type { Ended, Task } from '../../doctor/hosts/own-command.js';
import { ShellHosts, type Met } from '../../doctor/hosts/over-shell.js';
import { silenceMs } from '../../doctor/hosts/remote.js';
import { jobVariable } from '../../launch/job.js';
import { meetingPoint } from '../../launch/torchrun.js';
import { portsVariable } from '../../network.js';

/** How a command ended on a host, or why nothing more is heard of it. */
export type Outcome = Ended | { readonly lost: string };

export interface FleetHost {
  /** As it was asked for. */
  readonly host: string;
  /** What it calls itself. */
  readonly name: string;
  /** Where ranks meet, if it has the first. */
  readonly address: string;
}

export interface Fleet {
  /** Before each look at all of them: those that do not answer, or no more, are tried again beside it. */
  enter(): Promise<void>;
  /** Those that answer, and have answered until now. */
  readonly hosts: readonly FleetHost[];
  readonly unseen: readonly HostUnseen[];
  /** What they are, and whether they reach one another, as of now. */
  look(): Promise<readonly HostSeen[]>;
  /**
   * One command a host, all at once.
   *
   * @param together whether they need each other: where a host is lost, the others are ended
   */
  run(tasks: ReadonlyMap<string, Task>, together: boolean): Promise<ReadonlyMap<string, Outcome>>;
}

/** The same command as ranks of a job, one a host, that meet over TCP. */
export function rankTasks(
  hosts: readonly FleetHost[],
  args: readonly string[],
  patienceMs: number,
  env: NodeJS.ProcessEnv,
): Map<string, Task> {
  const jobId = randomBytes(16).toString('hex');
  const addresses = hosts.map(({ address }) => address);
  // Not where the ranks of a job around it meet: there the first of these listens already.
  const outerEnv = { [portsVariable]: env[portsVariable] };
  const meeting = meetingPoint({ hosts: addresses, control: '', env: {}, outerEnv }, jobId);
  // As for any job: which network NCCL takes is known to who asks.
  const nccl = Object.fromEntries(Object.entries(env).filter(([name]) => name.startsWith('NCCL_')));
  return new Map(
    hosts.map(({ host }, rank) => [
      host,
      {
        args,
        patienceMs,
        env: {
          ...nccl,
          ...meeting,
          [jobVariable]: jobId,
          GRADLINK_RANK: String(rank),
          GRADLINK_SIZE: String(hosts.length),
          GRADLINK_TRANSPORT: 'tcp',
          LOCAL_RANK: '0',
          LOCAL_WORLD_SIZE: '1',
        },
      },
    ]),
  );
}

/** Over ssh, or what stands for it. */
export class ShellFleet extends ShellHosts implements Fleet {
  /** @param stop lets all hosts go, which ends what runs there */
  constructor(
    asked: readonly string[],
    remoteShell: string | undefined,
    env: NodeJS.ProcessEnv,
    private readonly stop?: AbortSignal,
  ) {
    super(asked, remoteShell, env);
    stop?.addEventListener('abort', () => void this.end());
  }

  get hosts(): readonly FleetHost[] {
    return this.met.map(({ host, name, door: { addresses } }) => ({
      host,
      name,
      address: addresses[0] ?? host,
    }));
  }

  /** @throws the reason of `stop` where that ended what hosts did together: what they have of it is no figure */
  async run(
    tasks: ReadonlyMap<string, Task>,
    together: boolean,
  ): Promise<ReadonlyMap<string, Outcome>> {
    const running = this.met.filter(({ host }) => tasks.has(host));
    const outcomes = new Map<string, Outcome>();
    const one = async ({ host, remote }: Met): Promise<void> => {
      remote.say({ run: tasks.get(host) });
      try {
        const { ended } = await remote.hear(silenceMs);
        outcomes.set(host, ended as Ended);
      } catch (error) {
        const reason = (error as Error).message;
        outcomes.set(host, { lost: reason });
        this.lose({ host, reason });
        // Ranks would wait for it until their time is up.
        const others = running.filter((other) => together && !outcomes.has(other.host));
        for (const other of others) other.remote.say({ stop: true });
      }
    };
    await Promise.all(running.map(one));
    if (together) this.stop?.throwIfAborted();
    return outcomes;
  }
}
