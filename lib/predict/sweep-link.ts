// Derives a link from a measured sweep of a collective.
import { argumentError } from '../errors.js';
import { aString } from '../checks.js';
import { reportKind } from '../results/kinds.js';
import { hasMeasurement, type Report } from '../results/result.js';
import { fewestPoints, fitLink, type Link } from './link.js';

/** The successive messages of a collective over p ranks, and their share of its size. */
interface Steps {
  readonly count: (ranks: number) => number;
  readonly part: (ranks: number) => number;
}

/**
 * All-reduce, all-gather and reduce-scatter count as rings, whatever algorithm ran, because predictions assume the
 * same.
 */
const stepsOf: Readonly<Record<string, Steps>> = {
  all_reduce: { count: (p) => 2 * (p - 1), part: (p) => 1 / p },
  all_gather: { count: (p) => p - 1, part: (p) => 1 / p },
  reduce_scatter: { count: (p) => p - 1, part: (p) => 1 / p },
  sendrecv: { count: () => 1, part: () => 1 },
};

/** A link with its source. */
export interface MeasuredLink extends Link {
  /** The measured collective. */
  readonly collective: string;
  /** Number of ranks. */
  readonly ranks: number;
}

/** Where a sweep was measured; reports of older versions do not tell their hosts. */
function originOf({ run, environment, gpus }: Report, ranks: number): Link['origin'] {
  const { ranksPerNode } = run.options;
  const hosts =
    run.options.hosts ??
    (typeof ranksPerNode === 'number' ? Math.ceil(ranks / ranksPerNode) : undefined);
  if (typeof hosts !== 'number') return undefined;
  const of = `${String(ranks)} ranks`;
  if (hosts > 1) return { text: `${of} on ${String(hosts)} hosts`, network: true };
  if (gpus !== undefined) {
    const count = gpus.devices.length;
    return { text: `${of} on GPUs of one host`, network: false, gpus: Math.max(count, ranks) };
  }
  const cores = environment.onlineCores;
  return {
    text: `${of} in one memory (${environment.cpuModel}, ${String(cores)} cores)`,
    network: false,
    cores,
  };
}

/**
 * The link that explains a sweep: its first successful collective, number of ranks, element type and placement.
 *
 * @throws TypeError if the report has no sweep of a known collective with at least three sizes and two ranks
 */
export function linkOfSweep(report: Report, name: string): MeasuredLink {
  reportKind(report, 'report');
  aString(name, 'name');
  const usable = report.cases
    .filter(hasMeasurement)
    .filter(
      ({ status, name: collective, parameters }) =>
        status === 'ok' && collective in stepsOf && Number(parameters.ranks) >= 2,
    );
  const [first] = usable;
  if (first === undefined) {
    throw argumentError(
      'ERR_INVALID_ARG_VALUE',
      name,
      `a sweep of ${Object.keys(stepsOf).join(', ')} with two ranks or more`,
      {
        text: `cases of ${[...new Set(report.cases.map((one) => one.name))].join(', ') || 'none'}`,
      },
    );
  }
  const same = ['ranks', 'dtype', 'op', 'placement', 'shared'] as const;
  const { count, part } = stepsOf[first.name]!;
  const ranks = Number(first.parameters.ranks);
  const points = usable
    .filter(
      (one) =>
        one.name === first.name &&
        same.every((key) => one.parameters[key] === first.parameters[key]),
    )
    .map(({ bytes, statistics }) => ({
      bytes: bytes * part(ranks),
      seconds: statistics.medianSeconds / count(ranks),
    }));
  const sizes = new Set(points.map(({ bytes }) => bytes)).size;
  if (sizes < fewestPoints) {
    throw argumentError(
      'ERR_INVALID_ARG_VALUE',
      name,
      `a sweep of at least ${String(fewestPoints)} sizes (collectives ${first.name} -b 1K -e 64M -f 2)`,
      { text: String(sizes) },
    );
  }
  const origin = originOf(report, ranks);
  return {
    ...fitLink(points),
    collective: first.name,
    ranks,
    ...(origin === undefined ? {} : { origin }),
  };
}
