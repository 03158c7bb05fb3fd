// The launcher's connections to the keepers of processes that mpirun or srun started. They carry output, exit statuses
// and heartbeats whatever the MPI, and the launcher ends the job on every host over them.
import { createServer, type Server, type Socket } from 'node:net';
import { hostname } from 'node:os';
import { PassThrough } from 'node:stream';

import { maxInt32 } from '../checks.js';
import { GradlinkError } from '../errors.js';
import { parseFrame, type Welcome } from './frames.js';
import { labelOf } from './job.js';
import { freeDescriptors } from './processes.js';
import { Line } from './line.js';
import { manners, type Ending, type Member, type RemoteMembers } from './members.js';
import { Strangers } from './strangers.js';
import { printable } from '../printable.js';
import { listenOn, loopbackAddress, reachableAddresses, type Network } from '../network.js';

export interface ControlOptions {
  /** The job's secret. */
  readonly jobId: string;
  readonly workers: number;
  readonly servers: number;
  readonly graceMs: number;
  /** A host that is silent for this long is lost. */
  readonly silenceMs: number;
  /** The host of each process, if the launcher placed them. */
  readonly hosts?: readonly string[];
  /** The whole job runs on this host, so the launcher listens on loopback only. */
  readonly ownHost?: boolean;
  /** Where to listen if `ownHost` is not set. */
  readonly network?: Network;
}

const failed = 1;
const mostExitCode = 255;
/** Unproven connections accepted beyond one per missing process. */
const mostStrangers = 64;

/** Descriptors that the launcher needs for pipes and files. */
const otherDescriptors = 16;

/** Fails early if descriptors are short: refused keepers would fail with an unreachable launcher. */
function checkDescriptors(connections: number): void {
  const free = freeDescriptors();
  if (free >= connections + otherDescriptors) return;
  const few = `${Math.max(free, 0)} of this process's descriptors are free, and ${connections} processes need a connection each and ${otherDescriptors} more`;
  throw new GradlinkError(
    'ERR_SYSTEM',
    `${few}: raise the limit of open files (ulimit -Hn), or start fewer processes`,
  );
}

type Events = Parameters<RemoteMembers['watch']>[0];

/** A keeper that has proved that it belongs to the job. */
class Keeper {
  readonly stdout = new PassThrough();
  readonly stderr = new PassThrough();
  done = false;
  /** Given up after its silence. */
  silent = false;
  /** How its process failed, until the keeper has finished with it. */
  news: Ending | undefined;

  constructor(
    readonly member: Member,
    readonly line: Line,
  ) {}

  get socket(): Socket {
    return this.line.socket;
  }

  send(type: 'seen' | 'end'): void {
    if (!this.socket.destroyed) this.line.write(type);
  }

  forward(stream: PassThrough, chunk: Buffer): void {
    if (stream.write(chunk)) return;
    // A slow reader blocks the process instead of filling the launcher's memory.
    this.socket.pause();
    stream.once('drain', () => {
      this.socket.resume();
    });
  }

  finish(): void {
    this.done = true;
    this.stdout.end();
    this.stderr.end();
  }
}

const wholeUpTo = (most: number, value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) <= most;

function endingOf(keeper: Keeper, exit: Record<string, unknown>): Ending {
  const { exitCode, what, pid, manner } = exit;
  return {
    member: wholeUpTo(maxInt32, pid) ? { ...keeper.member, pid } : keeper.member,
    exitCode: wholeUpTo(mostExitCode, exitCode) ? exitCode : failed,
    what: typeof what === 'string' ? printable(what) : 'ended, and its keeper did not say how',
    manner: manners.find((each) => each === manner) ?? 'exited',
  };
}

export class Control implements RemoteMembers {
  private readonly keepers = new Map<number, Keeper>();
  private readonly sockets = new Set<Socket>();
  /** If there are too many, the oldest is closed; a keeper among them connects again. */
  private readonly strangers = new Strangers(() => {
    const { workers, servers } = this.options;
    return mostStrangers + workers + servers - this.keepers.size;
  });
  private events: Events | undefined;
  private asked: 'servers' | 'all' | undefined;
  private askedAt = Infinity;
  private released = false;

  private constructor(
    private readonly server: Server,
    private readonly options: ControlOptions,
    /** Value of GRADLINK_LAUNCHER. */
    readonly address: string,
  ) {
    server.on('connection', (socket) => {
      this.meet(socket);
    });
  }

  /**
   * Starts listening.
   *
   * @throws GradlinkError ERR_SYSTEM where no port of the range is free
   */
  static async open(options: ControlOptions): Promise<Control> {
    checkDescriptors(options.workers + options.servers);
    const { ownHost = false, network = {} } = options;
    const server = createServer();
    const port = await listenOn(server, network, ownHost ? loopbackAddress : undefined);
    const outside = ownHost ? [] : reachableAddresses(network);
    const onLoopbackToo = ownHost || network.chosen === undefined;
    const addresses = [...outside, ...(onLoopbackToo ? [loopbackAddress] : [])];
    return new Control(server, options, `${addresses.join(',')}:${String(port)}`);
  }

  watch(events: Events): void {
    this.events = events;
  }

  get busy(): number {
    return [...this.keepers.values()].filter(({ done }) => !done).length;
  }

  get silent(): readonly Member[] {
    return [...this.keepers.values()]
      .filter(({ done, silent, line }) => silent || (!done && line.heard < this.askedAt))
      .map(({ member }) => member);
  }

  get crowd(): number {
    const { workers, servers } = this.options;
    if (this.keepers.size === workers + servers) return 0;
    return this.strangers.count;
  }

  release(): void {
    this.released = true;
    for (const keeper of this.keepers.values()) if (keeper.done) keeper.send('seen');
  }

  end(which: 'servers' | 'all'): void {
    this.asked = which;
    this.askedAt = Math.min(this.askedAt, performance.now());
    for (const keeper of this.keepers.values()) this.endOne(keeper);
  }

  private endOne(keeper: Keeper): void {
    const { role } = keeper.member;
    if (this.asked === undefined || (this.asked === 'servers' && role !== 'server')) return;
    keeper.send('end');
  }

  close(): void {
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
  }

  private meet(socket: Socket): void {
    this.sockets.add(socket);
    this.strangers.add(socket);
    const { jobId, silenceMs } = this.options;
    let keeper: Keeper | undefined;
    socket.on('error', () => undefined);
    const line = Line.ask(socket, jobId, (type, payload) => {
      if (type === 'hello') {
        this.strangers.proved(socket);
        keeper = this.welcome(line, parseFrame(payload) ?? {});
        line.watchSilence(silenceMs, () => {
          if (keeper !== undefined) keeper.silent = true;
          socket.destroy();
        });
      } else if (keeper === undefined) socket.destroy();
      else if (keeper.done) return;
      else if (type === 'stdout') keeper.forward(keeper.stdout, payload);
      else if (type === 'stderr') keeper.forward(keeper.stderr, payload);
      else if (type === 'died') keeper.news = endingOf(keeper, parseFrame(payload) ?? {});
      else if (type === 'exit') this.exited(keeper, parseFrame(payload) ?? {});
    });
    socket.on('close', () => {
      this.sockets.delete(socket);
      if (keeper === undefined || keeper.done) return;
      const seconds = String(silenceMs / 1000);
      const why = keeper.silent
        ? `nothing came from its host for ${seconds} s`
        : (line.trouble ?? 'its connection closed');
      const lost: Ending = {
        member: keeper.member,
        exitCode: failed,
        what: `was lost: ${why}`,
        manner: 'lost',
      };
      this.ended(keeper, keeper.news ?? lost);
    });
  }

  private welcome(line: Line, hello: Record<string, unknown>): Keeper | undefined {
    const { workers, servers, graceMs, silenceMs, hosts } = this.options;
    const { place, pid, host } = hello;
    if (
      !wholeUpTo(workers + servers - 1, place) ||
      this.keepers.has(place) ||
      this.events === undefined
    ) {
      line.socket.destroy();
      return undefined;
    }
    const role = place < workers ? 'worker' : 'server';
    const index = place < workers ? place : place - workers;
    const member: Member = {
      role,
      index,
      label: labelOf(role, index),
      pid: wholeUpTo(maxInt32, pid) ? pid : undefined,
      ...(typeof host === 'string' && host !== hostname() ? { host: printable(host) } : {}),
    };
    const keeper = new Keeper(member, line);
    this.keepers.set(place, keeper);
    const name = hosts?.[place];
    const welcome: Welcome = {
      graceMs,
      silenceMs,
      ...(hosts === undefined
        ? {}
        : {
            localRank: hosts.slice(0, place).filter((other) => other === name).length,
            localSize: hosts.filter((other) => other === name).length,
            localWorkers: hosts.slice(0, workers).filter((other) => other === name).length,
          }),
    };
    this.events.started(member, keeper.stdout, keeper.stderr);
    line.write('welcome', welcome);
    line.keepBeating(silenceMs);
    this.endOne(keeper);
    return keeper;
  }

  private exited(keeper: Keeper, exit: Record<string, unknown>): void {
    const ending = endingOf(keeper, exit);
    this.ended(keeper, ending);
    if (ending.exitCode === 0 || this.released) keeper.send('seen');
  }

  private ended(keeper: Keeper, ending: Ending): void {
    keeper.finish();
    this.events?.ended(ending);
  }
}
