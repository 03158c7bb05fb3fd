// Worlds without MPI: what their ranks compute, and what they are told when they do not meet.
import { spawnSync } from 'node:child_process';
import { createServer, type AddressInfo } from 'node:net';
import { setImmediate } from 'node:timers/promises';

import { afterEach, describe, expect, it } from 'vitest';

import { cutLink, firewallOf, forgetRest, netns, onHosts } from '../support/hosts.js';
import { missing } from '../support/launching.js';
import { Scripts, well, type Ended, type Running } from '../support/processes.js';
import { freePort, placeOf, socketsOf, startOverTcp } from '../support/tcp.js';
import { everything, rightWorld, wholeWorld } from '../support/world.js';

const scripts = new Scripts();
afterEach(() => scripts.remove());

const ends = (running: readonly Running[]): Promise<Ended[]> =>
  Promise.all(running.map((one) => one.ended));
const reportsOf = (ended: readonly Ended[]): unknown[] => ended.flatMap(({ reports }) => reports);

/** A rank that reports how its world came to be or did not. */
const meets = (timeoutMs = 20_000): string => `
  report(await outcome(Communicator.world({ backend: 'tcp', timeoutMs: ${timeoutMs} })));
`;

describe('a world over TCP', () => {
  const cases = [
    { size: 1, perNode: undefined },
    { size: 2, perNode: undefined },
    { size: 3, perNode: 1 },
    { size: 5, perNode: 2, seal: 'all' },
  ];
  it.each(cases)(
    'of $size ranks, $perNode a host, computes',
    async ({ size, perNode, seal = '' }) => {
      const nodes = perNode === undefined ? {} : { GRADLINK_RANKS_PER_NODE: String(perNode) };
      const env = { GRADLINK_TCP_SEAL: seal, ...nodes };
      const ended = await ends(await startOverTcp(scripts, size, everything('tcp'), env));
      for (const one of ended) expect(one).toMatchObject(well);
      expect(wholeWorld(reportsOf(ended))).toEqual(rightWorld(size, 'tcp'));
    },
  );

  it('is what ranks of several hosts get when nothing else is said', async () => {
    const source = `
      const comm = await Communicator.world();
      report([comm.backend, (await comm.allReduce(Int32Array.of(1)))[0]]);
      await comm.close();
    `;
    const env = { LOCAL_WORLD_SIZE: '1', GRADLINK_RANKS_PER_NODE: '1' };
    const ended = await ends(await startOverTcp(scripts, 2, source, env));
    expect(reportsOf(ended)).toEqual([
      ['tcp', 2],
      ['tcp', 2],
    ]);
  });

  it('needs a secret where other hosts can reach its ports, unless it is told to go on', async () => {
    const open = { ...placeOf(1, 2, await freePort(), '10.77.77.77'), GRADLINK_JOB: '' };
    const refused = await scripts.run(meets(300), open);
    expect(refused.reports).toEqual([expect.objectContaining({ code: 'ERR_UNSUPPORTED' })]);
    const warned = await scripts.run(meets(300), { ...open, GRADLINK_INSECURE: '1' });
    expect(warned.reports).toEqual([expect.objectContaining({ code: 'ERR_TIMEOUT', rank: 0 })]);
    expect(warned.stderr).toContain('GRADLINK_INSECURE');
  });

  it('names the ranks that do not come, on all that did', async () => {
    const port = await freePort();
    const came = [0, 2].map((rank) => scripts.start(meets(1500), placeOf(rank, 4, port)));
    for (const report of reportsOf(await ends(came))) {
      expect(report).toMatchObject({ code: 'ERR_TIMEOUT', rank: 1 });
      expect((report as Error).message).toMatch(/ranks 1, 3 of 4 .*127\.0\.0\.1:/);
    }
  });

  it('names rank 0 where nobody listens', async () => {
    const { reports } = await scripts.run(meets(300), placeOf(1, 2, await freePort()));
    expect(reports[0]).toMatchObject({ code: 'ERR_TIMEOUT', rank: 0 });
    expect((reports[0] as Error).message).toMatch(/nobody.*127\.0\.0\.1:/);
  });

  it('tells ranks that were told of other sizes, or the same rank', async () => {
    const port = await freePort();
    const sizes = [scripts.start(meets(), placeOf(0, 2, port))];
    sizes.push(scripts.start(meets(1500), placeOf(1, 3, port)));
    const [first] = reportsOf(await ends(sizes));
    expect(first).toMatchObject({ code: 'ERR_MISMATCH', rank: 1 });
    expect((first as Error).message).toMatch(/rank 1 .* 3 ranks/);

    const twice = [0, 1, 1].map((rank) => scripts.start(meets(1500), placeOf(rank, 3, port)));
    const [leader] = reportsOf(await ends(twice));
    expect(leader).toMatchObject({ code: 'ERR_MISMATCH', rank: 1 });
    expect((leader as Error).message).toMatch(/two processes.*rank 1/);
  });

  it('says that the port is taken', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const { reports } = await scripts.run(meets(), placeOf(0, 2, port));
    await new Promise((resolve) => server.close(resolve));
    expect(reports[0]).toMatchObject({ code: 'ERR_SYSTEM' });
    expect((reports[0] as Error).message).toMatch(
      new RegExp(`listen.*127\\.0\\.0\\.1:${port}.* in use`),
    );
  });

  it('listens and calls on the address and the ports that were chosen', async () => {
    const own = '127.0.0.7';
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, own, resolve));
    const { port: taken } = other.address() as AddressInfo;
    const source = `
      const woken = new Promise((resolve) => process.once('SIGUSR2', resolve));
      const comm = await Communicator.world({ backend: 'tcp' });
      await comm.allReduce(Int32Array.of(1));
      const alive = setInterval(() => undefined, 1000);
      say('summed');
      await woken;
      clearInterval(alive);
      await comm.barrier();
      await comm.close();
    `;
    const chosen = {
      GRADLINK_INTERFACE: own,
      GRADLINK_PORTS: `${taken}-${Math.min(taken + 50, 65_535)}`,
      GRADLINK_RANKS_PER_NODE: '1',
    };
    const port = await freePort();
    const ranks = [0, 1, 2].map((rank) =>
      scripts.start(source, { ...placeOf(rank, 3, port, own), ...chosen }),
    );
    await Promise.all(ranks.map((one) => one.said('summed')));
    const open = ranks.map(({ child }) => socketsOf(child.pid));
    for (const { child } of ranks) child.kill('SIGUSR2');
    for (const one of await ends(ranks)) expect(one).toMatchObject(well);
    other.close();
    for (const [rank, sockets] of open.entries()) {
      expect(new Set(sockets.map(({ address }) => address))).toEqual(new Set([own]));
      const [listening, ...more] = sockets.filter(({ listens }) => listens);
      expect(more).toEqual([]);
      if (rank === 0) expect(listening?.port).toBe(port);
      else {
        expect(listening?.port).toBeGreaterThan(taken);
        expect(listening?.port).toBeLessThanOrEqual(taken + 50);
      }
    }
  });

  it('names the range of ports that has no free one, and a network that rank 0 is not in', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port: taken } = server.address() as AddressInfo;
    const port = await freePort();
    const full = { GRADLINK_PORTS: `${taken}-${taken}` };
    const first = scripts.start(meets(3000), placeOf(0, 2, port));
    const second = await scripts.run(meets(), { ...placeOf(1, 2, port), ...full });
    await new Promise((resolve) => server.close(resolve));
    expect(second.reports[0]).toMatchObject({ code: 'ERR_SYSTEM' });
    expect((second.reports[0] as Error).message).toContain(`GRADLINK_PORTS=${taken}-${taken}`);
    await first.ended;

    const elsewhere = { ...placeOf(0, 2, port, '10.77.77.77'), GRADLINK_INTERFACE: 'lo' };
    const { reports } = await scripts.run(meets(), elsewhere);
    expect(reports[0]).toMatchObject({ code: 'ERR_INVALID_ARG_VALUE' });
    const nowhere = { ...placeOf(0, 2, port), GRADLINK_INTERFACE: 'none0' };
    const unknown = await scripts.run(meets(), nowhere);
    expect(unknown.reports[0]).toMatchObject({ code: 'ERR_INVALID_ARG_VALUE' });
  });

  it('does not meet ranks that do not know the secret', async () => {
    const port = await freePort();
    // The stranger looks on when rank 0 has gone, and still says whom it met.
    const ranks = [1500, 3000].map((timeoutMs, rank) =>
      scripts.start(meets(timeoutMs), {
        ...placeOf(rank, 2, port),
        TORCHELASTIC_RUN_ID: `job ${String(rank)}`,
      }),
    );
    const [leader, stranger] = reportsOf(await ends(ranks));
    expect(leader).toMatchObject({ code: 'ERR_TIMEOUT', rank: 1 });
    expect(stranger).toMatchObject({ code: 'ERR_TIMEOUT', rank: 0 });
    expect((stranger as Error).message).toContain('another job');
  });

  it('crosses hosts, and names a host that is cut off', async (context) => {
    await onHosts(context, 'tw', async (name, address) => {
      const port = await freePort();
      const source = `
        const comm = await Communicator.world();
        report([comm.backend, (await comm.allReduce(Float64Array.of(comm.rank)))[0]]);
        say('met');
        let ended = 'done';
        while (ended === 'done') ended = await outcome(comm.barrier({ timeoutMs: 2000 }));
        report(ended);
        process.exit(0);
      `;
      const ranks = [0, 1, 2].map((rank) =>
        scripts.startUnder(
          [netns, 'enter', `${name}-${rank < 2 ? 'a' : 'b'}`],
          source,
          placeOf(rank, 3, port, address),
        ),
      );
      await Promise.all(ranks.map((one) => one.said('met')));
      cutLink(name);
      const ended = await ends(ranks);
      for (const { reports } of ended) expect(reports[0]).toEqual(['tcp', 3]);
      for (const rank of [0, 1]) {
        expect(ended[rank]!.reports[1]).toMatchObject({ code: 'ERR_TIMEOUT', rank: 2 });
      }
      expect(ended[2]!.reports[1]).toMatchObject({ code: 'ERR_TIMEOUT' });
    });
  });

  it('names a host that went silent on a rank that only waits for it, before any deadline', async (context) => {
    await onHosts(context, 'ts', async (name, address) => {
      const port = await freePort();
      const source = `
        const comm = await Communicator.world();
        await comm.barrier();
        say('met');
        const from = 1 - comm.rank;
        report(await outcome(comm.receive(new Float32Array(1), { from, timeoutMs: 600_000 })));
        process.exit(0);
      `;
      const ranks = [0, 1].map((rank) =>
        scripts.startUnder([netns, 'enter', `${name}-${rank === 0 ? 'a' : 'b'}`], source, {
          ...placeOf(rank, 2, port, address),
          GRADLINK_TCP_KEEPALIVE: '1',
        }),
      );
      await Promise.all(ranks.map((one) => one.said('met')));
      // What was sent last has been received: else it is sent again and again, and nothing asked.
      while (!['a', 'b'].every((side) => rests(`${name}-${side}`))) await setImmediate();
      cutLink(name);
      const ended = await ends(ranks);
      for (const rank of [0, 1]) {
        expect(ended[rank]!.reports[0]).toMatchObject({ code: 'ERR_PEER_LOST', rank: 1 - rank });
      }
    });
  });

  it.for([
    { asks: '1', outcome: 'done' },
    { asks: '0', outcome: { code: 'ERR_TIMEOUT' } },
  ])(
    'rests for longer than a firewall remembers it, asking every $asks s',
    async ({ asks, outcome }, context) => {
      await onHosts(
        context,
        'tf',
        async (name, address) => {
          const host = `${name}-b`;
          forgetRest(host, forgottenSeconds);
          const port = await freePort();
          const source = `
          const comm = await Communicator.world();
          await comm.barrier();
          const woken = new Promise((resolve) => process.once('SIGUSR2', resolve));
          const alive = setInterval(() => undefined, 1000);
          say('met');
          await woken;
          clearInterval(alive);
          report(await outcome(comm.barrier({ timeoutMs: 3000 })));
          process.exit(0);
        `;
          const ranks = [0, 1].map((rank) =>
            scripts.startUnder([netns, 'enter', `${name}-${rank === 0 ? 'a' : 'b'}`], source, {
              ...placeOf(rank, 2, port, address),
              GRADLINK_TCP_KEEPALIVE: asks,
            }),
          );
          await Promise.all(ranks.map((one) => one.said('met')));
          const before = firewallOf(host).packets;
          // A question a second comes in, and an answer to one of this host.
          const longEnough = ({ packets, connections }: ReturnType<typeof firewallOf>): boolean =>
            asks === '0' ? connections === 0 : packets - before > 3 * 2 * forgottenSeconds;
          while (!longEnough(firewallOf(host))) await setImmediate();
          for (const { child } of ranks) child.kill('SIGUSR2');
          for (const { reports } of await ends(ranks)) {
            expect(reports).toEqual([
              typeof outcome === 'string' ? outcome : expect.objectContaining(outcome),
            ]);
          }
        },
        missing(['nft'], true),
      );
    },
  );
});

const forgottenSeconds = 2;

/** Whether all that connections of a host wait for is the time to ask whether the other side is there. */
function rests(host: string): boolean {
  const { stdout } = spawnSync(netns, ['enter', host, 'ss', '-Htno'], { encoding: 'utf8' });
  const lines = stdout.split('\n').filter((line) => line !== '');
  return lines.length > 0 && lines.every((line) => line.includes('timer:(keepalive,'));
}
