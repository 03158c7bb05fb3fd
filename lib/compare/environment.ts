// The differences between the machines of two runs.
import { listOf } from '../checks.js';
import { reportKind } from '../results/kinds.js';
import type { EnvironmentInfo, Report } from '../results/result.js';
import type { EnvironmentChange } from './result.js';

/** Facts that explain a difference in time by themselves. Free memory changes constantly, so it is not among them. */
const decisive: readonly (keyof EnvironmentInfo)[] = [
  'cpuModel',
  'availableCores',
  'onlineCores',
  'simdLevel',
  'threads',
  'lastLevelCacheBytes',
  'architecture',
];
const informative: readonly (keyof EnvironmentInfo)[] = [
  'memoryBytes',
  'operatingSystem',
  'kernel',
  'nodeVersion',
];

/** Variables that a launcher sets anew for each job. */
const ofOneJob = /^(GRADLINK_(MEMBER|NAME|KEPT|DEBUG|BINARY)$|OMPI_COMM_WORLD_|PMI_)/;

function shown(value: unknown): string {
  if (value === null || value === undefined) return 'unknown';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

type Facts = Map<string, { readonly value: string; readonly decisive: boolean }>;

function factsOf({ environment, gpus }: Report): Facts {
  const facts: Facts = new Map();
  for (const name of decisive) facts.set(name, { value: shown(environment[name]), decisive: true });
  for (const name of informative)
    facts.set(name, { value: shown(environment[name]), decisive: false });
  for (const [name, value] of Object.entries(environment.variables)) {
    if (!ofOneJob.test(name)) facts.set(`variables.${name}`, { value, decisive: true });
  }
  if (gpus !== undefined) {
    const devices = gpus.devices.map(
      ({ name, pcieGeneration, pcieWidth, activeLinks }) =>
        `${name} (PCIe ${shown(pcieGeneration)} x${shown(pcieWidth)}, ${shown(activeLinks)} NVLinks)`,
    );
    facts.set('gpus.devices', { value: devices.join(', '), decisive: true });
    facts.set('gpus.ncclVersion', { value: shown(gpus.ncclVersion), decisive: true });
    facts.set('gpus.driverRelease', { value: shown(gpus.driverRelease), decisive: true });
  }
  return facts;
}

const reportList = listOf(reportKind);

/** Facts that differ between some runs of the two sides, the decisive ones first. */
export function environmentChanges(
  base: readonly Report[],
  next: readonly Report[],
): EnvironmentChange[] {
  reportList(base, 'base');
  reportList(next, 'next');
  const gather = (reports: readonly Report[]): Map<string, Set<string>> => {
    const values = new Map<string, Set<string>>();
    for (const report of reports) {
      for (const [name, { value }] of factsOf(report)) {
        values.set(name, (values.get(name) ?? new Set()).add(value));
      }
    }
    return values;
  };
  const weights = new Map(
    [...base, ...next].flatMap((report) =>
      [...factsOf(report)].map(([name, fact]): [string, boolean] => [name, fact.decisive]),
    ),
  );
  const [old, now] = [gather(base), gather(next)];
  const text = (values: ReadonlySet<string> | undefined): string =>
    values === undefined ? 'not set' : [...values].sort().join(' or ');
  return [...weights]
    .map(([name, isDecisive]) => ({
      name,
      base: text(old.get(name)),
      next: text(now.get(name)),
      decisive: isDecisive,
    }))
    .filter((change) => change.base !== change.next)
    .sort((a, b) => Number(b.decisive) - Number(a.decisive));
}
