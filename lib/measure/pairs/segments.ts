// What TCP of this host sent, and what of it was lost on the way: the kernel counts both for all its connections.
import { readFileSync } from 'node:fs';

import type { VerdictLevel } from '../../results/result.js';
import { percentText } from '../../results/units.js';

/** In some time. */
export interface Segments {
  readonly sent: number;
  /** Sent again, without those that the receiver had already: its answer was late, which busy cores do. */
  readonly again: number;
}

/** Fewer tell of no share as small as that: one lost segment may be chance. */
const leastSent = 1000;
const leastAgain = 5;

/**
 * IEEE 802.3 asks for no more than a wrong bit in 1e12, which is a frame in some eighty million. Whatever a healthy network
 * loses beyond that is dropped by a full queue. At a round trip of 0.1 ms one connection gets to 4.5 Gbit/s where 0.1 % is
 * lost, and to 2 Gbit/s where 0.5 % is (Mathis et al. 1997, of Reno).
 */
const fairShare = 0.001;
const poorShare = 0.005;

/** A counter of tables as /proc/net has them: a line of names, then a line of values. */
function counterOf(tables: string, table: string, name: string): number | undefined {
  const [names = [], values = []] = tables
    .split('\n')
    .filter((line) => line.startsWith(`${table}: `))
    .map((line) => line.split(' '));
  const at = names.indexOf(name);
  return at < 0 ? undefined : Number(values[at]);
}

/** Of the texts of snmp and netstat; undefined where they have no such counters. */
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

/** Since the host came up; undefined where its kernel does not tell. */
export function readSegments(): Segments | undefined {
  const textOf = (name: string): string => readFileSync(`/proc/net/${name}`, 'utf8');
  try {
    return segmentsIn(textOf('snmp'), textOf('netstat'));
  } catch {
    return undefined;
  }
}

/** A host at one end of a pair. */
export interface End {
  readonly host: string;
  readonly segments: Segments | undefined;
}

export interface Loss {
  /** Of the host that sent most again. */
  readonly share: number;
  readonly level: VerdictLevel;
  readonly text: string;
  readonly cause: string;
}

/** What two hosts lost; undefined where neither tells, or too little was sent. */
export function lossBetween(ends: readonly [End, End]): Loss | undefined {
  const told = ends.flatMap(({ host, segments }) =>
    segments === undefined || segments.sent < leastSent
      ? []
      : [{ host, ...segments, share: Math.max(0, segments.again) / segments.sent }],
  );
  const [first, second = first] = told;
  if (first === undefined || second === undefined) return undefined;
  const { host, share, again } = second.share > first.share ? second : first;
  const loses = again >= leastAgain && share >= fairShare;
  return {
    share,
    level: !loses ? 'good' : share < poorShare ? 'fair' : 'poor',
    text: `${percentText(share)} of the segments from ${host} sent again`,
    cause: `packets are lost between ${ends.map((end) => end.host).join(' and ')}: cable, port, switch or an interface whose queue overflows`,
  };
}
