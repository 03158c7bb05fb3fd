// A data-parallel comparison in compare_ddp's format: a table for each bucket size and phase.
import {
  hasMeasurement,
  type CaseResult,
  type Report,
  type ReportHead,
} from '../results/result.js';
import { hiddenText } from '../measure/ddp/cases.js';
import { environmentLine } from './summary.js';
import { tableLines, type Column } from './table.js';
import type { Tool } from './tool.js';
import { countText, mebibyte, sizeText, timeText } from '../results/units.js';
import { groupBy } from '../results/grouping.js';

export const ddpTool: Tool = {
  name: 'ddp',
  head,
  groups: (cases) => [
    ...groupBy(cases, ({ parameters }) => String(parameters['bucketBytes'])).values(),
  ],
  rows,
  foot,
};

const figures = ['mean', 'p50', 'p90', 'p95', 'p99'] as const;
function milliseconds(seconds: number | null | undefined): string {
  return typeof seconds === 'number' ? (seconds * 1e3).toFixed(2) : '';
}

/** `+2.5 %`; empty without `overlap` to compare with. */
function delta(percent: number | null | undefined): string {
  if (typeof percent !== 'number') return '';
  return `${percent < 0 ? '-' : '+'}${Math.abs(percent).toFixed(1)} %`;
}

/** Mean and delta stay longest, because they compare the modes. */
function weightOf(figure: (typeof figures)[number], weight: number): { weight?: number } {
  return figure === 'mean' ? {} : { weight };
}

function columnsOf(phase: string): Column[] {
  return [
    { title: `DDP: [${phase}]`, align: 'left' },
    ...figures.flatMap((figure, index): Column[] => [
      { title: `${figure} ms`, align: 'right', ...weightOf(figure, 20 - index) },
      {
        title: 'delta',
        name: `delta of ${figure}`,
        align: 'right',
        ...weightOf(figure, 10 - index),
      },
    ]),
  ];
}

function rows(cases: readonly CaseResult[], room?: number): string[] {
  const [first] = cases;
  if (first === undefined) return [];
  const size = Number(first.parameters['bucketBytes']) / mebibyte;
  const lines = ['', `Bucket size ${size} MiB`];
  const measured = cases.filter(hasMeasurement);
  const phases = [...new Set(measured.map(({ parameters }) => String(parameters['phase'])))];
  for (const phase of phases) {
    const ofPhase = measured.filter(({ parameters }) => parameters['phase'] === phase);
    lines.push(
      ...tableLines(
        columnsOf(phase),
        ofPhase.map(({ parameters, values = {} }) => [
          String(parameters['mode']),
          ...figures.flatMap((figure) => [
            milliseconds(values[`${figure}Seconds`]),
            delta(values[`${figure}DeltaPercent`]),
          ]),
        ]),
        room,
      ),
    );
  }
  for (const { parameters, values = {}, statistics } of measured) {
    if (parameters['phase'] !== 'backward') continue;
    const perRank = Object.entries(values)
      .filter(([name]) => /^rank\d+MeanSeconds$/.test(name))
      .map(([, seconds]) => milliseconds(seconds));
    const percent = values['hiddenPercent'];
    const hidden =
      typeof percent === 'number'
        ? `of which ${hiddenText(percent / 100)} is hidden`
        : 'less than the times scatter by';
    lines.push(
      `# ${String(parameters['mode'])}: ${countText(values['buckets'] ?? 0, 'bucket')}, the largest ` +
        `${sizeText(values['largestBucketBytes'] ?? 0)}; ${countText(statistics.samples, 'sample')}; mean of each rank ` +
        `${perRank.join(', ')} ms; alone, backward takes ${timeText(values['computeSeconds'] ?? 0)} and communication ` +
        `${timeText(values['communicationSeconds'] ?? 0)}, ${hidden}`,
    );
  }
  return lines;
}

/** The run, before the first table. */
function head({ run, environment }: ReportHead): string[] {
  const { options } = run;
  const original = options['originalUnits'] === true;
  return [
    `# gradlink ddp: ${String(options['workload'])}`,
    `# ${environmentLine(environment)}`,
    `# ${countText(Number(options['ranks']), 'rank')}, ${countText(Number(options['steps']), 'step')} after ${String(options['warmup'])} that are dropped; figures over the samples of all ranks`,
    original
      ? '# original units: overlap has buckets of MiB, async and sync of as many Mi elements (4 bytes each), so that equal numbers compare unequal bytes'
      : '# buckets of equal bytes in every mode; 1 MiB = 1,048,576 bytes',
    '# delta: difference to overlap. backward: from the end of forward until all gradients are reduced',
  ];
}

/** Result and verdicts, after the last table. */
function foot(report: Report): string[] {
  const overlap = report.cases
    .filter(hasMeasurement)
    .filter(
      ({ parameters }) => parameters['mode'] === 'overlap' && parameters['phase'] === 'backward',
    );
  // The page's answer, by the same rule: the shortest median.
  const best = overlap.toSorted(
    (a, b) => a.statistics.medianSeconds - b.statistics.medianSeconds,
  )[0];
  const words =
    best === undefined
      ? []
      : [
          `# Shortest backward of overlap: median ${milliseconds(best.statistics.medianSeconds)} ms with buckets of ` +
            `${String(Number(best.parameters['bucketBytes']) / mebibyte)} MiB; ${best.verdict.text}` +
            (best.verdict.likelyCause === null ? '' : `: ${best.verdict.likelyCause}`),
        ];
  const { length } = report.cases;
  const failed = report.cases.filter(({ status }) => status === 'error');
  return [
    '',
    ...words,
    `# ${countText(length, 'case')}: ${String(length - failed.length)} ok, ${String(failed.length)} failed`,
    ...failed.map((one) => `# ${one.name}: ${'reason' in one ? one.reason : ''}`),
  ];
}
