// The comparison of a run's hosts as text.
import type { HostsComparison, SlowestHost } from '../results/hosts.js';
import { bandwidthText, sidedText, sizeText, timeText } from '../results/units.js';

/** `rank 6`, `ranks 4 to 7`, `ranks 0, 2, 4`. */
function ranksText(ranks: readonly number[]): string {
  const [first = 0, ...rest] = ranks;
  if (rest.length === 0) return `rank ${first}`;
  const last = rest.at(-1) ?? first;
  const inARow = last - first === rest.length;
  return `ranks ${inARow ? `${first} to ${last}` : ranks.join(', ')}`;
}

const deeds = { copies: 'in copies of its own memory', messages: 'in messages with the others' };

function chance(margin: number): string {
  return `below ${margin} times, in the median and in the fastest, it may be chance`;
}

function hostLine(slowest: SlowestHost, { hosts, margin }: HostsComparison): string {
  const { host, ranks, by, times, standsOut } = slowest;
  const others = hosts.length === 2 ? 'that of the other host' : 'the median of the other hosts';
  const figure = `${sidedText(times, 1, [margin])} times ${others}`;
  return standsOut
    ? `slowest host: ${host} (${ranksText(ranks)}), ${figure} ${deeds[by]}`
    : `slowest host: no host stands out (at most ${host}, ${figure} ${deeds[by]}; ${chance(margin)})`;
}

function linkLine(comparison: HostsComparison): string[] {
  const { slowestLink, linkCount, margin, messageBytes, memory } = comparison;
  if (slowestLink === null) return [];
  const { hosts, messageSeconds, bytesPerSecond, times, standsOut, asAllOf } = slowestLink;
  const way = hosts.join(' - ');
  const what = `${sizeText(messageBytes)} of ${memory === 'gpu' ? 'GPU' : 'host'} memory`;
  const took = `${timeText(messageSeconds)} for ${what} there and back, ${bandwidthText(bytesPerSecond)}`;
  if (times === null) return [`slowest link: ${way} is the only one (${took})`];
  const figure = `${sidedText(times, 1, [margin])} times the median of the other ${linkCount - 1}`;
  if (!standsOut) {
    return [
      `slowest link: no link stands out (at most ${way}, ${figure}: ${took}; ${chance(margin)})`,
    ];
  }
  const like = asAllOf === null ? '' : `; all links of ${asAllOf} are slow`;
  return [`slowest link: ${way}, ${figure} (${took})${like}`];
}

/** At most two lines: the slowest host, and the slowest link. */
export function hostLines(comparison: HostsComparison | undefined): string[] {
  if (comparison === undefined) return [];
  const { slowestHost } = comparison;
  return [
    ...(slowestHost === null ? [] : [hostLine(slowestHost, comparison)]),
    ...linkLine(comparison),
  ];
}
