#!/usr/bin/env node
// How costs grow with ranks, hosts, keys, workers of a server and arrays in a bucket: measures, names the slope, and draws.
//
//   node lab/growth/run.js [--quick] [--only ID,...] [--seconds N] [--draw FILE.svg] [--output FILE] [RESULTS]
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { median } from 'simple-statistics';
import { chartSvg } from '../../dist/internal.js';
import { growth, within } from './fit.js';
import { measures } from './measures.js';

const usage = `usage: node lab/growth/run.js [OPTIONS] [RESULTS]

  RESULTS          the file of an earlier run (--output), instead of measuring anew
  --only ID,...    of ${measures.map(({ id }) => id).join(', ')}
  --quick          three sizes of each, once: proves that it runs, measures nothing
  --seconds N      about how long to sample each size (default: 0.2)
  --rounds N       measure each size so many times, in turns (default: 3)
  --draw FILE.svg  draw the costs and their lines
  --output FILE    write what was measured as JSON, anew after each size
  -h, --help       print this

Exit status: 0, or 1 where a cost grows faster than it may or a measurement failed, 2 for bad usage.`;

class UsageError extends Error {}

function options() {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        only: { type: 'string' },
        quick: { type: 'boolean', default: false },
        seconds: { type: 'string', default: '0.2' },
        rounds: { type: 'string', default: '3' },
        draw: { type: 'string' },
        output: { type: 'string' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    return { ...values, results: positionals[0] };
  } catch (error) {
    throw new UsageError(error.message);
  }
}

function positive(name, text) {
  const value = Number(text);
  if (value > 0) return value;
  throw new UsageError(`expected a number above 0 for --${name}, got '${text}'`);
}

function chosen(only) {
  if (only === undefined) return measures;
  const ids = only.split(',');
  const unknown = ids.find((id) => measures.every((measure) => measure.id !== id));
  if (unknown === undefined) return measures.filter(({ id }) => ids.includes(id));
  throw new UsageError(
    `expected --only to name some of ${measures.map(({ id }) => id).join(', ')}; got '${unknown}'`,
  );
}

/** Sizes take turns, so that what changes on the machine meanwhile is no slope. */
async function measured({ only, quick, seconds, rounds, output }) {
  const [each, times] = [positive('seconds', seconds), positive('rounds', rounds)];
  const taken = chosen(only).map(({ id }) => ({ id, points: [], reason: undefined }));
  for (let round = 0; round < (quick ? 1 : times); round += 1) {
    for (const own of taken) {
      const measure = measures.find(({ id }) => id === own.id);
      own.reason ??= measure.waived();
      for (const x of quick ? measure.sizes.slice(0, 3) : measure.sizes) {
        if (own.reason !== undefined) break;
        process.stderr.write(`round ${round + 1}: ${own.id}, ${x} ${measure.by}\n`);
        try {
          const y = await measure.cost(x, quick ? 0.01 : each);
          own.points.push({ x, y });
        } catch (error) {
          own.reason = `failed at ${x} ${measure.by}: ${error.message}`;
        }
        if (output !== undefined) writeFileSync(output, `${JSON.stringify(taken, null, 1)}\n`);
      }
    }
  }
  return taken;
}

/** A point a size, the median of its rounds. */
function pointsOf({ points }) {
  const sizes = [...new Set(points.map(({ x }) => x))].sort((a, b) => a - b);
  return sizes.map((x) => ({
    x,
    y: median(points.filter((point) => point.x === x).map(({ y }) => y)),
  }));
}

const costText = (y, unit) => {
  if (unit !== 's') return `${Number(y.toPrecision(3))} ${unit}`;
  return y < 1e-3 ? `${(y * 1e6).toPrecision(3)} us` : `${(y * 1e3).toPrecision(3)} ms`;
};

function rowsOf(taken) {
  return taken.map((own) => {
    const measure = measures.find(({ id }) => id === own.id);
    const points = pointsOf(own);
    const beyond = points.filter(({ x }) => x >= (measure.from ?? 0));
    const fitted = beyond.length >= 3 ? beyond : points;
    const grown = fitted.length >= 3 ? growth(fitted) : undefined;
    return { measure, points, fitted, grown, reason: own.reason };
  });
}

const mayGrow = ({ word }, { wanted }) => wanted === undefined || within(word, wanted);

function table(rows) {
  const lines = rows.map(({ measure, points, fitted, grown, reason }) => {
    const ends = [points.at(0), fitted.at(0), points.at(-1)].map((point) =>
      point === undefined ? '–' : `${costText(point.y, measure.unit)} at ${point.x}`,
    );
    const said =
      grown === undefined
        ? ['–', '–', reason ?? 'too few sizes']
        : [
            grown.slope.toFixed(2),
            grown.steepest.toFixed(2),
            `${grown.word}${mayGrow(grown, measure) ? '' : ', MORE THAN IT MAY'}`,
          ];
    const wanted = measure.wanted === undefined ? '–' : `at most ${measure.wanted}`;
    return [measure.of, measure.by, ...ends, ...said, wanted];
  });
  const head = [
    'cost',
    'by',
    'smallest',
    'line from',
    'to',
    'slope',
    'steepest step',
    'growth',
    'wanted',
  ];
  return [head, head.map(() => '---'), ...lines]
    .map((cells) => `| ${cells.map((cell) => cell.replaceAll('\n', ' ')).join(' | ')} |`)
    .join('\n');
}

/** Powers of ten between the costs, or the least and the most where there are none. */
function ticksOf(points) {
  const costs = points.map(({ y }) => y);
  const [least, most] = [Math.min(...costs), Math.max(...costs)];
  const first = Math.ceil(Math.log10(least));
  const count = Math.floor(Math.log10(most)) - first + 1;
  return count < 2 ? [least, most] : Array.from({ length: count }, (_, i) => 10 ** (first + i));
}

/** A small chart for each cost, both axes logarithmic: dots measured, a line fitted. */
function chart(rows) {
  const drawn = rows.filter(({ grown }) => grown !== undefined);
  const panels = drawn.map(({ measure, points, fitted, grown }) => {
    const axis = (field, title, ticks) => ({
      field,
      type: 'quantitative',
      scale: { type: 'log', nice: false, padding: 8 },
      axis: {
        title,
        tickCount: 5,
        format: field === 'x' ? 'd' : '.2~s',
        grid: false,
        values: ticks,
      },
    });
    const encoding = {
      x: axis(
        'x',
        measure.by,
        points.map(({ x }) => x),
      ),
      y: axis('y', measure.unit, ticksOf(points)),
    };
    const ends = [fitted[0], fitted.at(-1)].map(({ x }) => ({
      x,
      y: grown.factor * x ** grown.slope,
    }));
    return {
      title: {
        text: measure.of,
        fontSize: 11,
        subtitle: `slope ${grown.slope.toFixed(2)}: ${grown.word}`,
      },
      width: 300,
      height: 150,
      layer: [
        {
          data: { values: ends },
          mark: { type: 'line', strokeWidth: 1.5, strokeDash: [5, 4] },
          encoding,
        },
        { data: { values: points }, mark: { type: 'point', filled: true, size: 50 }, encoding },
      ],
    };
  });
  return { concat: panels, columns: 2 };
}

async function main() {
  const given = options();
  if (given.help) {
    console.log(usage);
    return;
  }
  const taken =
    given.results === undefined
      ? await measured(given)
      : JSON.parse(readFileSync(given.results, 'utf8'));
  const rows = rowsOf(taken);
  console.log(table(rows));
  if (given.draw !== undefined) writeFileSync(given.draw, await chartSvg(chart(rows), 'growth'));
  const failed = rows.some(
    ({ measure, grown, reason }) =>
      reason?.startsWith('failed') === true ||
      (grown !== undefined && !given.quick && !mayGrow(grown, measure)),
  );
  process.exitCode = failed ? 1 : 0;
}

try {
  await main();
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(`${error.message}\n\n${usage}`);
  process.exitCode = 2;
}
