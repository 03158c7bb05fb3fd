// What TCP of this host sent, and what of it was lost on the way: the kernel counts both for all its connections.
import { readFileSync } from 'node:fs';

import { levelOf, losses, type Level } from '../../results/beside.js';
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
  readonly level: Level;
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
  return {
    share,
    level: again < leastAgain ? 'good' : levelOf(share, losses),
    text: `${percentText(share, [losses.fair, losses.poor])} of the segments from ${host} sent again`,
    cause: `packets are lost between ${ends.map((end) => end.host).join(' and ')}: cable, port, switch or an interface whose queue overflows`,
  };
}
