// Counts what a process has before, while and after handles are open: in the script that it gives, and of what that reports.
import { expect } from 'vitest';

import { well } from './processes.js';
import type { Ended } from './processes.js';

/** `held()`: what this process has; memory in MiB, that which no file or other process shares apart. */
const counting = `
  import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
  const isSegment = (fd) => {
    try { return readlinkSync('/proc/self/fd/' + fd).includes('memfd:gradlink'); } catch { return false; }
  };
  const MiB = 2 ** 20;
  const held = () => {
    let shared = 0;
    let own = 0;
    let mappings = 0;
    for (const line of readFileSync('/proc/self/maps', 'utf8').split('\\n')) {
      const [, from, to, access] = /^([0-9a-f]+)-([0-9a-f]+) (\\S+)/.exec(line) ?? [];
      if (access === 'rw-s') mappings++;
      const bytes = Number('0x' + to) - Number('0x' + from);
      if (access === 'rw-s') shared += bytes;
      if (access === 'rw-p') own += bytes;
    }
    const descriptors = readdirSync('/proc/self/fd');
    return {
      descriptors: descriptors.length,
      segments: descriptors.filter(isSegment).length,
      threads: readdirSync('/proc/self/task').length,
      mappings,
      shared: shared / MiB,
      own: own / MiB,
    };
  };
  // The system lists a thread for a moment after it was joined.
  const unlisted = (threads) => {
    const nap = new Int32Array(new SharedArrayBuffer(4));
    for (let i = 0; i < 2000 && held().threads > threads; i++) Atomics.wait(nap, 0, 0, 1);
  };
`;

interface Held {
  readonly descriptors: number;
  readonly segments: number;
  readonly threads: number;
  readonly mappings: number;
  readonly shared: number;
  readonly own: number;
}

/** A kind of handle, as source. */
export interface Kind {
  readonly open: string;
  /** What is closed at the end; none: nothing. */
  readonly before?: string;
  readonly after?: string;
}

const rounds = 6;

/** Opens and closes all of them once, for what the first use leaves for good; then counts around the second time. */
export const script = ({ before = '', open, after = '' }: Kind, meet = ''): string => `
  ${counting}
  const n = 2 ** 20;
  const data = new Float32Array(n).fill(1);
  // Starts the threads that work inside calls.
  const threads = Communicator.local(2);
  await threads.allReduce([data.slice(), data.slice()]);
  await threads.close();
  ${before}
  const open = async () => { ${open} };
  const counted = [];
  for (let time = 0; time < 2; time++) {
    ${meet}
    counted.push(held());
    const closers = [];
    for (let i = 0; i < ${rounds}; i++) closers.push(await open());
    counted.push(held());
    for (const close of closers) await close();
    ${meet}
    unlisted(counted.at(-2).threads);
    counted.push(held());
  }
  report([counted[0], ...counted.slice(3)]);
  ${after}
`;

/** Less than one of the handles has, and more than JavaScript may take meanwhile for its own. */
const noise = 3;

export interface Left {
  /** Segments whose memory is for the next one: of who leads meetings, while another communicator is open. */
  readonly segments?: number;
  /** Whether other things that end, as the heap of a worker, leave memory with the C library. */
  readonly heap?: boolean;
}

export function expectGone(
  ended: readonly Ended[],
  { segments = 0, heap = false }: Left = {},
): void {
  for (const one of ended) {
    expect(one).toMatchObject(well);
    const [first, before, open, after] = one.reports[0] as [Held, Held, Held, Held];
    const { threads, mappings, shared } = before;
    expect(after).toMatchObject({ threads, mappings, shared });
    expect(after.segments).toBeLessThanOrEqual(first.segments + segments);
    expect(after.descriptors - after.segments).toBe(before.descriptors - before.segments);
    if (heap) continue;
    const taken = open.own - before.own;
    expect(after.own - before.own).toBeLessThan(Math.max(taken / rounds, noise));
  }
}
