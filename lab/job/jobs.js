// The jobs of lab/job/run.js: each is started as a user starts it, and all that its rank 0 and its launcher say is kept
// with the time.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { median } from 'simple-statistics';
import { cutLink, netns } from './hosts.js';
import { lengths, logEvery } from './settings.js';

const root = join(import.meta.dirname, '../..');
/** Of the launcher: far more than a job takes, for one that hangs. */
const limitSeconds = 600;

/** Where so many ranks run: one on the first host, or as equally many as there can be on both. */
function placesOf(ranks, [first, second]) {
  const onFirst = Math.ceil(ranks / 2);
  return ranks === 1 ? `${first}:1` : `${first}:${onFirst},${second}:${ranks - onFirst}`;
}

let current;
let interrupted = false;

/** Ends what runs now, and starts nothing more. */
export function interrupt() {
  interrupted = true;
  current?.kill('SIGTERM');
}

/**
 * @param onStep called with the launcher and each step that rank 0 tells of
 * @returns the exit status, what rank 0 told, and the lines of standard error, each with seconds since the start
 */
async function launch({ name, addresses, length, folder }, ranks, options, onStep) {
  if (interrupted) throw new Error('interrupted');
  const start = performance.now();
  const now = () => (performance.now() - start) / 1000;
  const child = spawn(
    netns,
    [
      ...['enter', `${name}-a`, process.execPath, join(root, 'bench/gradlink.js'), 'launch'],
      ...['-n', String(ranks), '--launcher', 'ssh', '-H', placesOf(ranks, addresses)],
      ...['--remote-shell', netns, '--timeout', String(limitSeconds), ...options],
      ...[process.execPath, join(import.meta.dirname, 'rank.js'), length, folder],
    ],
    // MPICH would take these hosts for one.
    { env: { ...process.env, GRADLINK_MPI: 'openmpi' }, stdio: ['ignore', 'pipe', 'pipe'] },
  );
  current = child;
  const told = [];
  const said = [];
  createInterface({ input: child.stdout }).on('line', (text) => {
    if (!text.startsWith('{')) return;
    const line = { at: now(), ...JSON.parse(text) };
    told.push(line);
    if (line.event === 'step') onStep?.(child, line);
  });
  createInterface({ input: child.stderr }).on('line', (text) => {
    said.push({ at: now(), text });
    process.stderr.write(`${text}\n`);
  });
  const code = await new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  current = undefined;
  return { code, told, said, seconds: now() };
}

/** @param runs one after the other, of which the last came to the end */
function resultOf({ id, title }, runs, { length }) {
  const { code } = runs.at(-1);
  if (code !== 0) throw new Error(`${title}: expected exit status 0, got ${code}`);
  const told = runs.flatMap((run) => run.told);
  const starts = told.filter(({ event }) => event === 'begin');
  let start = -1;
  const curve = told.flatMap((line) => {
    if (line.event === 'begin') start += 1;
    return line.event === 'step' ? [{ start, ...line }] : [];
  });
  const saved = told.filter(({ event }) => event === 'saved');
  const end = saved.find(({ step }) => step === lengths[length].steps);
  return {
    id,
    title,
    ranks: starts.map(({ ranks }) => ranks),
    starts,
    accuracy: end.accuracy,
    samples: end.samples,
    seconds: runs.reduce((sum, run) => sum + run.seconds, 0),
    stepSeconds: median(curve.map(({ seconds }) => seconds)),
    curve,
    saved,
  };
}

const counted = (ranks) => `${ranks} rank${ranks === 1 ? '' : 's'}`;

/** The same number of ranks from the beginning to the end. */
export async function steady(place, ranks) {
  const id = `steady-${ranks}`;
  const run = await launch({ ...place, folder: join(place.folder, id) }, ranks, []);
  return resultOf({ id, title: counted(ranks) }, [run], place);
}

/** Half way between two checkpoints, past the middle. */
function middleOf(length) {
  const { steps, saveEvery } = lengths[length];
  const between = Math.floor(saveEvery / 2 / logEvery) * logEvery;
  return Math.floor(steps / 2 / saveEvery) * saveEvery + between;
}

/** Ended in the middle, as Ctrl-C ends it, and started again with other ranks. */
export async function resumed(place, before, after) {
  const at = middleOf(place.length);
  const own = { ...place, folder: join(place.folder, 'resumed') };
  const first = await launch(own, before, [], (child, { step }) => {
    if (step === at) child.kill('SIGINT');
  });
  const second = await launch(own, after, []);
  const named = { id: 'resumed', title: `${before} ranks, then ${after}` };
  const result = resultOf(named, [first, second], place);
  return { ...result, stopped: { step: at, exitCode: first.code } };
}

/** Loses its second host in the middle, and goes on with the ranks of the first. The link stays cut. */
export async function cutOff(place, ranks) {
  const at = middleOf(place.length);
  const own = { ...place, folder: join(place.folder, 'cut') };
  let cutAt;
  const run = await launch(own, ranks, ['--elastic'], (_, line) => {
    if (line.step !== at || cutAt !== undefined) return;
    cutLink(place.name);
    cutAt = line.at;
  });
  const result = resultOf({ id: 'cut', title: `${ranks} ranks, a host cut off` }, [run], place);
  const { curve, starts } = result;
  if (starts.length !== 2) throw new Error(`expected one more start, got ${starts.length - 1}`);
  const reached = curve.findLast(({ start }) => start === 0).step;
  const caughtUp = curve.find(({ start, step }) => start === 1 && step === reached);
  const cut = {
    step: at,
    at: cutAt,
    reachedStep: reached,
    // In the same moment: who is to blame, and that the job starts again.
    blamedAt: run.said.find(({ text }) => text.includes('(--elastic)')).at,
    resumedAt: starts[1].at,
    caughtUpAt: caughtUp.at,
    lostSeconds: caughtUp.at - cutAt,
    said: run.said,
  };
  return { ...result, cut };
}
