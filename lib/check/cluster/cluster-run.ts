// The check of several hosts: each by itself in parallel, then pairs in rounds, then all together.
import type { CheckGiven } from '../check-options.js';
import { judgeByExpected, unmatched, type Expectations } from '../expect.js';
import { findingsVerdict } from '../machine.js';
import { excused, good, partOf, poor } from '../part.js';
import { sumArguments, sumParts } from '../sums.js';
import { rankTasks, type Fleet, type FleetHost } from './fleet.js';
import { withJobFleet } from './over-job.js';
import {
  better,
  hostFaults,
  judgedWays,
  pairOf,
  suspects,
  type HostFault,
  type Point,
  type HostWay,
} from './ways.js';
import { ringBound, slowPart } from './whole.js';
import { hostFindings, type HostSeen, type HostUnseen } from '../../doctor/hosts/compare.js';
import type { Ended } from '../../doctor/hosts/own-command.js';
import { GradlinkError } from '../../errors.js';
import { headOf, Steps, type RunEvents } from '../../measure/common-run.js';
import { failedCase, waivedCase } from '../../results/case.js';
import { parseReport } from '../../results/read-report.js';
import { hasMeasurement, type CaseResult, type Report } from '../../results/result.js';
import { mebibyte } from '../../results/units.js';
import { monotonicSeconds } from '../../time.js';

/** Eight GPUs take two minutes; a hung driver must not block the check. */
const machineTimeoutMs = 600_000;
const jobTimeoutMs = 300_000;

/** Messages before an answer: enough to fill a link, but few enough for one at a thousandth of its rate. */
const window = 4;
/** A report keeps all samples of all links, so with more hosts each gets fewer. */
const manyHosts = 16;
const fewSamples = 20;
/** Enough rounds to spread data from one host to all. */
const quickRounds = (hosts: number): number => Math.max(1, Math.ceil(Math.log2(hosts)));
/** Outlier links are measured again, at most twice, with no other traffic between the hosts. */
const mostAgain = 8;
const timesAgain = 2;

const sumSizes = [16 * 2 ** 10, 4 * mebibyte] as const;
/** GPU hosts are expected to exchange at least a gigabyte a second. */
const gpuSumSizes = [64 * 2 ** 10, 64 * mebibyte] as const;

/** The option for one GPU; empty for processors. */
const onlyGpu = (gpu?: string): string[] =>
  gpu === undefined ? [] : ['--gpus', gpu.replace('gpu:', '')];

/** Kinds of `gradlink pairs`; both directions of a bandwidth are separate. */
const kinds = [
  { kind: 'latency', bytes: 8 },
  { kind: 'bandwidth', bytes: mebibyte },
  { kind: 'bidirectional', bytes: mebibyte },
] as const;

interface ClusterSurroundings {
  readonly env: NodeJS.ProcessEnv;
  readonly expected?: Expectations;
}

/** Checks the hosts once. For the hosts of the running job every rank calls this, and rank 0 gets the cases. */
export async function runCluster(
  given: CheckGiven,
  shells: Fleet | undefined,
  { env, expected = {} }: ClusterSurroundings,
  events: RunEvents,
): Promise<Report> {
  const head = headOf('check', given);
  const check = async (fleet: Fleet, hosts: readonly string[]): Promise<readonly CaseResult[]> => {
    events.onStart?.(head, []);
    await fleet.enter();
    const all: CaseResult[] = [];
    const steps = new Steps(events, hosts.length + kinds.length + 3);
    const judged = (cases: readonly CaseResult[]): void => {
      const found = judgeByExpected(cases, head, expected, all);
      if (found.length > 0) events.onCases?.(found);
      all.push(...found);
    };
    await new ClusterCheck(fleet, hosts, given, env, steps).run(judged);
    return [...all, ...unmatched(all, expected)];
  };
  const cases =
    shells === undefined ? await withJobFleet(env, check) : await check(shells, given.hosts ?? []);
  return { ...head, cases: cases ?? [] };
}

/** The last line of a command's error output, which may name a page to read. */
const lastLine = (text: string): string =>
  text
    .trim()
    .split('\n')
    .filter((line) => !/^(?:See|Run gradlink) /.test(line))
    .at(-1) ?? '';

/** A host that cannot join, and the links on which it is not reached. */
interface CutOff extends HostUnseen {
  readonly ways: readonly { readonly from: string; readonly to: string; readonly error: string }[];
  /** Whether it reaches no other host; otherwise it is excluded so that the others can run. */
  readonly byItself: boolean;
}

/** The hosts to exclude so that all others reach one another, those with the most broken links first. */
export function cutOff(seen: readonly HostSeen[]): CutOff[] {
  let left = seen.flatMap(({ host, reached }) =>
    reached.flatMap(({ to, error }) => (error === undefined ? [] : [{ from: host, to, error }])),
  );
  const off: CutOff[] = [];
  while (left.length > 0) {
    const waysOf = (host: string): typeof left =>
      left.filter(({ from, to }) => from === host || to === host);
    const host = seen
      .map((one) => one.host)
      .reduce((one, other) => (waysOf(other).length >= waysOf(one).length ? other : one));
    const ways = waysOf(host);
    const partners = new Set(ways.map(({ from, to }) => (from === host ? to : from)));
    const byItself = seen.length > 2 && partners.size === seen.length - 1 - off.length;
    const reason = byItself
      ? `no host reaches it, or it reaches none: ${ways[0]!.error}`
      : `left out, because it and ${[...partners].join(', ')} do not reach each other`;
    off.push({ host, reason, ways, byItself });
    left = left.filter((way) => !ways.includes(way));
  }
  return off;
}

function partsOfHost(host: string, { stdout, stderr, code }: Ended): CaseResult[] {
  try {
    if (code === null || stdout === '') {
      const how = code === null ? 'was ended' : `ended with status ${String(code)}`;
      throw new GradlinkError('ERR_INTERNAL', `its check ${how}: ${lastLine(stderr)}`);
    }
    return parseReport(stdout, `the check of ${host}`).cases.map((one) => ({
      ...one,
      parameters: { host, ...one.parameters },
    }));
  } catch (error) {
    // Another version may write a report that this one cannot read.
    return [failedCase({ name: 'machine', parameters: { host } }, error)];
  }
}

/** The report of a command run as ranks, with their hosts. */
interface Joint {
  readonly report: Report;
  readonly hosts: readonly FleetHost[];
}

/** The links of a report by host, as requested; a failed run has none. */
function waysIn({ report, hosts }: Joint, directed: boolean, rail?: string): HostWay[] {
  const hostOf = (end: unknown): string =>
    hosts.find(({ name }, rank) => end === name || end === `rank ${String(rank)}`)?.host ??
    String(end);
  return report.cases.map((result) => {
    const { bytes = null, quantity = null } = result.parameters;
    const [from, to] = [
      hostOf(result.parameters.from ?? 'rank 0'),
      hostOf(result.parameters.to ?? 'rank 1'),
    ];
    const parameters = {
      ...(hasMeasurement(result) ? { from, to } : { between: 'hosts' }),
      bytes,
      quantity,
      ...(rail === undefined ? {} : { rail }),
    };
    const name = rail === undefined ? result.name : 'rail';
    return { from, to, directed, result: { ...result, name, parameters } };
  });
}

function failedWay(name: string, error: unknown): HostWay {
  const result = failedCase({ name, parameters: { between: 'hosts' } }, error);
  return { from: '', to: '', directed: false, result };
}

class ClusterCheck {
  /** Hosts that take part in jobs. */
  private joined: readonly FleetHost[] = [];
  private readonly off: CutOff[] = [];
  private readonly start = monotonicSeconds();

  constructor(
    private readonly fleet: Fleet,
    private readonly asked: readonly string[],
    private readonly given: CheckGiven,
    private readonly env: NodeJS.ProcessEnv,
    private readonly steps: Steps,
  ) {}

  /** @param add receives the cases of each step */
  async run(add: (cases: readonly CaseResult[]) => void): Promise<void> {
    this.joined = this.fleet.hosts;
    const seen = await this.look();
    add(this.alike(seen));
    this.steps.advance();
    const machines = await this.machines();
    add(machines);
    const points: Point[] = [];
    for (const figure of kinds) {
      points.push(await this.pairs(figure));
      this.steps.advance();
    }
    const gpus = this.sharedGpus(seen, machines);
    points.push(...(await this.rails(gpus)));
    this.steps.advance();
    const faults = hostFaults(
      this.joined.map(({ host }) => host),
      points,
    );
    const ways = judgedWays(points, new Set(faults.map(({ host }) => host)));
    add(ways);
    const isWayBad = faults.length > 0 || ways.some(({ status }) => status === 'error');
    add(await this.whole(points, isWayBad));
    const [gpu] = gpus;
    if (gpu !== undefined) add(await this.whole(points, isWayBad, gpu));
    this.steps.advance();
    add(this.hosts(faults));
  }

  /** Excludes hosts that the others cannot reach. */
  private async look(): Promise<readonly HostSeen[]> {
    const seen = await this.fleet.look();
    const left = new Set(this.joined.map(({ host }) => host));
    const off = cutOff(
      seen
        .filter(({ host }) => left.has(host))
        .map((one) => ({ ...one, reached: one.reached.filter(({ to }) => left.has(to)) })),
    );
    this.off.push(...off);
    this.leaveOut();
    return seen;
  }

  private leaveOut(): void {
    const answering = new Set(this.fleet.hosts.map(({ host }) => host));
    for (const { host } of this.off) answering.delete(host);
    this.joined = this.joined.filter(({ host }) => answering.has(host));
  }

  /** Compares facts that should be the same on all hosts. */
  private alike(seen: readonly HostSeen[]): CaseResult[] {
    if (seen.length < 2) return [];
    const findings = hostFindings(seen, []).filter(({ name }) => name !== 'hosts:reach');
    const verdict = findingsVerdict('hosts', findings, 'versions, hardware and clocks alike');
    return [
      partOf({ name: 'hosts', parameters: {} }, { samplesSeconds: [this.seconds()], verdict }),
    ];
  }

  private seconds(): number {
    return monotonicSeconds() - this.start;
  }

  private async machines(): Promise<CaseResult[]> {
    const { parts, gpus, quick, timeoutMs } = this.given;
    const args = [
      'check',
      ...['--format', 'json', '--parts', parts.join(','), '--timeout', String(timeoutMs / 1000)],
      ...(gpus === undefined ? [] : ['--gpus', gpus.join(',')]),
      ...(quick ? ['--quick'] : []),
    ];
    const task = { args, env: {}, patienceMs: machineTimeoutMs };
    const hosts = this.fleet.hosts.map(({ host }) => host);
    const outcomes = await this.fleet.run(new Map(hosts.map((host) => [host, task])), false);
    this.leaveOut();
    return hosts.flatMap((host) => {
      this.steps.advance();
      const outcome = outcomes.get(host);
      if (outcome === undefined || 'lost' in outcome) return [];
      return partsOfHost(host, outcome);
    });
  }

  /** Runs a command as ranks on these hosts. If a host is lost or unreachable, the rest repeat it. */
  private async together(
    args: readonly string[],
    among: () => readonly FleetHost[] = () => this.joined,
  ): Promise<Joint | undefined> {
    for (;;) {
      const hosts = among();
      if (hosts.length < 2) return undefined;
      const all = [...args, '--format', 'json', '--timeout', String(this.given.timeoutMs / 1000)];
      const outcomes = await this.fleet.run(rankTasks(hosts, all, jobTimeoutMs, this.env), true);
      const ended = hosts.map(({ host }) => outcomes.get(host));
      this.leaveOut();
      const failed = ended.filter((one) => one === undefined || 'lost' in one || one.code !== 0);
      if (failed.length > 0) await this.look();
      if (failed.length > 0 && among().length < hosts.length) continue;
      const [first] = ended;
      if (first !== undefined && 'stdout' in first && first.stdout !== '') {
        return { report: parseReport(first.stdout, `a report of ${hosts[0]!.host}`), hosts };
      }
      const why = failed.map((one) =>
        one !== undefined && 'stderr' in one ? lastLine(one.stderr) : '',
      );
      throw new GradlinkError(
        'ERR_INTERNAL',
        `${args.join(' ')}: ${why.find((text) => text !== '') ?? ''}`,
      );
    }
  }

  /** Measures the links of all pairs by one kind of figure; outliers are measured again on their own. */
  private async pairs(figure: (typeof kinds)[number]): Promise<Point> {
    try {
      let ways: Point = await this.exchange(figure);
      const pairs = new Map(suspects(ways).map((way) => [pairOf(way), way]));
      for (const [pair, first] of [...pairs].slice(0, mostAgain)) {
        for (let times = 0; times < timesAgain; times += 1) {
          const again = await this.exchange(figure, [first.from, first.to]);
          ways = ways.map((one) => {
            const other = again.find(({ from, to }) => from === one.from && to === one.to);
            return other === undefined ? one : better(one, other);
          });
          const left = suspects(ways).filter((way) => pairOf(way) === pair);
          // Still slow when alone, or not slow at all.
          if (left.every((way) => !again.includes(way))) break;
        }
      }
      return ways;
    } catch (error) {
      return [failedWay(figure.kind, error)];
    }
  }

  private async exchange(
    { kind, bytes }: (typeof kinds)[number],
    among?: readonly string[],
  ): Promise<HostWay[]> {
    const directed = kind === 'bandwidth';
    const found = await this.together(
      [
        ...['pairs', kind, '-b', String(bytes), '-e', String(bytes), '-W', String(window)],
        ...(this.joined.length > manyHosts ? ['-i', String(fewSamples)] : []),
        ...(this.given.quick ? ['--rounds', String(quickRounds(this.joined.length))] : []),
        ...(directed ? ['--each-way'] : []),
      ],
      () => this.joined.filter(({ host }) => among?.includes(host) ?? true),
    );
    return found === undefined ? [] : waysIn(found, directed);
  }

  /** The GPU ordinals that all hosts have, if all have NCCL. */
  private sharedGpus(seen: readonly HostSeen[], machines: readonly CaseResult[]): string[] {
    const gpusOf = (of: string): string[] =>
      machines.flatMap(({ name, parameters: { host, gpu } }) =>
        name === 'doctor' && host === of && typeof gpu === 'string' ? [gpu] : [],
      );
    const names = this.joined.map(({ host }) => host);
    if (seen.some(({ host, facts }) => names.includes(host) && facts.nccl === null)) return [];
    const [first = [], ...others] = names.map(gpusOf);
    const shared = first.filter((gpu) => others.every((its) => its.includes(gpu)));
    return this.given.quick ? shared.slice(0, 1) : shared;
  }

  /** Messages between the same GPU of all hosts, one GPU after another: each may use its own network. */
  private async rails(gpus: readonly string[]): Promise<Point[]> {
    const points: Point[] = [];
    for (const gpu of gpus) {
      try {
        const found = await this.together([...['p2p', '-b', '16', '-i', '5'], ...onlyGpu(gpu)]);
        if (found === undefined) break;
        points.push(waysIn(found, false, gpu));
      } catch (error) {
        points.push([failedWay('rail', error)]);
      }
    }
    return points;
  }

  /**
   * One all-reduce over all hosts, of processors or of one GPU each. If it is slow without a slow link, names the slow
   * part.
   */
  private async whole(
    points: readonly Point[],
    isWayBad: boolean,
    gpu?: string,
  ): Promise<CaseResult[]> {
    const isMeant = ({ name, parameters: { rail } }: CaseResult): boolean =>
      gpu === undefined ? name === 'bidirectional' : rail === gpu;
    // In both directions at once each link carries half of the bytes.
    const [ways, between] = gpu === undefined ? [2, 'hosts'] : [1, 'gpus of hosts'];
    const perByte = points
      .flat()
      .flatMap(({ result }) =>
        isMeant(result) && hasMeasurement(result)
          ? [(ways * result.statistics.medianSeconds) / result.bytes]
          : [],
      );
    const slowest = perByte.length === 0 ? undefined : Math.max(...perByte);
    const sumOver = async (part?: readonly FleetHost[]): Promise<CaseResult[]> => {
      const args = sumArguments(gpu === undefined ? sumSizes : gpuSumSizes);
      const found = await this.together([...args, '--iters', '3', '-w', '1', ...onlyGpu(gpu)], () =>
        this.joined.filter((one) => part?.includes(one) ?? true),
      );
      if (found === undefined) return [];
      // A machine's memory bandwidth says nothing about a network.
      const cases = found.report.cases.map((one) =>
        hasMeasurement(one) ? { ...one, limit: null } : one,
      );
      const { length } = found.hosts;
      return sumParts({ cases }, between, length, ({ bytes }) =>
        slowest === undefined ? undefined : ringBound(length, bytes, slowest),
      );
    };
    const isSlow = (cases: readonly CaseResult[]): boolean =>
      cases.some((one) => one.status === 'error' && hasMeasurement(one) && one.check.passed);
    try {
      let cases = await sumOver();
      if (isWayBad) return cases.map((one) => excused(one, 'a way or a host is bad'));
      for (let times = 0; times < timesAgain && isSlow(cases); times += 1) cases = await sumOver();
      if (!isSlow(cases)) return cases;
      const part = await slowPart(this.joined, async (half) => isSlow(await sumOver(half)));
      const which =
        part.length === this.joined.length
          ? 'in neither half by itself'
          : `among ${part.map(({ host }) => host).join(', ')}`;
      return cases.map((one) =>
        one.status === 'error' ? { ...one, reason: `${one.reason}; ${which}` } : one,
      );
    } catch (error) {
      const { length: ranks } = this.joined;
      return [failedCase({ name: 'all_reduce', parameters: { between, ranks } }, error)];
    }
  }

  /** A part for each requested host: whether it answers, is reachable, and has links as good as the others. */
  private hosts(faults: readonly HostFault[]): CaseResult[] {
    const lost = (reason: string): GradlinkError => new GradlinkError('ERR_PEER_LOST', reason);
    const reach = this.off
      .filter(({ byItself }) => !byItself)
      .flatMap(({ ways }) => ways)
      .map(({ from, to, error }) =>
        failedCase({ name: 'reach', parameters: { from, to } }, lost(`no connection: ${error}`)),
      );
    const reasonOf = (host: string, among: readonly HostUnseen[]): string | undefined =>
      among.find((one) => one.host === host)?.reason;
    const hosts = this.asked.map((host): CaseResult => {
      const identity = { name: 'host', parameters: { host } };
      // If the host is at fault, or was lost later, its links are not blamed.
      const fault = reasonOf(host, faults);
      const gone = reasonOf(host, [
        ...this.off.filter(({ byItself }) => byItself),
        ...this.fleet.unseen,
      ]);
      const left = reasonOf(host, this.off);
      if (fault === undefined && gone !== undefined) return failedCase(identity, lost(gone));
      if (fault === undefined && left !== undefined) return waivedCase(identity, left);
      const verdict =
        fault === undefined
          ? good('it answers, and its links are as good as those of the others')
          : poor(fault, 'its network interface, cable or switch port, or other work on it');
      return partOf(identity, { samplesSeconds: [this.seconds()], verdict });
    });
    return [...reach, ...hosts];
  }
}
