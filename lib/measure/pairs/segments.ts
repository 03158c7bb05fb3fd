// TCP segments sent and lost by this host: the kernel counts them for all connections.
import { readFileSync } from 'node:fs';

import { levelOf, losses, type Level } from '../../results/beside.js';
import { percentText } from '../../results/units.js';

/** Counts over some time. */
export interface Segments {
  readonly sent: number;
  /** Retransmissions, without those that the receiver already had: its answer was late, as with busy cores. */
  readonly again: number;
}

/** With fewer, one lost segment may be chance. */
const leastSent = 1000;
const leastAgain = 5;

/** A counter in the format of /proc/net: a line of names, then a line of values. */
function counterOf(tables: string, table: string, name: string): number | undefined {
  const [names = [], values = []] = tables
    .split('\n')
    .filter((line) => line.startsWith(`${table}: `))
    .map((line) => line.split(' '));
  const at = names.indexOf(name);
  return at < 0 ? undefined : Number(values[at]);
}

/** From the texts of snmp and netstat; undefined without such counters. */
export function segmentsIn(snmp: string, netstat: string): Segments | undefined {
  const sent = counterOf(snmp, 'Tcp', 'OutSegs');
  const again = counterOf(snmp, 'Tcp', 'RetransSegs');
  if (sent === undefined || again === undefined) return undefined;
  const needless =
    counterOf(netstat, 'TcpExt', 'TCPDSACKRecvSegs') ??
    counterOf(netstat, 'TcpExt', 'TCPDSACKRecv') ??
    0;
  return { sent, again: again - needless };
}

/** Since the host's boot; undefined if unknown. */
export function readSegments(): Segments | undefined {
  const textOf = (name: string): string => readFileSync(`/proc/net/${name}`, 'utf8');
  try {
    return segmentsIn(textOf('snmp'), textOf('netstat'));
  } catch {
    return undefined;
  }
}

/** The host at one end of a pair. */
export interface End {
  readonly host: string;
  readonly segments: Segments | undefined;
}

export interface Loss {
  /** Of the host with the most retransmissions. */
  readonly share: number;
  readonly level: Level;
  readonly text: string;
  readonly cause: string;
}

/** The losses of two hosts; undefined if unknown, or if too little was sent. */
export function lossBetween(ends: readonly [End, End]): Loss | undefined {
  const told = ends.flatMap(({ host, segments }) =>
    segments === undefined || segments.sent < leastSent
      ? []
      : [{ host, ...segments, share: Math.max(0, segments.again) / segments.sent }],
  );
  const [first, second = first] = told;
  if (first === undefined || second === undefined) return undefined;
  const { host, share, again } = second.share > first.share ? second : first;
  return {
    share,
    level: again < leastAgain ? 'good' : levelOf(share, losses),
    text: `${percentText(share, [losses.fair, losses.poor])} of the segments from ${host} sent again`,
    cause: `packets are lost between ${ends.map((end) => end.host).join(' and ')}: cable, port, switch or an interface whose queue overflows`,
  };
}
