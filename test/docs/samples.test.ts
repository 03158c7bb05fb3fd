// The output that guides show is what the program prints of these figures: in README.md and docs/commands.md to the
// digit, else in all but the figures. That of `gradlink train` is held in test/report/train-tables.test.ts, that of
// `gradlink p2p` in test/gpu/p2p-links.test.ts.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, it } from 'vitest';

import '../support/known-limits.js';
import { gpuFindings } from '../../lib/doctor/gpus.js';
import {
  addonFindings,
  hugePagesFinding,
  ptraceFinding,
  sharedMemoryFinding,
} from '../../lib/doctor/host.js';
import { coresFinding, limitsFinding, memoryFinding } from '../../lib/doctor/limits.js';
import { mpiFinding } from '../../lib/doctor/mpi.js';
import type { Topology } from '../../lib/doctor/types.js';
import { doctorLines, topologyLines } from '../../lib/report/doctor-lines.js';
import { hostLines } from '../../lib/report/host-lines.js';
import { chartsOf } from '../../lib/report/charts/index.js';
import { arraysLine, iterationLine, reportSummary } from '../../lib/report/index.js';
import { toSvg } from '../../lib/report/page/svg.js';
import { storeVolume } from '../../lib/results/bandwidth.js';
import { completeCase, errorCheck } from '../../lib/results/case.js';
import { containerLimits } from '../../lib/results/container-limits.js';
import { hasMeasurement, type Report } from '../../lib/results/result.js';
import { gradlink } from '../support/cli.js';
import { uniform } from '../support/comparing.js';
import { folderOfEachTest } from '../support/folders.js';
import { environment, report } from '../support/reports.js';
import { sweepRun } from '../support/page-runs.js';
import { expectSample, shapeOf } from '../support/samples.js';
import { root } from '../support/walks.js';

let folder = '';
folderOfEachTest((made) => (folder = made));

function written(name: string, text: string): string {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
}

const bytes = 240_165_536;
const seconds = [0.067291, 0.066626, 0.065665, 0.066985, 0.059922];
/** From times with more digits than were printed. */
const printedRates = [5.353569, 5.407058, 5.486189, 5.378053, 6.011915];
const iterations = seconds.map((value, index) => ({
  iteration: index + 1,
  seconds: value,
  bytesPerSecond: 1e9 * printedRates[index]!,
  error: 1.38e-7,
}));
const measured = report('measure', [
  completeCase({
    name: 'kvstore',
    parameters: {
      kvStore: 'device',
      network: 'resnet',
      devices: 4,
      dtype: 'float32',
      mode: 'push-pull',
    },
    samplesSeconds: seconds,
    volume: storeVolume({ bytes, devices: 4 }),
    copyBytesPerSecond: 44.88e9,
    loopBytes: 2 ** 28,
    check: errorCheck(1.38e-7, 3.81e-6),
    context: { threads: 2, availableCores: 2, grantedCores: null },
    arrays: 157,
  }),
]);
const lines = reportSummary({
  ...measured,
  environment: {
    ...environment,
    cpuModel: 'AMD EPYC',
    availableCores: 2,
    simdLevel: 'avx512',
    threads: 2,
    memoryBytes: 23.5 * 2 ** 30,
    operatingSystem: 'Linux',
    kernel: '6.18.44-fc-v669',
    nodeVersion: 'v20.20.2',
  },
});

it.each([
  ['README.md', lines.filter((line) => /^ {2}(time|bandwidth|copy|check|verdict) /.test(line))],
  ['docs/commands.md', [arraysLine(157, bytes), ...iterations.map(iterationLine), ...lines]],
])('%s shows the layout of today', (page, printed) => {
  expect(readFileSync(join(root, page), 'utf8')).toContain(`${printed.join('\n')}\n`);
});

it('docs/doctor.md shows findings as they are', () => {
  const limits = {
    ...containerLimits({ groups: folder, hierarchy: folder, limits: join(folder, 'none') }),
    openFiles: { value: 20_000, file: '' },
    userProcesses: { value: 96_364, file: '' },
    lockedBytes: { value: 2 ** 23, file: '' },
  };
  const [allowed, memoryBytes] = [2, 24 * 2 ** 30];
  const machine = { cores: 2, allowed, model: 'AMD EPYC', memoryBytes, freeBytes: 22 * 2 ** 30 };
  written('enabled', 'always [madvise] never\n');
  written('shmem_enabled', 'always within_size advise [never]\n');
  const found = {
    addon: '/app/node_modules/@gradlink/linux-x64-gnu/gradlink.node',
    simdLevel: 'avx512',
    threads: 2,
    copyBytesPerSecond: 44.1e9,
    wakeUpSeconds: 1.3e-6,
  };
  const openMpi = { flavour: 'openmpi', version: 'Open MPI v4.1.4', file: '', chosenBy: '' };
  const build = { threads: true, cudaAware: false };
  const none = { reason: 'no such file', broken: false };
  const findings = [
    coresFinding(limits, machine),
    memoryFinding(limits, machine),
    limitsFinding(limits),
    ...addonFindings({ found }),
    // Little is left of it in some containers.
    { ...sharedMemoryFinding(), status: 'ok' as const, advice: null },
    hugePagesFinding(folder),
    ptraceFinding('0'),
    mpiFinding('openmpi', { found: openMpi }, build, {}),
    mpiFinding('mpich', none, build, {}),
    ...gpuFindings({ reason: 'the CUDA driver is not available: install it', broken: false }),
  ];
  const printed = doctorLines({
    diagnosisVersion: 1,
    packageVersion: '0.2.0',
    startedAt: '',
    seconds: 1,
    findings,
    topology: { nodes: [], networks: [], gpus: [], links: [], gpusMissing: 'none' },
  } as never);
  expectSample('docs/doctor.md', 'ptrace scope', printed);
});

it('docs/doctor.md shows the parts of a topology', () => {
  const ordinals = [0, 1, 2, 3];
  const possible = 6;
  const linkRate = 26.5625e9;
  const topology: Topology = {
    nodes: [0, 1].map((node) => ({
      node,
      cores: node === 0 ? '0-31' : '32-63',
      memoryBytes: 251.5 * 2 ** 30,
      distances: node === 0 ? [10, 21] : [21, 10],
    })),
    networks: [{ name: 'eth0', up: true, bitsPerSecond: 100e9, numaNode: 0 }],
    gpus: ordinals.map((ordinal) => ({
      ordinal,
      name: 'NVIDIA H100',
      pciBusId: `0000:${String(ordinal)}8:00.0`,
      numaNode: ordinal >> 1,
      cores: ordinal < 2 ? '0-31' : '32-63',
      pcieNow: 'generation 5 x16',
      pciePossible: 'generation 5 x16',
      pcieNowBytesPerSecond: 63e9,
      pciePossibleBytesPerSecond: 63e9,
    })),
    links: ordinals.flatMap((from) =>
      ordinals
        .filter((to) => to !== from)
        .map((to) => {
          const links = from + to === 1 ? 4 : possible;
          return {
            from,
            to,
            kind: `NV${String(links)}`,
            peerAccess: true,
            links,
            linksPossible: possible,
            bytesPerSecond: links * linkRate,
            possibleBytesPerSecond: possible * linkRate,
          };
        }),
    ),
    gpusMissing: null,
  };
  expectSample('docs/doctor.md', 'gradlink topo', topologyLines(topology));
});

it('docs/compare.md shows one better and one the same', async () => {
  const sweep = ['all_reduce', '-b', '1M', '-e', '1M', '-n', '2', '--iters', '1', '-w', '1'];
  const { stdout } = await gradlink(['collectives', ...sweep, '--format', 'json']);
  const one = JSON.parse(stdout) as Report;
  // Of eight cycles each, with the times of the guide.
  const [before, after] = [
    [101.4e-6, 58e-6],
    [86.29e-6, 56.31e-6],
  ].map((times, run) => {
    const random = uniform(run + 1);
    const scattered = (usual: number) =>
      [1, 2, 3, 4, 5].map(() => usual * (0.99 + 0.02 * random()));
    const cases = Array.from({ length: 8 }, () =>
      one.cases
        .filter(hasMeasurement)
        .map((each, at) => ({ ...each, samplesSeconds: scattered(times[at]!) })),
    );
    return JSON.stringify({ ...one, cases: cases.flat() });
  });
  const files = [written('before.json', before!), written('after.json', after!)];
  const compared = await gradlink(['compare', ...files, '--tolerance', '10']);
  expectSample('docs/compare.md', 'everywhere', compared.stdout.replaceAll(`${folder}/`, ''));
});

it('docs/hosts.md shows the slowest host and the slowest link', () => {
  const ranks = [12, 13, 14, 15];
  const printed = hostLines({
    messageBytes: 2 ** 20,
    memory: 'gpu',
    margin: 1.5,
    hosts: [],
    linkCount: 28,
    linkMedianSeconds: null,
    slowestLinks: [],
    slowestHost: { host: 'node3', ranks, by: 'messages', times: 1.8, standsOut: true },
    slowestLink: {
      hosts: ['node1', 'node3'],
      messageSeconds: 3.512e-3,
      bytesPerSecond: 0.6e9,
      times: 2.1,
      standsOut: true,
      asAllOf: 'node3',
    },
  });
  expectSample(
    'docs/hosts.md',
    '# slowest host',
    printed.map((line) => `# ${line}`),
  );
});

it('docs/report.md shows the plot of a run', async () => {
  const text = Array.from({ length: 50 }, (_, at) => {
    const gigabytes = 5.5 + 0.4 * Math.sin((at + 1) / 5) + 0.04 * ((at + 1) % 3);
    const bytesPerSecond = 1e9 * gigabytes;
    return iterationLine({ ...iterations[0]!, iteration: at + 1, bytesPerSecond });
  });
  const shown = ['-e', `console.log(${JSON.stringify(text.join('\n'))})`];
  const { stdout } = await gradlink(['watch', process.execPath, ...shown]);
  expectSample('docs/report.md', 'bandwidth per device', stdout);
});

it('docs/images/bandwidth.svg has the frame that a picture of charts is drawn in', async () => {
  // Up to the chart itself, whose figures nobody prints again.
  const frameOf = (svg: string): string =>
    shapeOf(svg.slice(0, svg.indexOf('<g'))).replace(/(>)[^<>]+(<\/text>)/, '$1$2');
  const drawn = await toSvg(chartsOf([{ label: '', report: sweepRun() }]).slice(0, 1));
  const shown = readFileSync(join(root, 'docs', 'images', 'bandwidth.svg'), 'utf8');
  expect(frameOf(shown)).toBe(frameOf(drawn));
});
