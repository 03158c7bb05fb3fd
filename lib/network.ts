// Where a process listens and connects from: the interface of GRADLINK_INTERFACE and the ports of GRADLINK_PORTS. All
// sockets of lib/ use it; ranks over TCP get the same through useTcp.
import { once } from 'node:events';
import { BlockList, isIP, type Server, type TcpNetConnectOpts } from 'node:net';
import { networkInterfaces, type NetworkInterfaceInfo } from 'node:os';

import { argumentError, GradlinkError } from './errors.js';

export const interfaceVariable = 'GRADLINK_INTERFACE';
export const portsVariable = 'GRADLINK_PORTS';

/** Both inclusive. */
export interface PortRange {
  readonly first: number;
  readonly last: number;
}

/** The address of this host that was chosen. */
export interface ChosenAddress {
  readonly interface: string;
  readonly address: string;
  /** The matching word of GRADLINK_INTERFACE. */
  readonly by: string;
}

/** Absent: any address, and a port chosen by the system. */
export interface Network {
  readonly chosen?: ChosenAddress;
  readonly ports?: PortRange;
}

type Env = Readonly<Record<string, string | undefined>>;

interface OwnAddress extends Pick<NetworkInterfaceInfo, 'address' | 'cidr' | 'internal'> {
  readonly interface: string;
}

const mostPort = 65_535;

export const loopbackAddress = '127.0.0.1';

export function isLoopback(address: string): boolean {
  return address === 'localhost' || address === '::1' || address.startsWith('127.');
}

/** The addresses of all interfaces that are up, IPv4 first; without scoped ones, which other hosts cannot use. */
function addressesHere(): readonly OwnAddress[] {
  const all = Object.entries(networkInterfaces()).flatMap(([name, infos = []]) =>
    infos
      .filter(({ scopeid }) => scopeid === undefined || scopeid === 0)
      .map((info) => ({ ...info, interface: name })),
  );
  return [
    ...all.filter(({ family }) => family === 'IPv4'),
    ...all.filter(({ family }) => family !== 'IPv4'),
  ];
}

/** `eth0 (10.1.0.5/16), lo (127.0.0.1/8)` */
export function interfacesHere(): string {
  const names = new Map<string, string[]>();
  for (const { interface: name, cidr, address } of addressesHere()) {
    names.set(name, [...(names.get(name) ?? []), cidr ?? address]);
  }
  return [...names].map(([name, cidrs]) => `${name} (${cidrs.join(', ')})`).join(', ');
}

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 6 ? 'ipv6' : 'ipv4');

/** Undefined if it is not an address with a prefix. */
function subnetOf(text: string): BlockList | undefined {
  const [, address = '', prefix] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const bits = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1;
  if (bits < 0 || Number(prefix ?? bits) > bits) return undefined;
  const subnet = new BlockList();
  subnet.addSubnet(address, Number(prefix ?? bits), familyOf(address));
  return subnet;
}

const holds = (subnet: BlockList | undefined, address: string): boolean =>
  subnet?.check(address, familyOf(address)) === true;

/** The first address of this host that matches a word of GRADLINK_INTERFACE. */
function meantBy(word: string, here: readonly OwnAddress[]): ChosenAddress | undefined {
  const subnet = subnetOf(word);
  const found = here.find((own) =>
    subnet === undefined ? own.interface === word : holds(subnet, own.address),
  );
  if (found !== undefined) return { interface: found.interface, address: found.address, by: word };
  // All of 127.0.0.0/8 is this host, though the interface has one address.
  const loopback = here.find(({ internal, cidr }) => internal && holds(subnetOf(cidr ?? ''), word));
  if (isIP(word) === 0 || loopback === undefined) return undefined;
  return { interface: loopback.interface, address: word, by: word };
}

/** @param source the variable or option, for errors */
export function chooseAddress(
  value: string | undefined,
  source = interfaceVariable,
): ChosenAddress | undefined {
  if (value === undefined || value === '') return undefined;
  const words = value.split(',').map((word) => word.trim());
  const wrong = words.find(
    (word) => word === '' || (word.includes('/') && subnetOf(word) === undefined),
  );
  const here = wrong === undefined ? addressesHere() : [];
  for (const word of words) {
    const found = meantBy(word, here);
    if (found !== undefined) return found;
  }
  throw argumentError(
    'ERR_INVALID_ARG_VALUE',
    source,
    `an interface of this host or several with commas, or a network it is in such as 10.1.0.0/16; there are ${interfacesHere()};`,
    value,
  );
}

export function readPorts(
  value: string | undefined,
  source = portsVariable,
): PortRange | undefined {
  if (value === undefined || value === '') return undefined;
  const [, first, last] = /^(\d{1,5})-(\d{1,5})$/.exec(value) ?? [];
  const range = { first: Number(first ?? 0), last: Number(last ?? 0) };
  if (range.first >= 1 && range.first <= range.last && range.last <= mostPort) return range;
  throw argumentError(
    'ERR_INVALID_ARG_VALUE',
    source,
    `two ports from 1 to ${mostPort}, the lower one first, such as 40000-40100`,
    value,
  );
}

/** @throws TypeError ERR_INVALID_ARG_VALUE, which lists the interfaces */
export function readNetwork(env: Env = process.env): Network {
  const chosen = chooseAddress(env[interfaceVariable]);
  const ports = readPorts(env[portsVariable]);
  return { ...(chosen === undefined ? {} : { chosen }), ...(ports === undefined ? {} : { ports }) };
}

export function isOwnAddress(address: string): boolean {
  return addressesHere().some((own) => own.address === address);
}

/** The addresses at which other hosts may reach this one. */
export function reachableAddresses({ chosen }: Network): string[] {
  if (chosen !== undefined) return [chosen.address];
  return addressesHere()
    .filter(({ internal }) => !internal)
    .map(({ address }) => address);
}

/**
 * Listens on the first free port of the range.
 *
 * @param own a loopback address for servers of this host only
 * @returns the port
 * @throws GradlinkError ERR_SYSTEM that names the range if no port is free
 */
export async function listenOn(
  server: Server,
  { chosen, ports }: Network,
  own?: string,
): Promise<number> {
  const address = own ?? chosen?.address;
  const { first, last } = ports ?? { first: 0, last: 0 };
  for (let port = first; ; ++port) {
    try {
      server.listen({ port, ...(address === undefined ? {} : { host: address }) });
      await once(server, 'listening');
      const bound = server.address();
      return typeof bound === 'object' && bound !== null ? bound.port : port;
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException;
      // A port below 1024 may be free but need privileges.
      if (ports === undefined || (code !== 'EADDRINUSE' && code !== 'EACCES')) throw cause;
      if (port < last) continue;
      throw new GradlinkError(
        'ERR_SYSTEM',
        `no port of ${portsVariable}=${first}-${last} can be had at ${address ?? 'all addresses'}: ${(cause as Error).message}`,
        { cause },
      );
    }
  }
}

/**
 * Connection options to another host from the chosen address; loopback addresses need none.
 *
 * @throws Error if the chosen address cannot reach the host's
 */
export function callFrom({ chosen }: Network, host: string, port: number): TcpNetConnectOpts {
  if (chosen === undefined || isLoopback(host)) return { host, port };
  const family = isIP(chosen.address);
  if (isIP(host) !== 0 && isIP(host) !== family) {
    throw new Error(`${interfaceVariable} chooses ${chosen.address}, which is of another family`);
  }
  return { host, port, family, localAddress: chosen.address };
}
