// What lab/job/run.js shows of its jobs: a page in Markdown, and two pictures.
import { chartSvg } from '../../dist/internal.js';

export const percent = (share) => (share * 100).toFixed(1);
const ranksText = (count) => `${count} rank${count === 1 ? '' : 's'}`;
const secondsText = (value) => value.toFixed(1);

/** Alike in both pictures. */
const colour = (shown) => ({
  field: 'ranks',
  type: 'nominal',
  scale: { domain: [1, 2, 3, 4].map(ranksText) },
  legend: { values: shown.map(ranksText), symbolType: 'stroke' },
});

/** Loss over samples, a small chart for each job; the colour says how many ranks there were. */
function lossChart({ jobs }) {
  const values = jobs.flatMap(({ title, curve, ranks }) =>
    curve.map((point) => ({ ...point, job: title, ranks: ranksText(ranks[point.start]) })),
  );
  return {
    data: { values },
    facet: {
      field: 'job',
      type: 'nominal',
      title: null,
      sort: jobs.map(({ title }) => title),
    },
    columns: 2,
    spec: {
      width: 300,
      height: 150,
      mark: { type: 'line', strokeWidth: 1.5 },
      encoding: {
        x: { field: 'samples', type: 'quantitative', axis: { title: 'samples', tickCount: 5 } },
        y: { field: 'loss', type: 'quantitative', axis: { title: 'loss', tickCount: 5 } },
        color: colour([1, 2, 3, 4]),
        detail: { field: 'start' },
      },
    },
  };
}

/** What happened to the job whose host was cut off, in order. */
function eventsOf({ cut, starts: [before, after] }) {
  return [
    [cut.at, `the link is cut, after step ${cut.step} of ${ranksText(before.ranks)}`],
    [cut.blamedAt, 'the launcher says who is lost, and that the job starts again'],
    [cut.resumedAt, `${ranksText(after.ranks)} go on from the checkpoint of step ${after.step}`],
    [cut.caughtUpAt, `they have caught up with step ${cut.reachedStep}`],
  ];
}

/** Samples over seconds around the cut. */
function cutChart(job) {
  const values = job.curve.map((point) => ({ ...point, ranks: ranksText(job.ranks[point.start]) }));
  const marks = eventsOf(job).map(([at], index) => ({ at, number: String(index + 1) }));
  const x = { field: 'at', type: 'quantitative', axis: { title: 'seconds', tickCount: 8 } };
  return {
    width: 700,
    height: 200,
    layer: [
      {
        data: { values: marks },
        mark: { type: 'rule', strokeDash: [3, 3], strokeOpacity: 0.5, color: 'currentColor' },
        encoding: { x },
      },
      {
        data: { values: marks },
        mark: { type: 'text', baseline: 'bottom', dy: -4 },
        encoding: { x, y: { value: 0 }, text: { field: 'number' } },
      },
      {
        data: { values },
        mark: { type: 'line', strokeWidth: 2 },
        encoding: {
          x,
          y: { field: 'samples', type: 'quantitative', axis: { title: 'samples', tickCount: 5 } },
          color: colour(job.ranks),
          detail: { field: 'start' },
        },
      },
    ],
  };
}

/** By the names of their files. */
export async function pictures({ jobs }) {
  const cut = jobs.find((job) => job.cut !== undefined);
  return {
    'job-loss.svg': await chartSvg(lossChart({ jobs }), 'job-loss'),
    'job-cut.svg': await chartSvg(cutChart(cut), 'job-cut'),
  };
}

function jobTable({ jobs }) {
  const rows = jobs.map(({ title, starts, samples, accuracy, stepSeconds, seconds, beside }) =>
    [
      title,
      starts.map(({ samples: from }) => from).join(', '),
      samples,
      percent(accuracy),
      `${(stepSeconds * 1000).toFixed(0)} ms`,
      `${seconds.toFixed(0)} s`,
      beside.title === title ? '–' : `${beside.distance.toExponential(0)} from ${beside.title}`,
    ].join(' | '),
  );
  return [
    '| job | begins after | ends after | accuracy, % | step | all of it | loss, at most |',
    '| --- | ---: | ---: | ---: | ---: | ---: | ---: |',
    ...rows.map((row) => `| ${row} |`),
  ].join('\n');
}

function cutTable(job) {
  const events = eventsOf(job).map(([at, what], index) => {
    const after = secondsText(at - job.cut.at);
    return `| ${index + 1} | ${secondsText(at)} | ${after} | ${what} |`;
  });
  return ['| | seconds | since the cut | |', '| ---: | ---: | ---: | --- |', ...events].join('\n');
}

export function pageOf(result) {
  const { jobs, length, steps, globalBatch, target, knownAccuracy, machine, seconds, left } =
    result;
  const cut = jobs.find((job) => job.cut !== undefined);
  const stopped = jobs.find((job) => job.stopped !== undefined);
  const settings =
    `A ${length === 'quick' ? 'short' : 'whole'} run: ${steps} steps of ${globalBatch} samples, ` +
    `${secondsText(seconds)} s in all, on ${machine.cores} cores of ${machine.cpu}, Node ${machine.node}. ` +
    `Wanted: ${percent(target)} % of samples that were not trained on; ` +
    `by the patterns themselves, without noise, ${percent(knownAccuracy)} % can be told.`;
  // Open MPI's mpirun speaks at length too, of a daemon that it could not start.
  const ours = cut.cut.said.filter(({ text }) => text.startsWith('gradlink launch: '));
  const said = ours.map(({ at, text }) => `${at.toFixed(1).padStart(6)}  ${text}`);
  return `# A training job end to end

${settings}

${jobTable(result)}

Samples are those of all ranks together. A step is the median on rank 0, on ${machine.cores} cores whatever the number of
ranks. The last column is the largest difference of the loss from that of another job after as many samples.

![Loss over samples of each job](job-loss.svg)

## A host is cut off

![Samples over seconds of the job that lost a host](job-cut.svg)

${cutTable(cut)}

Lost: ${secondsText(cut.cut.lostSeconds)} s, from the cut until the job was as far again. The launcher said:

\`\`\`text
${said.join('\n')}
\`\`\`

## Another number of ranks

The job of ${ranksText(stopped.ranks[0])} was ended after step ${stopped.stopped.step} (exit status ${stopped.stopped.exitCode}),
and went on with ${ranksText(stopped.ranks.at(-1))} after ${stopped.starts.at(-1).samples} samples, those of its last checkpoint.

Left at the end: ${Object.entries(left)
    .map(([what, count]) => `${count} ${what}`)
    .join(', ')}.
`;
}
