// Axes for sizes and times: a few round values without overlapping labels.

/** Width of a size's label in pixels. */
const labelWidth = 60;
/** Beside the plot: labels and title of the vertical axis, and half of the last label. */
const leftWidth = 100;

/**
 * Selects sizes so that labels do not overlap.
 *
 * @param width of the picture without the part right of the plot
 */
function sizeTicks(all: readonly number[], width: number): number[] {
  const sizes = [...new Set(all)].sort((a, b) => a - b);
  const room = Math.max(1, (width - leftWidth) / labelWidth);
  // Labels are at the positions of their sizes, which may be unevenly spaced.
  const [least, most] = [sizes[0] ?? 1, sizes.at(-1) ?? 1];
  const place = (size: number): number =>
    most > least ? (Math.log(size / least) / Math.log(most / least)) * room : 0;
  const chosen: number[] = [];
  for (const size of sizes.toReversed()) {
    const last = chosen.at(-1);
    if (last === undefined || place(last) - place(size) >= 1 - 1e-9) chosen.push(size);
  }
  return chosen.toReversed();
}

const sizeLabels =
  "datum.value < 1024 ? datum.value + ' B' : datum.value < 1048576 ? format(datum.value / 1024, '~r') + ' KiB' : " +
  "datum.value < 1073741824 ? format(datum.value / 1048576, '.4~r') + ' MiB' : format(datum.value / 1073741824, '.4~r') + ' GiB'";

/** A horizontal axis of sizes, logarithmic. */
export function sizeAxis(title: string, sizes: readonly number[], width: number) {
  return {
    field: 'size',
    type: 'quantitative',
    scale: { type: 'log', base: 2, nice: false },
    axis: {
      title,
      values: sizeTicks(sizes, width),
      labelExpr: sizeLabels,
      // They already fit; Vega overestimates the width of text and would drop some.
      labelOverlap: false,
      labelFlush: false,
      grid: false,
    },
  } as const;
}

/** In seconds. */
const timeLabels =
  "datum.value >= 1 ? format(datum.value, '~r') + ' s' : datum.value >= 0.001 ? format(datum.value * 1000, '.3~r') + ' ms' : " +
  "format(datum.value * 1000000, '.3~r') + ' us'";

const steps = [1, 2, 5, 10];
/** Over more powers of ten than this only these have a grid line. */
const manyDecades = 1.7;

function below(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  const step = steps.findLast((one) => one * power <= value * (1 + 1e-9)) ?? 1;
  return Number((step * power).toPrecision(1));
}

function above(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  const step = steps.find((one) => one * power >= value * (1 - 1e-9)) ?? 10;
  return Number((step * power).toPrecision(1));
}

export interface TimeScale {
  readonly least: number;
  readonly most: number;
}

/** The round ends of a logarithmic axis for these times. */
export function timeScale(seconds: readonly number[]): TimeScale {
  const least = below(Math.min(...seconds));
  const most = above(Math.max(...seconds));
  return { least, most: most > least ? most : least * 2 };
}

export function timeAxis({ least, most }: TimeScale) {
  const kept = Math.log10(most / least) > manyDecades ? [1] : [1, 2, 5];
  const values: number[] = [];
  for (
    let power = Math.floor(Math.log10(least));
    power <= Math.ceil(Math.log10(most));
    power += 1
  ) {
    for (const step of kept) {
      const value = Number(`${String(step)}e${String(power)}`);
      if (value >= least * (1 - 1e-9) && value <= most * (1 + 1e-9)) values.push(value);
    }
  }
  const domain: number[] = [least, most];
  return {
    scale: { type: 'log', domain, nice: false },
    axis: { title: 'median time', values, labelExpr: timeLabels, labelOverlap: false },
  } as const;
}
