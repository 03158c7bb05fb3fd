// Resumes from the last whole checkpoint, the same on every rank.
import { join } from 'node:path';

import { GradlinkError } from '../../errors.js';
import { fileFailure, ownEntry } from '../../files/index.js';
import { checkFolder, checkLabels, checkRanks } from './arguments.js';
import { completedSteps } from './folder.js';
import { readMarker, type Marked, folderOfStep } from './marker.js';
import { ranksWhere } from './parts.js';
import { checkTensors, readTensors, type Digest } from './tensor-file.js';
import type { Checkpoint, CheckpointRanks, NamedArray, TrainingPlace } from './types.js';

/** A checkpoint to resume from. */
export interface LoadedCheckpoint {
  /** The checkpoint itself. */
  readonly checkpoint: Checkpoint;
  /** This rank's arrays. */
  readonly arrays: NamedArray[];
}

/**
 * Loads the last whole checkpoint, the same on every rank, with the arrays that this rank wrote. If there were fewer
 * ranks, those of its rank modulo their number. Every rank calls it.
 *
 * Verifies the checksums of all ranks' files. If one is damaged, all ranks use the checkpoint before, with a process
 * warning (`GradlinkWarning`).
 *
 * @returns undefined if there is none.
 * @throws GradlinkError ERR_MISMATCH if its labels differ, ERR_SYSTEM if none is whole.
 */
export async function loadCheckpoint(
  folder: string,
  ranks: CheckpointRanks,
  labels: TrainingPlace['labels'],
): Promise<LoadedCheckpoint | undefined> {
  checkRanks(ranks);
  await checkOnAll(folder, ranks, labels);
  const skipped: string[] = [];
  for await (const step of stepsOf(folder, ranks)) {
    const own = folderOfStep(folder, step);
    const found = tryLoading(own, ranks, labels);
    const ofAnother = found instanceof Error && isOfAnother(found);
    const damaged = await ranksWhere(ranks, found instanceof Error && !ofAnother);
    if (damaged.length === 0) {
      const [rank] = await ranksWhere(ranks, ofAnother);
      if (found instanceof Error) throw found;
      if (rank !== undefined) throw otherRun(own, rank);
      tellOf(skipped, ranks, `the run goes on from ${own}`);
      return found;
    }
    skipped.push(reason(own, found, damaged));
  }
  if (skipped.length === 0) return undefined;
  throw new GradlinkError(
    'ERR_SYSTEM',
    `no checkpoint in ${folder} is complete: ${skipped.join('; ')}; give the run another folder, or remove them to begin ` +
      'anew',
    { usable: true },
  );
}

/** Exchanges the arguments' validity: if one rank's are invalid, all fail. */
async function checkOnAll(
  folder: string,
  ranks: CheckpointRanks,
  labels: TrainingPlace['labels'],
): Promise<void> {
  let wrong: Error | undefined;
  try {
    checkFolder(folder);
    checkLabels(labels, 'labels');
  } catch (error) {
    wrong = error as Error;
  }
  const [rank] = await ranksWhere(ranks, wrong !== undefined);
  if (wrong !== undefined) throw wrong;
  if (rank === undefined) return;
  const message = `loadCheckpoint: rank ${rank} gave arguments that are wrong; its own error says which`;
  throw new GradlinkError('ERR_ABORTED', message, { op: 'loadCheckpoint', rank, usable: true });
}

/** Rank 0's steps, latest first. */
async function* stepsOf(folder: string, ranks: CheckpointRanks): AsyncGenerator<number> {
  let failure: GradlinkError | undefined;
  let steps: number[] = [];
  if (ranks.rank === 0) {
    try {
      steps = completedSteps(folder);
    } catch (cause) {
      failure = fileFailure(folder, 'read', cause);
    }
  }
  const none = -1;
  const failed = -2;
  for (let at = 0; ; ++at) {
    const next = Float64Array.of(failure === undefined ? (steps[at] ?? none) : failed);
    await ranks.broadcast(next);
    const [step = none] = next;
    if (step === none) return;
    if (step === failed) {
      const message = `rank 0 cannot read ${folder}; its own error says why`;
      throw failure ?? new GradlinkError('ERR_SYSTEM', message, { rank: 0, usable: true });
    }
    yield step;
  }
}

/** The error of a checkpoint of another run; undefined if labels match. */
function labelMismatch(
  { folder, labels: written }: Checkpoint,
  labels: TrainingPlace['labels'],
): GradlinkError | undefined {
  for (const [name, value] of Object.entries(labels)) {
    if (written[name] === value) continue;
    const got = written[name] ?? 'unknown';
    return new GradlinkError(
      'ERR_MISMATCH',
      `expected a checkpoint of ${name} ${value} in ${folder}, got one of ${got}; give the run another folder, or ` +
        'remove it',
      { usable: true },
    );
  }
  return undefined;
}

function otherRun(own: string, rank: number): GradlinkError {
  const message = `rank ${rank} expected a checkpoint of another run than ${own}; its own error says which`;
  return new GradlinkError('ERR_MISMATCH', message, { rank, usable: true });
}

const isOfAnother = ({ code }: GradlinkError): boolean => code === 'ERR_MISMATCH';

/** Loads this rank's arrays and verifies its share of the other files; returns the error otherwise. */
function tryLoading(
  own: string,
  ranks: CheckpointRanks,
  labels: TrainingPlace['labels'],
): LoadedCheckpoint | GradlinkError {
  try {
    const marked = readMarker(own);
    const mismatch = labelMismatch(marked.checkpoint, labels);
    if (mismatch !== undefined) return mismatch;
    return { checkpoint: marked.checkpoint, arrays: readShare(own, marked, ranks) };
  } catch (cause) {
    return fileFailure(own, 'read', cause);
  }
}

function readShare(own: string, { files }: Marked, { rank, size }: CheckpointRanks): NamedArray[] {
  for (const { name } of files) ownEntry(join(own, name), 'file');
  const share = files.filter((_, at) => at % size === rank && at !== rank % files.length);
  for (const file of share) checkTensors(join(own, file.name), digestOf(file));
  const file = files[rank % files.length]!;
  return readTensors(join(own, file.name), digestOf(file));
}

function digestOf({ bytes, sha256 }: Partial<Digest>): Digest | undefined {
  return bytes === undefined || sha256 === undefined ? undefined : { bytes, sha256 };
}

function reason(
  own: string,
  found: LoadedCheckpoint | GradlinkError,
  damaged: readonly number[],
): string {
  if (found instanceof Error) return found.message;
  const who = damaged.length === 1 ? `rank ${damaged[0]}` : `ranks ${damaged.join(', ')}`;
  return `${own} cannot be read by ${who}`;
}

/** Each rank warns, because only those that found a damage know it. */
function tellOf(skipped: readonly string[], { rank }: CheckpointRanks, instead: string): void {
  if (skipped.length === 0) return;
  process.emitWarning(`rank ${rank}: ${skipped.join('; ')}; ${instead}`, {
    type: 'GradlinkWarning',
    code: 'GRADLINK_CHECKPOINT_SKIPPED',
  });
}
