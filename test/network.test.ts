// Which address and which ports a process takes, by GRADLINK_INTERFACE and GRADLINK_PORTS.
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server } from 'node:net';
import { networkInterfaces } from 'node:os';

import { afterEach, describe, expect, it } from 'vitest';

import {
  callFrom,
  chooseAddress,
  listenOn,
  reachableAddresses,
  readNetwork,
  readPorts,
} from '../lib/network.js';

const loopback = { interface: 'lo', address: '127.0.0.1' };
const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

function server(): Server {
  const made = createServer();
  servers.push(made);
  return made;
}

/** A port that somebody has, on all addresses. */
async function taken(): Promise<number> {
  const other = server().listen(0);
  await once(other, 'listening');
  return (other.address() as AddressInfo).port;
}

describe('an interface', () => {
  it.each([
    ['lo', loopback],
    ['127.0.0.0/8', loopback],
    ['127.0.0.1/32', loopback],
    // The first that this host has.
    ['none0, lo', loopback],
    ['10.250.251.0/24,lo', loopback],
    ['127.0.0.7', { interface: 'lo', address: '127.0.0.7' }],
  ])('is chosen by %s', (value, expected) => {
    expect(chooseAddress(value)).toMatchObject(expected);
  });

  it('with several addresses has that of the network, and of IPv4 unless IPv6 is named', () => {
    const six = networkInterfaces()['lo']?.some(({ family }) => family === 'IPv6') === true;
    if (six) expect(chooseAddress('::1/128')).toMatchObject({ interface: 'lo', address: '::1' });
    expect(chooseAddress('lo')?.address).toBe('127.0.0.1');
  });

  it.each([
    'none0',
    '10.250.251.0/24',
    '10.250.251.252',
    '127.0.0.1/33',
    'lo/8',
    '1/8',
    'none0,',
    ',lo',
  ])('that is not here, %s, is an error that says what is', (value) => {
    const choose = (): unknown => chooseAddress(value);
    expect(choose).toThrow(expect.objectContaining({ code: 'ERR_INVALID_ARG_VALUE' }));
    expect(choose).toThrow(/lo \(127\.0\.0\.1\/8.* GRADLINK_INTERFACE/);
  });

  it('is any where nobody says', () => {
    expect(readNetwork({ GRADLINK_INTERFACE: '', GRADLINK_PORTS: '' })).toEqual({});
    expect(reachableAddresses({})).not.toContain('127.0.0.1');
    expect(callFrom({}, 'node1', 7)).toEqual({ host: 'node1', port: 7 });
  });

  it('is what a call comes from, and only reaches its own family', async () => {
    const network = readNetwork({ GRADLINK_INTERFACE: '127.0.0.7' });
    // Loopback stays loopback; of other hosts none is here to be called.
    expect(callFrom(network, 'localhost', 7)).toEqual({ host: 'localhost', port: 7 });
    expect(callFrom(network, 'node1', 7)).toMatchObject({ localAddress: '127.0.0.7', family: 4 });
    expect(() => callFrom(network, 'fd00::1', 7)).toThrow(/family/);
    const port = await listenOn(server(), network);
    const caller = connect({ ...callFrom(network, '0.0.0.0', port), host: '127.0.0.7' });
    await once(caller, 'connect');
    expect(caller).toMatchObject({ localAddress: '127.0.0.7', remoteAddress: '127.0.0.7' });
    caller.destroy();
  });
});

describe('a range of ports', () => {
  it.each(['40000', '40100-40000', '0-10', '1-65536', 'a-b', '40000-40100,50000', '-1-5'])(
    'is not %s',
    (value) => {
      const read = (): unknown => readPorts(value);
      expect(read).toThrow(expect.objectContaining({ code: 'ERR_INVALID_ARG_VALUE' }));
      expect(read).toThrow(/GRADLINK_PORTS/);
    },
  );

  it.each([
    ['40000-40000', 40000, 40000],
    ['1-65535', 1, 65535],
  ])('is %s', (value, first, last) => {
    expect(readPorts(value)).toEqual({ first, last });
  });

  it('gives the first port that nobody has', async () => {
    const first = await taken();
    const ports = { first, last: Math.min(first + 50, 65_535) };
    const port = await listenOn(server(), { ports });
    expect(port).toBeGreaterThan(first);
    expect(port).toBeLessThanOrEqual(ports.last);
  });

  it('without a free port is an error that names it', async () => {
    const port = await taken();
    const listening = listenOn(server(), { ports: { first: port, last: port } });
    await expect(listening).rejects.toMatchObject({
      code: 'ERR_SYSTEM',
      message: expect.stringContaining(`GRADLINK_PORTS=${port}-${port}`) as string,
    });
  });
});
