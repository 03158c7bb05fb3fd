// What the launcher and the keeper of a rank on another host say to each other over TCP: frames of a type and a payload.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Socket } from 'node:net';

import type { Manner } from './members.js';

export const frameTypes = [
  'challenge', // launcher to keeper: random bytes
  'hello', // keeper to launcher: Hello
  'welcome', // launcher to keeper: Welcome
  'stdout', // keeper to launcher: bytes
  'stderr',
  'exit', // keeper to launcher: Exit; its process has ended
  'seen', // launcher to keeper: it knows of the exit
  'end', // launcher to keeper: end the process; a second one: at once
  'beat', // both: still here
] as const;
export type FrameType = (typeof frameTypes)[number];

export interface Hello {
  readonly proof: string;
  readonly nonce: string;
  /** MPI rank. */
  readonly place: number;
  readonly host: string;
  readonly pid: number;
}

export interface Welcome {
  readonly proof: string;
  /** Which of this host's cores its process is to run on: share `localRank` of `localSize`; absent: as its starter says. */
  readonly localRank?: number;
  readonly localSize?: number;
  readonly graceMs: number;
  /** Silence of this length means that the other side is lost. */
  readonly silenceMs: number;
}

export interface Exit {
  readonly pid?: number;
  readonly exitCode: number;
  readonly what: string;
  readonly manner: Manner;
}

const headBytes = 5;
/** Output comes in chunks of a pipe, the rest is short; more is no peer of ours. */
const mostBytes = 4 << 20;
export const nonceBytes = 32;

export function encodeFrame(type: FrameType, payload: Buffer | object = Buffer.alloc(0)): Buffer {
  const body = Buffer.isBuffer(payload) ? payload : Buffer.from(JSON.stringify(payload));
  const head = Buffer.alloc(headBytes);
  head.writeUInt32LE(body.length, 0);
  head.writeUInt8(frameTypes.indexOf(type), headBytes - 1);
  return Buffer.concat([head, body]);
}

/** The JSON of a frame; undefined where it is none, which ends the connection. */
export function parseFrame(payload: Buffer): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(payload.toString());
    return typeof value === 'object' && value !== null
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

/** Calls `onFrame` for each frame that comes over a socket; what is no frame destroys the socket. */
export function readFrames(
  socket: Socket,
  onFrame: (type: FrameType, payload: Buffer) => void,
): void {
  let rest: Buffer = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    while (rest.length >= headBytes && !socket.destroyed) {
      const length = rest.readUInt32LE(0);
      const type = frameTypes[rest.readUInt8(headBytes - 1)];
      if (type === undefined || length > mostBytes) {
        socket.destroy();
        return;
      }
      if (rest.length < headBytes + length) return;
      const payload = rest.subarray(headBytes, headBytes + length);
      rest = rest.subarray(headBytes + length);
      onFrame(type, payload);
    }
  });
}

/** Shows that this side knows the job's secret without telling it. */
export function proofOf(side: 'launcher' | 'keeper', secret: string, nonce: Buffer): string {
  return createHmac('sha256', secret).update(side).update(nonce).digest('hex');
}

export function proves(proof: unknown, expected: string): boolean {
  const got = Buffer.from(typeof proof === 'string' ? proof : '');
  const wanted = Buffer.from(expected);
  return got.length === wanted.length && timingSafeEqual(got, wanted);
}

export const newNonce = (): Buffer => randomBytes(nonceBytes);

/** Tells the other side a few times within its patience that this one is there. Ends with the socket. */
export function keepBeating(socket: Socket, silenceMs: number): void {
  const timer = setInterval(() => socket.write(encodeFrame('beat')), silenceMs / beatsInPatience);
  socket.on('close', () => {
    clearInterval(timer);
  });
}
const beatsInPatience = 5;

/** Calls `onSilence` once nothing has come for so long; time in which the socket is paused does not count. */
export function watchSilence(socket: Socket, silenceMs: number, onSilence: () => void): void {
  let last = performance.now();
  socket.on('data', () => (last = performance.now()));
  const timer = setInterval(() => {
    if (socket.isPaused()) last = performance.now();
    if (performance.now() - last > silenceMs) onSilence();
  }, silenceMs / beatsInPatience);
  socket.on('close', () => {
    clearInterval(timer);
  });
}
