// Connections of somebody who does not know a job's secret: words in every manner, and crowds.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';

import { connectTo } from '../../support/control-lines.js';
import { until } from '../../support/launching.js';
import type { Random } from './random.js';

/** Connects, says it at once or a little at a time, and stays, goes or is cut off; also says back what it is told. */
export function stranger(random: Random, port: number, parts: readonly Buffer[]): Socket {
  const socket = connectTo(port);
  if (random.chance(0.2)) socket.on('data', (chunk: Buffer) => socket.write(chunk));
  else socket.resume();
  const slowly = random.chance(0.2);
  for (const part of parts) {
    if (slowly) for (const byte of part.subarray(0, 50)) socket.write(Buffer.of(byte));
    else socket.write(part);
  }
  const way = random.int(4);
  if (way === 0) socket.end();
  if (way === 1) setImmediate(() => socket.resetAndDestroy());
  return socket;
}

/** With one bit of it altered. */
export function altered(random: Random, bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  const at = random.int(copy.length);
  copy[at] = (copy[at] ?? 0) ^ (1 << random.int(8));
  return copy;
}

export function kilobytes(pid: number | undefined, name: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${String(pid)}/status`, 'utf8');
  return Number(new RegExp(`^${name}:\\s*(\\d+) kB$`, 'm').exec(status)?.[1]);
}

/** Holds as many connections to each port as it can get, says nothing, and tells when there were enough. */
const crowding = `
  const [, held, enough, ...ports] = process.argv.map(Number);
  let made = 0;
  let missing = ports.length;
  for (const port of ports) {
    let here = 0;
    const open = () => require('node:net').connect(port, '127.0.0.1')
      .on('error', () => undefined)
      .on('connect', () => { made++; if (++here === enough && --missing === 0) console.log('enough'); })
      .on('close', () => setImmediate(open)).resume();
    for (let i = 0; i < held; ++i) open();
  }
  process.stdin.resume().on('end', () => { console.log(made); process.exit(); });`;

export interface Crowd {
  /** Ends it; how many connections it made. */
  end(): Promise<number>;
}

/** A process that crowds ports of this host; resolves once it has made `enough` connections to each. */
export async function crowd(
  held: number,
  enough: number,
  ...ports: readonly (number | string)[]
): Promise<Crowd> {
  const args = [held, enough, ...ports].map(String);
  const child = spawn(process.execPath, ['-e', crowding, ...args]);
  let said = '';
  child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const over = new Promise((resolve) => child.once('close', resolve));
  await until(() => said.includes('enough'));
  return {
    end: async () => {
      child.stdin.end();
      await over;
      return Number(said.replace('enough\n', ''));
    },
  };
}
