// The launcher's port as strangers see it: a launcher's end in this process, keepers that know its secret, and a man in
// the middle of their lines.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { Readable } from 'node:stream';

import { Control, type ControlOptions } from '../../lib/launch/control.js';
import { Line } from '../../lib/launch/line.js';
import type { FrameType } from '../../lib/launch/frames.js';
import type { Ending, Member } from '../../lib/launch/members.js';

const headBytes = 5;
const sealBytes = 32;

/** Cuts what comes over a socket into whole frames, seals included; only a challenge, type 0, has none. */
export function onFrames(socket: Socket, onFrame: (frame: Buffer) => void): void {
  let rest: Buffer = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= headBytes) {
      const whole = headBytes + rest.readUInt32LE(0) + (rest[headBytes - 1] === 0 ? 0 : sealBytes);
      if (rest.length < whole) return;
      onFrame(rest.subarray(0, whole));
      rest = rest.subarray(whole);
    }
  });
}

/** Resolves once the other end has closed the connection. */
export function closed(socket: Socket): Promise<void> {
  socket.on('error', () => undefined).resume();
  // Not events.once, which a reset would make reject.
  return new Promise((resolve) => {
    if (socket.closed) resolve();
    else
      socket.once('close', () => {
        resolve();
      });
  });
}

/** A connection to a port of this host; that it is cut off is no error. */
export function connectTo(port: number): Socket {
  return connect({ host: '127.0.0.1', port }).on('error', () => undefined);
}

/** A launcher's end of `workers` processes, and what it has been told. */
export class Launcher {
  readonly secret = randomBytes(16).toString('hex');
  readonly started: Member[] = [];
  readonly endings: Ending[] = [];
  stdout = '';
  private changed: () => void = () => undefined;

  private constructor(readonly control: Control) {}

  static async open(workers: number, more: Partial<ControlOptions> = {}): Promise<Launcher> {
    const secret = randomBytes(16).toString('hex');
    const control = await Control.open({
      jobId: secret,
      workers,
      servers: 0,
      graceMs: 1000,
      silenceMs: 60_000,
      ownHost: true,
      ...more,
    });
    const launcher = Object.assign(new Launcher(control), { secret });
    control.watch({
      started: (member: Member, stdout: Readable, stderr: Readable) => {
        launcher.started.push(member);
        stderr.resume();
        stdout.on('data', (chunk: Buffer) => {
          launcher.stdout += chunk.toString();
          launcher.changed();
        });
        launcher.changed();
      },
      ended: (ending) => {
        launcher.endings.push(ending);
        launcher.changed();
      },
    });
    return launcher;
  }

  get port(): number {
    return Number(this.control.address.split(':').at(-1));
  }

  /** Resolves once what it was told makes the condition true. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => (this.changed = resolve));
  }

  stranger(): Socket {
    return connectTo(this.port);
  }

  /** A keeper that the launcher has welcomed. */
  async keeper(place: number, port = this.port): Promise<FakeKeeper> {
    const socket = connectTo(port);
    const heard: FrameType[] = [];
    const line = await new Promise<Line>((resolve, reject) => {
      const own: Line = Line.answer(
        socket,
        this.secret,
        { place, host: 'elsewhere', pid: 1 },
        (type) => {
          heard.push(type);
          resolve(own);
        },
      );
      socket.on('close', () => {
        reject(new Error(own.trouble ?? 'the launcher hung up'));
      });
    });
    return { line, socket, heard };
  }
}

export interface FakeKeeper {
  readonly line: Line;
  readonly socket: Socket;
  /** Types of the frames that came. */
  readonly heard: FrameType[];
}

/** What becomes of a frame on its way: the frames that go on, to the other side, or back. */
export type Meddling = (
  frame: Buffer,
  from: 'keeper' | 'launcher',
  number: number,
) => { readonly on?: readonly Buffer[]; readonly back?: readonly Buffer[] };

/** Between keepers and the port of a launcher; every frame passes through `meddle`, numbered in its direction. */
export class ManInTheMiddle {
  private readonly sockets: Socket[] = [];

  private constructor(
    private readonly server: Server,
    readonly port: number,
  ) {}

  static async open(launcher: number, meddle: Meddling): Promise<ManInTheMiddle> {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const man = new ManInTheMiddle(server, (server.address() as AddressInfo).port);
    server.on('connection', (keeper) => {
      const there = connectTo(launcher);
      keeper.on('error', () => undefined);
      man.sockets.push(keeper, there);
      const pass = (from: 'keeper' | 'launcher', source: Socket, other: Socket): void => {
        let number = 0;
        onFrames(source, (frame) => {
          const { on = [], back = [] } = meddle(frame, from, number++);
          for (const each of on) other.write(each);
          for (const each of back) source.write(each);
        });
        source.on('close', () => other.destroy());
      };
      pass('keeper', keeper, there);
      pass('launcher', there, keeper);
    });
    return man;
  }

  close(): void {
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
  }
}
