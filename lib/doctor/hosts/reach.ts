// Whether hosts reach one another by TCP, and their clock offsets: each host listens and calls all others.
import { randomBytes, timingSafeEqual } from 'node:crypto';
import { createServer, connect, type Socket } from 'node:net';

import { Strangers } from '../../launch/strangers.js';
import { callFrom, listenOn, type Network } from '../../network.js';

/** Where a host listens. The token proves the host's identity and keeps strangers out. */
export interface Door {
  readonly host: string;
  /** Tried in parallel; one answer is enough. */
  readonly addresses: readonly string[];
  readonly port: number;
  readonly token: string;
}

/** The result of calling one host. */
export interface Reached {
  readonly to: string;
  /** Why no address answered; absent if one did. */
  readonly error?: string;
  /** Of the fastest exchange. */
  readonly roundTripMs?: number;
  /** Its clock offset to ours, within half the round trip. */
  readonly aheadMs?: number;
}

export interface Listener {
  readonly port: number;
  readonly token: string;
  close(): void;
}

const tokenBytes = 16;
const questions = 5;
const strangerTimeoutMs = 10_000;
/** Limits the parallel calls of a host. */
const callsAtOnce = 32;
/** This many hosts call one at a time (othersOf), each at up to eight addresses. */
const mostStrangers = 8 * callsAtOnce;
/** How long to wait for a firewall that drops packets. */
export const callTimeoutMs = 5000;

function sameText(one: string, other: string): boolean {
  return (
    one.length === other.length &&
    timingSafeEqual(Buffer.from(one, 'latin1'), Buffer.from(other, 'latin1'))
  );
}

/** Answers the token with our clock; anything else ends the connection. */
function answer(socket: Socket, token: string, onProof: () => void): void {
  let rest = '';
  socket.setTimeout(strangerTimeoutMs, () => socket.destroy());
  socket.setNoDelay(true);
  socket.on('error', () => undefined);
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    rest += chunk;
    for (let end = rest.indexOf('\n'); end >= 0; end = rest.indexOf('\n')) {
      if (!sameText(rest.slice(0, end), token)) {
        socket.destroy();
        return;
      }
      rest = rest.slice(end + 1);
      onProof();
      socket.write(`${Date.now()}\n`);
    }
    if (rest.length > token.length) socket.destroy();
  });
}

/** @throws the system's error if no port is free, ERR_SYSTEM if none of the range is */
export async function listen(network: Network = {}): Promise<Listener> {
  const token = randomBytes(tokenBytes).toString('hex');
  const sockets = new Set<Socket>();
  const strangers = new Strangers(() => mostStrangers);
  const server = createServer((socket) => {
    sockets.add(socket);
    strangers.add(socket);
    socket.on('close', () => sockets.delete(socket));
    answer(socket, token, () => {
      strangers.proved(socket);
    });
  });
  return {
    token,
    port: await listenOn(server, network),
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Exchanges clocks a few times. */
function ask(
  host: string,
  { port, token, host: to }: Door,
  network: Network,
  timeoutMs: number,
): Promise<Reached> {
  return new Promise((resolve, reject) => {
    const socket = connect(callFrom(network, host, port));
    socket.setNoDelay(true);
    let best: { roundTripMs: number; aheadMs: number } | undefined;
    let asked = { wall: 0, at: 0 };
    let left = questions;
    let rest = '';
    const timer = setTimeout(() => {
      socket.destroy(new Error(`no answer within ${timeoutMs / 1000} s`));
    }, timeoutMs);
    const question = (): void => {
      left -= 1;
      asked = { wall: Date.now(), at: performance.now() };
      socket.write(`${token}\n`);
    };
    socket.on('connect', question);
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      rest += chunk;
      if (!rest.endsWith('\n')) return;
      const theirs = Number(rest);
      rest = '';
      const roundTripMs = performance.now() - asked.at;
      if (best === undefined || roundTripMs < best.roundTripMs) {
        best = { roundTripMs, aheadMs: theirs - (asked.wall + roundTripMs / 2) };
      }
      if (left > 0) question();
      else {
        resolve({ to, ...best });
        socket.destroy();
      }
    });
    socket.on('error', reject);
    socket.on('close', () => {
      clearTimeout(timer);
      reject(new Error('it hung up'));
    });
  });
}

function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'its name is not known there';
  if (code === 'ECONNREFUSED') return 'refused';
  if (code === 'EHOSTUNREACH' || code === 'ENETUNREACH') return 'no way there';
  return message;
}

/** Never fails: an error becomes a reason. */
export async function call(
  door: Door,
  network: Network = {},
  limitMs = callTimeoutMs,
): Promise<Reached> {
  try {
    return await Promise.any(door.addresses.map((address) => ask(address, door, network, limitMs)));
  } catch (error) {
    const errors: unknown[] = error instanceof AggregateError ? error.errors : [error];
    const tried = door.addresses.map((address, index) => `${address}: ${reasonOf(errors[index])}`);
    return { to: door.host, error: `${tried.join('; ')} (TCP port ${door.port})` };
  }
}

/** All hosts but ours, starting with the next one: if all started with the same host, it would be overloaded. */
export function othersOf(doors: readonly Door[], own: string): Door[] {
  const next = doors.findIndex(({ host }) => host === own) + 1;
  return [...doors.slice(next), ...doors.slice(0, next)].filter(({ host }) => host !== own);
}

export async function callAll(doors: readonly Door[], network: Network = {}): Promise<Reached[]> {
  const reached: Reached[] = [];
  for (let from = 0; from < doors.length; from += callsAtOnce) {
    const some = doors.slice(from, from + callsAtOnce);
    reached.push(...(await Promise.all(some.map((door) => call(door, network)))));
  }
  return reached;
}
