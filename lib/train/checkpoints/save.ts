// Writes a checkpoint: each rank its arrays, then rank 0 the marker.
import { dirname, join } from 'node:path';

import { GradlinkError } from '../../errors.js';
import { fileFailure, makeOwnFolder, syncFolder } from '../../files/index.js';
import { integer, maxInt32, optionNames, optionsObject } from '../../checks.js';
import { checkArrays, checkFolder, checkPlace, checkRanks } from './arguments.js';
import { markedAt, removeOld, removePart, removeReplaced, removeUnfinished } from './folder.js';
import { rankFile, readMarker, writeMarker, type RankFile, folderOfStep } from './marker.js';
import { exchangeParts, exchangePlaces, type PlaceNumbers } from './parts.js';
import { writeTensors } from './tensor-file.js';
import { encodeHeader } from './tensor-header.js';
import type { CheckpointRanks, NamedArray, SaveOptions, TrainingPlace } from './types.js';

const saveNames = optionNames<SaveOptions>({ keep: true });

/**
 * Writes this rank's arrays; every rank calls it. The checkpoint is complete once all ranks have written theirs; until
 * then the previous one stays the last. All hosts must share `folder`.
 *
 * If a rank cannot write, for example because the disk is full, all ranks fail and this checkpoint is removed. The
 * communicator stays usable.
 *
 * @returns the checkpoint's own folder.
 * @throws GradlinkError ERR_SYSTEM if a rank cannot write; ERR_MISMATCH on every rank, before anything is written, if
 *   steps or seen samples differ.
 */
export async function saveCheckpoint(
  folder: string,
  ranks: CheckpointRanks,
  place: TrainingPlace,
  arrays: readonly NamedArray[],
  options?: SaveOptions,
): Promise<string> {
  checkRanks(ranks);
  let keep = 2;
  try {
    ({ keep = keep } = optionsObject(options, saveNames, 'saveCheckpoint'));
    integer(keep, 'keep', 1, maxInt32);
    checkFolder(folder);
    checkPlace(place);
    checkArrays(arrays);
    encodeHeader(arrays);
  } catch (error) {
    // Tell the waiting ranks that this one has nothing to save.
    await exchangePlaces(ranks, undefined).catch(() => undefined);
    throw error;
  }
  const own = folderOfStep(folder, place.step);
  // Before any change: each step has its own folder.
  assertTogether(own, await exchangePlaces(ranks, place));
  // Keep a whole checkpoint of this step until the new one is complete.
  const again = markedAt(own)?.files[ranks.rank]?.name === rankFile(ranks.rank);
  const name = rankFile(ranks.rank, again);
  if (ranks.rank === 0) {
    tidy(folder, () => {
      removeUnfinished(folder, place.step);
    });
  }
  const part = attempt(own, () => {
    makeOwnFolder(own);
    return { name, ...writeTensors(join(own, name), arrays) };
  });
  try {
    await complete(own, place, ranks, again, part);
  } catch (error) {
    // If ranks were lost, it is unknown here whether the checkpoint is complete.
    if (error instanceof FailedSave) removePart(own, name);
    throw error instanceof FailedSave ? error.cause : error;
  }
  if (ranks.rank === 0) {
    tidy(folder, () => {
      removeReplaced(own, readMarker(own));
      removeOld(folder, place.step, keep);
    });
  }
  return own;
}

/** The same on every rank: all throw or none. */
function assertTogether(own: string, places: readonly (PlaceNumbers | undefined)[]): void {
  const lost = places.indexOf(undefined);
  if (lost >= 0) throw lostPart(own, lost, 'its part of');
  const first = places[0]!;
  for (const name of ['step', 'samplesSeen'] as const) {
    const rank = places.findIndex((one) => one![name] !== first[name]);
    if (rank < 0) continue;
    const message =
      `saveCheckpoint: ${name} is ${first[name]} on rank 0 and ${places[rank]![name]} on rank ${rank}: ` +
      'save on all ranks after the same step. Nothing was written';
    throw new GradlinkError('ERR_MISMATCH', message, { op: 'saveCheckpoint', rank, usable: true });
  }
}

/** A failure on all ranks. */
class FailedSave extends Error {}

async function complete(
  own: string,
  place: TrainingPlace,
  ranks: CheckpointRanks,
  again: boolean,
  part: RankFile | GradlinkError,
): Promise<void> {
  const parts = await exchangeParts(ranks, again, part);
  const lost = parts.indexOf(undefined);
  if (lost >= 0) {
    const why = part instanceof GradlinkError ? part : lostPart(own, lost, 'its part of');
    throw new FailedSave('a part was not written', { cause: why });
  }
  const marked = attempt(own, () => {
    if (ranks.rank !== 0) return;
    syncFolder(dirname(own));
    writeMarker(own, place, parts as RankFile[]);
  });
  const failed = Float64Array.of(marked instanceof GradlinkError ? 1 : 0);
  await ranks.broadcast(failed);
  if (failed[0] !== 0) {
    throw new FailedSave('the mark was not written', {
      cause: marked ?? lostPart(own, 0, 'the mark of'),
    });
  }
}

function attempt<T>(path: string, work: () => T): T | GradlinkError {
  try {
    return work();
  } catch (cause) {
    return fileFailure(path, 'written', cause);
  }
}

function lostPart(own: string, rank: number, what: string): GradlinkError {
  const message = `rank ${rank} could not write ${what} ${own}; its own error says why. Nothing of it is kept`;
  return new GradlinkError('ERR_SYSTEM', message, { rank, usable: true });
}

/** Ignores errors of removal. */
function tidy(folder: string, remove: () => void): void {
  try {
    remove();
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    process.emitWarning(
      `old checkpoints in ${folder} cannot be removed: ${why}`,
      'GradlinkWarning',
    );
  }
}
