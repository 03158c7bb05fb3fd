// The hosts of a cluster, each of which runs commands of this package on request.
import { randomBytes } from 'node:crypto';

import type { HostSeen, HostUnseen } from '../../doctor/hosts/compare.js';
import type { Ended, Task } from '../../doctor/hosts/own-command.js';
import { ShellHosts, type Met } from '../../doctor/hosts/over-shell.js';
import { silenceMs } from '../../doctor/hosts/remote.js';
import { jobVariable } from '../../launch/job.js';
import { meetingPoint } from '../../launch/torchrun.js';
import { portsVariable } from '../../network.js';

/** How a command ended on a host, or why contact was lost. */
export type Outcome = Ended | { readonly lost: string };

export interface FleetHost {
  /** The name in the request. */
  readonly host: string;
  /** Its own host name. */
  readonly name: string;
  /** Where ranks rendezvous if this host has rank 0. */
  readonly address: string;
}

export interface Fleet {
  /** Called before each check of all hosts; retries those that do not answer, in the background. */
  enter(): Promise<void>;
  /** Those that still answer. */
  readonly hosts: readonly FleetHost[];
  readonly unseen: readonly HostUnseen[];
  /** Their facts and reachability, as of now. */
  look(): Promise<readonly HostSeen[]>;
  /**
   * Runs one command per host, in parallel.
   *
   * @param together whether they need each other: if a host is lost, the others are ended
   */
  run(tasks: ReadonlyMap<string, Task>, together: boolean): Promise<ReadonlyMap<string, Outcome>>;
}

/** The same command as ranks of a job over TCP, one per host. */
export function rankTasks(
  hosts: readonly FleetHost[],
  args: readonly string[],
  patienceMs: number,
  env: NodeJS.ProcessEnv,
): Map<string, Task> {
  const jobId = randomBytes(16).toString('hex');
  const addresses = hosts.map(({ address }) => address);
  // Not the port of the surrounding job, where its rank 0 already listens.
  const outerEnv = { [portsVariable]: env[portsVariable] };
  const meeting = meetingPoint({ hosts: addresses, control: '', env: {}, outerEnv }, jobId);
  // As in any job, the caller's NCCL settings apply.
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

export class ShellFleet extends ShellHosts implements Fleet {
  /** @param stop disconnects all hosts, which ends their commands */
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

  /** @throws the reason of `stop` if it ended a joint command: its figures are then invalid */
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
        // The other ranks would wait for it until their timeout.
        const others = running.filter((other) => together && !outcomes.has(other.host));
        for (const other of others) other.remote.say({ stop: true });
      }
    };
    await Promise.all(running.map(one));
    if (together) this.stop?.throwIfAborted();
    return outcomes;
  }
}
