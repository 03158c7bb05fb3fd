// A forecast as text. Every predicted figure has a tilde, to distinguish it from measurements.
import type { Banded, PredictedStep, Prediction } from '../predict/scaling.js';
import { isAllReduce } from '../predict/schemes.js';
import type { Validation } from '../predict/validate.js';
import { markdownTable, plain } from './markdown.js';
import { tableLines, type Column } from './table.js';
import { percentText, sidedText, sizeText, timeText } from '../results/units.js';
import { groupBy } from '../results/grouping.js';

/** Formats of `gradlink predict --format`. */
export const predictionFormats = ['text', 'json', 'markdown'] as const;
export type PredictionFormat = (typeof predictionFormats)[number];

const columns: readonly Column[] = [
  { title: 'workers', align: 'right' },
  { title: 'scheme', align: 'left' },
  { title: 'step', align: 'right' },
  { title: 'from to', name: 'step from to', align: 'left', weight: 2 },
  { title: 'not hidden', align: 'right', weight: 1 },
  { title: 'samples/s', align: 'right', weight: 4 },
  { title: 'speedup', align: 'right' },
  { title: 'efficiency', align: 'right' },
  { title: 'from to', name: 'efficiency from to', align: 'left', weight: 3 },
  { title: '', align: 'left' },
];

function about(text: string): string {
  return `~${text}`;
}

/** Four digits, without an exponent. */
function countText(value: number): string {
  return value >= 1000 ? value.toFixed(0) : value.toPrecision(4);
}

/** `81 to 94 %`. */
function percentBand({ low, high }: Banded): string {
  return `${(low * 100).toFixed(0)} to ${percentText(high)}`;
}

function cells(step: PredictedStep, target: number): string[] {
  const { efficiency, stepBand } = step;
  const notes = [
    ...(step.best ? ['best'] : []),
    ...(isAllReduce(step.scheme) ? [] : ['no all-reduce: a neighbour only']),
    ...(step.scheme === 'parameter-server' ? ['with servers of their own'] : []),
    ...(efficiency.value < target ? [`below ${percentText(target, [target])}`] : []),
    ...(step.quickerThan === null ? [] : [`quicker than ${String(step.quickerThan)} workers`]),
  ];
  return [
    String(step.workers),
    step.scheme,
    about(timeText(step.stepSeconds)),
    `${timeText(stepBand.low)} to ${timeText(stepBand.high)}`,
    about(timeText(step.exposedSeconds)),
    about(countText(step.throughput.value)),
    about(step.speedup.value.toFixed(2)),
    about(percentText(efficiency.value, [target])),
    percentBand(efficiency),
    notes.join(', '),
  ];
}

/** Only the best scheme for each number of workers. */
function chosenSteps({ steps }: Prediction, all: boolean): PredictedStep[] {
  const seen = new Set<number>();
  // Without an all-reduce scheme there is no best one.
  const show = all || !steps.some(({ best }) => best);
  return steps.filter(({ best, workers }) => {
    if (show) return true;
    if (!best || seen.has(workers)) return false;
    seen.add(workers);
    return true;
  });
}

function crossingLines({ crossings, targetEfficiency, searchedWorkers }: Prediction): string[] {
  const line = percentText(targetEfficiency, [targetEfficiency]);
  const alike = groupBy(crossings, ({ workers }) =>
    workers === null
      ? `stays above ${line} up to ${String(searchedWorkers)} workers`
      : `first below ${line} at ~${String(workers)} workers`,
  );
  if (alike.size === 1 && crossings.length > 1) return [`  every scheme: ${[...alike.keys()][0]!}`];
  return [...alike].map(
    ([text, same]) => `  ${same.map(({ scheme }) => scheme).join(', ')}: ${text}`,
  );
}

/** Why a forecast may be faster than that for fewer workers. */
function riseLines(steps: readonly PredictedStep[]): string[] {
  if (steps.every(({ quickerThan }) => quickerThan === null)) return [];
  return [
    '  quicker than fewer workers: their messages are smaller, and the sweep measured those as disproportionately quick, due to caches or scatter; repeat the sweep with -N 8, and rely on the efficiency of fewer workers',
  ];
}

const title = 'PREDICTED, not measured';

/**
 * Text, Markdown or JSON, ending in a line break. `all`: every scheme instead of the best for each number of workers.
 */
export function renderPrediction(
  prediction: Prediction,
  format: PredictionFormat,
  all: boolean,
  room = Infinity,
): string {
  if (format === 'json') return `${JSON.stringify(prediction, null, 2)}\n`;
  const steps = chosenSteps(prediction, all);
  const rows = steps.map((step) => cells(step, prediction.targetEfficiency));
  const words = [...crossingLines(prediction), ...riseLines(steps)];
  const facts = [`gradients of ${sizeText(prediction.gradientBytes)}`, ...prediction.assumptions];
  if (format === 'markdown') {
    return `${[
      `## gradlink predict: ${title}`,
      '',
      ...facts.map((fact) => `- ${plain(fact)}`),
      '',
      ...markdownTable(columns, rows),
      '',
      ...words.map((line) => `- ${plain(line.trim())}`),
    ].join('\n')}\n`;
  }
  return `${[
    `${title}: ${facts[0]!}`,
    ...facts.slice(1).map((fact) => `  assumed: ${fact}`),
    '',
    ...tableLines(columns, rows, room),
    '',
    ...words,
  ].join('\n')}\n`;
}

const checkColumns: readonly Column[] = [
  { title: 'case', align: 'left' },
  { title: 'predicted', align: 'right' },
  { title: 'true', align: 'right' },
  { title: 'unit', align: 'left', weight: 1 },
  { title: 'error', align: 'right' },
];

function signedPercent(error: number): string {
  return `${error < 0 ? '-' : '+'}${(Math.abs(error) * 100).toFixed(1)} %`;
}

function verdictOf({ summary, error, target, passed }: Validation): string {
  const figure = `${summary} error ${sidedText(error * 100, 1, target === null ? [] : [target * 100])} %`;
  if (target === null) return `${figure}; nothing is promised`;
  return `${figure}, at most ${(target * 100).toFixed(1)} % promised: ${passed ? 'kept' : 'MISSED'}`;
}

/** Predicted and actual figures, a table for each validation, ending in a line break. */
export function renderValidations(
  validations: readonly Validation[],
  format: PredictionFormat,
  room = Infinity,
): string {
  if (format === 'json') return `${JSON.stringify({ validations }, null, 2)}\n`;
  const blocks = validations.map((one) => {
    const rows = one.rows.map(({ name, predicted, published, unit, error }) => [
      name,
      about(predicted.toPrecision(5)),
      published.toPrecision(5),
      unit,
      signedPercent(error),
    ]);
    const heading = `${one.table}: ${one.method}`;
    return format === 'markdown'
      ? [
          `## ${plain(heading)}`,
          '',
          `Source: ${plain(one.source)}`,
          '',
          ...markdownTable(checkColumns, rows),
          '',
          plain(verdictOf(one)),
          '',
        ]
      : [
          heading,
          `  ${one.source}`,
          '',
          ...tableLines(checkColumns, rows, room),
          '',
          verdictOf(one),
          '',
        ];
  });
  return `${blocks.flat().join('\n').trimEnd()}\n`;
}
