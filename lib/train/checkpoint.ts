// What a run leaves behind from time to time, so that another can go on from there, with another number of ranks too.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { GradlinkError } from '../errors.js';
import { optionNames, optionsObject } from '../validate.js';
import { readTensors, writeTensors, writeWhole, type NamedArray } from './tensor-file.js';

export type { NamedArray } from './tensor-file.js';

/** Where a run is. */
export interface TrainingPlace {
  /** Steps taken. */
  readonly step: number;
  /** By all ranks together. */
  readonly samplesSeen: number;
  /** What the run must be like to go on from here, the name of the model for example. */
  readonly labels: Readonly<Record<string, string>>;
}

/** A checkpoint that all ranks have written their part of. */
export interface Checkpoint extends TrainingPlace {
  /** Its own folder. */
  readonly folder: string;
  /** Ranks that wrote it. */
  readonly size: number;
}

/** Of the communicator of the ranks: what a checkpoint needs. */
export interface CheckpointRanks {
  readonly rank: number;
  readonly size: number;
  barrier(): Promise<void>;
  broadcast(data: Float64Array): Promise<unknown>;
}

const completeFile = 'complete.json';
const pattern = /^checkpoint-(\d+)$/;
const rankFile = (rank: number): string => `rank-${rank}.safetensors`;

/** Options of {@link saveCheckpoint}. */
export interface SaveOptions {
  /** Complete checkpoints that stay; at least 1, 2 when absent. */
  readonly keep?: number | undefined;
}

const saveNames = optionNames<SaveOptions>({ keep: true });

/**
 * Writes this rank's arrays; every rank calls it. It counts once all ranks have written theirs: a rank that is lost
 * before leaves the one before as the last. `folder` is one that all ranks' hosts share.
 *
 * @returns the checkpoint's own folder.
 */
export async function saveCheckpoint(
  folder: string,
  ranks: CheckpointRanks,
  place: TrainingPlace,
  arrays: readonly NamedArray[],
  options?: SaveOptions,
): Promise<string> {
  const { keep = 2 } = optionsObject(options, saveNames, 'saveCheckpoint');
  const own = join(folder, `checkpoint-${place.step}`);
  mkdirSync(own, { recursive: true });
  writeTensors(join(own, rankFile(ranks.rank)), arrays);
  await ranks.barrier();
  if (ranks.rank === 0) {
    writeWhole(join(own, completeFile), [JSON.stringify({ ...place, size: ranks.size })]);
    for (const { folder: old } of completeCheckpoints(folder).slice(Math.max(1, keep))) {
      // First it stops to count, for removing takes time in which this process may be lost.
      rmSync(join(old, completeFile));
      rmSync(old, { recursive: true, force: true });
    }
  }
  return own;
}

/** The complete checkpoints of a folder, the last first. */
export function completeCheckpoints(folder: string): Checkpoint[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => pattern.test(name))
    .sort((one, other) => stepOf(other) - stepOf(one))
    .map((name) => join(folder, name))
    .flatMap((own) => {
      const place = placeIfComplete(own);
      return place === undefined ? [] : [{ ...place, folder: own }];
    });
}

function stepOf(name: string): number {
  return Number(pattern.exec(name)?.[1] ?? '-1');
}

/** Undefined where it is not complete yet, or being removed by rank 0 at this moment. */
function placeIfComplete(own: string): Omit<Checkpoint, 'folder'> | undefined {
  try {
    return readPlace(join(own, completeFile));
  } catch (error) {
    const { cause } = error as { readonly cause?: NodeJS.ErrnoException };
    if (cause?.code === 'ENOENT') return undefined;
    throw error;
  }
}

function readPlace(path: string): Omit<Checkpoint, 'folder'> {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Omit<Checkpoint, 'folder'>;
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new GradlinkError('ERR_SYSTEM', `${path} cannot be read: ${why}`, { cause });
  }
}

/**
 * The last complete checkpoint, the same on every rank, and the arrays that this rank goes on from: those it wrote, or,
 * where there were fewer ranks, those of rank modulo their number. Every rank calls it.
 *
 * @returns undefined where there is none.
 * @throws GradlinkError ERR_MISMATCH where it is of a run with other labels, ERR_SYSTEM where it is damaged.
 */
export async function loadCheckpoint(
  folder: string,
  ranks: CheckpointRanks,
  labels: TrainingPlace['labels'],
): Promise<{ readonly checkpoint: Checkpoint; readonly arrays: NamedArray[] } | undefined> {
  const last = new Float64Array([completeCheckpoints(folder)[0]?.step ?? -1]);
  await ranks.broadcast(last);
  const [step = -1] = last;
  if (step < 0) return undefined;
  const own = join(folder, `checkpoint-${step}`);
  const checkpoint: Checkpoint = { ...readPlace(join(own, completeFile)), folder: own };
  for (const [name, value] of Object.entries(labels)) {
    const written = checkpoint.labels[name];
    if (written !== value) {
      throw new GradlinkError(
        'ERR_MISMATCH',
        `expected a checkpoint of ${name} ${value} in ${own}, got one of ${written ?? 'unknown'}; give the run ` +
          'another folder, or remove it',
      );
    }
  }
  const arrays = readTensors(join(own, rankFile(ranks.rank % checkpoint.size)));
  return { checkpoint, arrays };
}
