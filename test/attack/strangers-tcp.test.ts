// Strangers at the ports of ranks over TCP, while these meet and work: rubbish, forged and replayed words, half
// handshakes, crowds, and a port that is theirs before it is a rank's. The job ends with the right sums.
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

import { afterAll, beforeAll, expect, it } from 'vitest';

import { closed } from '../support/control-lines.js';
import { Launches, until } from '../support/launching.js';
import { Scripts, well } from '../support/processes.js';
import { freePort, socketsOf } from '../support/tcp.js';
import { campaign, campaignTimeout } from './support/campaign.js';
import type { Counts } from './support/campaign.js';
import type { Random } from './support/random.js';
import { altered, crowd, stranger } from './support/strangers.js';

let launches: Launches;
let scripts: Scripts;
beforeAll(() => {
  launches = new Launches();
  scripts = new Scripts();
});
afterAll(async () => {
  await scripts.remove();
  await launches.remove();
});

const size = 4;
const magic = Buffer.from('gradlnk2');
const greetingBytes = 48;
const helloBytes = 88;
const proofBytes = 32;
const kinds = 7;

/** What a rank that accepts says first, with a nonce that is no rank's. */
const greeting = (random: Random): Buffer =>
  Buffer.concat([magic, Buffer.alloc(8), random.bytes(32)]);

/** What `rank` says to `peer`, without the proof. */
function hello(random: Random, rank: number, peer: number, ranks = size): Buffer {
  const said = Buffer.concat([magic, Buffer.alloc(16), random.bytes(64)]);
  said.writeInt32LE(rank, 8);
  said.writeInt32LE(ranks, 12);
  said.writeInt32LE(peer, 16);
  said.writeUInt16LE(1, 20);
  return said;
}

/** A head of a frame with any seal, and bytes that would follow it. */
function frame(random: Random): Buffer {
  const head = Buffer.from(random.bytes(40 + 16));
  head.writeUInt32LE(random.int(kinds + 1), 0);
  head.writeBigUInt64LE(random.pick([0n, 8n, 2n ** 16n, 2n ** 46n, 2n ** 64n - 1n]), 16);
  return Buffer.concat([head, random.bytes(random.int(300))]);
}

/** What a stranger says to rank `to`, given what was said on the way of another rank. */
const sayings: readonly ((random: Random, to: number, heard: Heard) => readonly Buffer[])[] = [
  (random) => [Buffer.from(random.bytes(random.int(3000)))],
  (random) => [Buffer.alloc(2 ** 20, random.int(256))],
  // Frames in the place of a handshake, and after one that proves nothing.
  (random) => [frame(random), frame(random)],
  (random, to) => [
    hello(random, random.int(size), to),
    Buffer.from(random.bytes(proofBytes)),
    frame(random),
  ],
  // Of a rank that there is not, to another rank, or of another size.
  (random, to) => [
    hello(random, random.int(size + 2) - 1, random.pick([to, to + 1]), random.pick([size, 2, -1])),
    Buffer.from(random.bytes(proofBytes)),
  ],
  // Half a handshake.
  (random, to) => [hello(random, random.int(size), to).subarray(0, random.int(helloBytes))],
  (random, to) => [
    hello(random, random.int(size), to),
    Buffer.from(random.bytes(random.int(proofBytes))),
  ],
  // What a rank said, or what it was told; as it was, or with a bit of it altered.
  (_, to, heard) => [heard[to === 0 ? 'up' : 'down']],
  (_, __, heard) => [heard.up],
  (random, _, heard) => [altered(random, heard.up)],
];

/** Between one rank and rank 0, and silent about it. */
interface Heard {
  up: Buffer;
  down: Buffer;
}

async function listening(server: Server, port = 0): Promise<number> {
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

function eavesdropper(port: number, heard: Heard): Server {
  return createServer((near) => {
    const far = connect(port, '127.0.0.1');
    near.on('data', (chunk: Buffer) => (heard.up = Buffer.concat([heard.up, chunk])));
    far.on('data', (chunk: Buffer) => (heard.down = Buffer.concat([heard.down, chunk])));
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on('error', () => to.destroy()).pipe(to);
    }
  });
}

/** Each rank with each, by every connection that there is, and all together; reports how many numbers were wrong. */
const works = (go: string): string => `
  import { existsSync } from 'node:fs';
  const comm = await Communicator.world({ backend: 'tcp', timeoutMs: 60_000 });
  say('met');
  while (!existsSync(${JSON.stringify(go)})) await new Promise((wake) => setTimeout(wake, 10));
  const all = comm.size * (comm.size + 1) / 2;
  let wrong = 0;
  for (let round = 0; round < 4; ++round) {
    for (const length of [1, 1000, 300_000]) {
      const sum = await comm.allReduce(new Float32Array(length).fill(comm.rank + 1));
      wrong += sum.filter((each) => each !== all).length;
    }
    for (let step = 1; step < comm.size; ++step) {
      const to = (comm.rank + step) % comm.size;
      const from = (comm.rank + comm.size - step) % comm.size;
      const place = new Int32Array(20_000);
      const send = () => comm.send(new Int32Array(place.length).fill(comm.rank), { to });
      if (to > comm.rank) await send();
      await comm.receive(place, { from });
      if (to < comm.rank) await send();
      wrong += place.filter((each) => each !== from).length;
    }
  }
  const half = await comm.split(comm.rank % 2);
  await half.barrier();
  report([wrong, half.size]);
  await half.close();
  await comm.close();`;

/** A job that everybody can see the ports of, and nobody else the secret: what each of its ranks is told. */
function aJob(): (number: number, port: number) => Record<string, string> {
  const job = randomBytes(16).toString('hex');
  return (number, port) => ({
    GRADLINK_JOB: job,
    GRADLINK_RANK: String(number),
    GRADLINK_SIZE: String(size),
    GRADLINK_TRANSPORT: 'tcp',
    GRADLINK_RANKS_PER_NODE: '1',
    MASTER_ADDR: '127.0.0.1',
    MASTER_PORT: String(port),
  });
}

it(
  'at the ports of ranks that meet and work change nothing for their job',
  async () => {
    const connections = 100;
    await campaign('strangers at ranks over TCP', 2, async (random): Promise<Counts> => {
      const place = aJob();
      const sealed = { GRADLINK_TCP_SEAL: random.pick(['', 'all']) };
      const go = launches.mark('go');
      const port = await freePort();
      const rank = (number: number, at = port) =>
        scripts.start(works(go), { ...place(number, at), ...sealed });
      const portOf = async ({ child }: ReturnType<typeof rank>): Promise<number> => {
        const own = () => socketsOf(child.pid).find(({ listens }) => listens)?.port;
        await until(() => own() !== undefined);
        return own() ?? 0;
      };
      const heard: Heard = { up: Buffer.alloc(0), down: Buffer.alloc(0) };
      const between = eavesdropper(port, heard);
      const through = await listening(between);
      const sockets: Socket[] = [];
      try {
        const first = [rank(0), rank(1), rank(2, through)];
        const ports = await Promise.all(first.map(portOf));
        // They wait for the last, which then has to get in beside more strangers than a rank keeps.
        const crowds = [await crowd(300, 600, ...ports)];
        const last = rank(size - 1);
        const ranks = [...first, last];
        await Promise.all(ranks.map((one) => one.said('met')));
        ports.push(await portOf(last));
        // Those who work on something else let them wait.
        crowds.push(await crowd(300, 1, ports[size - 1] ?? 0));
        const speak = () =>
          ports.forEach((each, to) => {
            for (let i = 0; i < connections; ++i) {
              sockets.push(stranger(random, each, random.pick(sayings)(random, to, heard)));
            }
          });
        speak();
        writeFileSync(go, '');
        speak();
        const ended = await Promise.all(ranks.map((one) => one.ended));
        const crowded = await Promise.all(crowds.map((one) => one.end()));
        for (const one of ended) expect(one).toMatchObject({ ...well, reports: [[0, size / 2]] });
        await Promise.all(sockets.map(closed));
        return {
          connections: sockets.length,
          crowd: crowded.reduce((sum, one) => sum + one, 0),
        };
      } finally {
        between.close();
      }
    });
  },
  campaignTimeout,
);

/** What somebody says who has the port that ranks come to. */
const answers: readonly ((random: Random, socket: Socket) => void)[] = [
  (_, socket) => socket.destroy(),
  (random, socket) => socket.end(random.bytes(random.int(3000))),
  (random, socket) => socket.end(greeting(random).subarray(0, random.int(greetingBytes))),
  (random, socket) => socket.end(greeting(random)),
  (random, socket) =>
    socket.write(Buffer.concat([greeting(random), random.bytes(proofBytes), frame(random)])),
];

it(
  'at the port of rank 0 before it comes hold nobody up, and cannot use what they were told',
  async () => {
    await campaign('squatters at the port of rank 0', 2, async (random): Promise<Counts> => {
      const place = aJob();
      const go = launches.mark('go');
      writeFileSync(go, '');
      const held: Socket[] = [];
      const heard: Heard = { up: Buffer.alloc(0), down: greeting(random) };
      const squatter = createServer((socket) => {
        held.push(socket.on('error', () => undefined));
        socket.on('data', (chunk: Buffer) => (heard.up = chunk));
        random.pick(answers)(random, socket);
      });
      const port = await listening(squatter);
      const rank = (number: number) => scripts.start(works(go), place(number, port));
      const early = [rank(1), rank(2)];
      await until(() => heard.up.length > 0 && held.length >= 8 * early.length);
      for (const each of held) each.destroy();
      await new Promise((resolve) => squatter.close(resolve));
      const first = rank(0);
      await until(() => socketsOf(first.child.pid).some(({ listens }) => listens));
      const replays = Array.from({ length: 50 }, () => stranger(random, port, [heard.up]));
      const ranks = [first, ...early, rank(size - 1)];
      for (const one of await Promise.all(ranks.map(({ ended }) => ended)))
        expect(one).toMatchObject({ ...well, reports: [[0, size / 2]] });
      await Promise.all(replays.map(closed));
      return { connections: held.length, replays: replays.length };
    });
  },
  campaignTimeout,
);
