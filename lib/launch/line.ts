// An authenticated connection between the launcher and a keeper. Both prove that they know the job's secret, and each
// frame is signed with its number and direction: none can be inserted, altered, dropped, repeated or reflected. Frames
// are not encrypted.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Socket } from 'node:net';

import { longestTimerMs } from '../time.js';
import { frameTypes, type FrameType } from './frames.js';

type Side = 'launcher' | 'keeper';

const headBytes = 5;
const nonceBytes = 32;
const macBytes = 32;
/** Output comes in pipe-sized chunks and other frames are short, so a larger frame is not ours. */
const mostBytes = 4 << 20;
/** Limit before the first authentic frame, a hello or a welcome of about 200 bytes. */
const mostUnproven = 4096;
/** The launcher's is short; a keeper that was too slow connects again. */
const proofTimeoutMs = { launcher: 5000, keeper: 15_000 };
const beatsInSilence = 5;
const beatMs = (silenceMs: number): number => Math.min(silenceMs / beatsInSilence, longestTimerMs);

const forged =
  'a frame on its connection was not authentic: altered, repeated, out of order or from a process without the secret';

/** Signs or verifies the frames of one direction. */
class Seal {
  private readonly key: Buffer;
  private count = 0n;

  constructor(secret: string, from: Side, challenge: Buffer, answer: Buffer) {
    this.key = createHmac('sha256', secret)
      .update(`gradlink frames of the ${from}`)
      .update(challenge)
      .update(answer)
      .digest();
  }

  /** The signature of the next frame, which covers its number. */
  next(frame: Buffer): Buffer {
    const number = Buffer.alloc(8);
    number.writeBigUInt64LE(this.count);
    this.count += 1n;
    return createHmac('sha256', this.key).update(number).update(frame).digest();
  }
}

function encode(type: FrameType, body: Buffer): Buffer {
  const head = Buffer.alloc(headBytes);
  head.writeUInt32LE(body.length, 0);
  head.writeUInt8(frameTypes.indexOf(type), headBytes - 1);
  return Buffer.concat([head, body]);
}

const bodyOf = (payload: Buffer | object): Buffer =>
  Buffer.isBuffer(payload) ? payload : Buffer.from(JSON.stringify(payload));

type OnFrame = (type: FrameType, payload: Buffer) => void;

export class Line {
  /** Why this end hung up; undefined if it did not. */
  trouble: string | undefined;
  private rest: Buffer = Buffer.alloc(0);
  private readonly nonce = randomBytes(nonceBytes);
  private sealing: Seal | undefined;
  private checking: Seal | undefined;
  private proven = false;
  private unproven = 0;
  /** When the last authentic frame came, by `performance.now()`. */
  heard = performance.now();
  private readonly proofTimer: NodeJS.Timeout;

  private constructor(
    readonly socket: Socket,
    private readonly side: Side,
    private readonly secret: string,
    private readonly hello: object,
    private readonly onFrame: OnFrame,
  ) {
    socket.setNoDelay(true);
    this.proofTimer = setTimeout(() => {
      this.breakOff("it did not prove in time that it knows the job's secret");
    }, proofTimeoutMs[side]);
    socket.on('close', () => {
      clearTimeout(this.proofTimer);
    });
    socket.on('data', (chunk: Buffer) => {
      this.take(chunk);
    });
  }

  /** The launcher's end. The first frame for `onFrame` is the hello of a process of the job. */
  static ask(socket: Socket, secret: string, onFrame: OnFrame): Line {
    const line = new Line(socket, 'launcher', secret, {}, onFrame);
    socket.write(encode('challenge', line.nonce));
    return line;
  }

  /** A keeper's end. The first frame for `onFrame` is the welcome of the job's launcher. */
  static answer(socket: Socket, secret: string, hello: object, onFrame: OnFrame): Line {
    return new Line(socket, 'keeper', secret, hello, onFrame);
  }

  /** @returns false under backpressure */
  write(type: FrameType, payload: Buffer | object = Buffer.alloc(0)): boolean {
    if (this.sealing === undefined) throw new Error('the line is not open yet');
    const frame = encode(type, bodyOf(payload));
    return this.socket.write(Buffer.concat([frame, this.sealing.next(frame)]));
  }

  /** Sends several heartbeats per `silenceMs` until the socket ends. */
  keepBeating(silenceMs: number): void {
    const timer = setInterval(() => this.write('beat'), beatMs(silenceMs));
    this.socket.on('close', () => {
      clearInterval(timer);
    });
  }

  /** Calls `onSilence` after this long without a frame; time with the socket paused does not count. */
  watchSilence(silenceMs: number, onSilence: () => void): void {
    this.heard = performance.now();
    const timer = setInterval(() => {
      if (this.socket.isPaused()) this.heard = performance.now();
      if (performance.now() - this.heard > silenceMs) onSilence();
    }, beatMs(silenceMs));
    this.socket.on('close', () => {
      clearInterval(timer);
    });
  }

  private breakOff(why: string): void {
    this.trouble ??= why;
    this.rest = Buffer.alloc(0);
    this.socket.destroy(new Error(why));
  }

  private take(chunk: Buffer): void {
    if (!this.proven) {
      this.unproven += chunk.length;
      // The launcher may send more right behind its welcome; a keeper sends nothing before it.
      if (this.side === 'launcher' && this.unproven > mostUnproven) {
        this.breakOff("it sent too much before it proved that it knows the job's secret");
        return;
      }
    }
    this.rest = this.rest.length === 0 ? chunk : Buffer.concat([this.rest, chunk]);
    while (this.rest.length >= headBytes && !this.socket.destroyed) {
      const length = this.rest.readUInt32LE(0);
      const type = frameTypes[this.rest.readUInt8(headBytes - 1)];
      if (type === undefined || length > (this.proven ? mostBytes : mostUnproven)) {
        this.breakOff(forged);
        return;
      }
      const sealed = type === 'challenge' ? 0 : macBytes;
      const whole = headBytes + length + sealed;
      if (this.rest.length < whole) return;
      const frame = this.rest.subarray(0, headBytes + length);
      const seal = this.rest.subarray(headBytes + length, whole);
      this.rest = this.rest.subarray(whole);
      this.read(type, frame, seal);
    }
  }

  private read(type: FrameType, frame: Buffer, seal: Buffer): void {
    const payload = frame.subarray(headBytes);
    if (type === 'challenge') {
      this.answerChallenge(payload);
      return;
    }
    const hello = this.side === 'launcher' && !this.proven;
    if (hello && type === 'hello' && payload.length >= nonceBytes) {
      this.openSeals(this.nonce, payload.subarray(0, nonceBytes));
    }
    const first = this.side === 'launcher' ? 'hello' : 'welcome';
    const expected = this.checking?.next(frame);
    if (
      expected === undefined ||
      !timingSafeEqual(expected, seal) ||
      (type === first) === this.proven
    ) {
      this.breakOff(forged);
      return;
    }
    clearTimeout(this.proofTimer);
    this.proven = true;
    this.heard = performance.now();
    this.onFrame(type, hello ? payload.subarray(nonceBytes) : payload);
  }

  /** A keeper answers once; the launcher's end accepts no challenge. */
  private answerChallenge(challenge: Buffer): void {
    if (this.side === 'launcher' || this.sealing !== undefined || challenge.length !== nonceBytes) {
      this.breakOff(forged);
      return;
    }
    this.openSeals(challenge, this.nonce);
    this.write('hello', Buffer.concat([this.nonce, bodyOf(this.hello)]));
  }

  private openSeals(challenge: Buffer, answer: Buffer): void {
    const other = this.side === 'launcher' ? 'keeper' : 'launcher';
    this.sealing = new Seal(this.secret, this.side, challenge, answer);
    this.checking = new Seal(this.secret, other, challenge, answer);
  }
}
