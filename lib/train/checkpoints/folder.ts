// The folder of a run's checkpoints: lists them and removes old ones.
import { existsSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { checkFolder, fileFailure, hasCode, isOwnFolder, ownFile } from '../../files/index.js';
import { markerFile, readMarker, type Marked, folderOfStep, stepOf } from './marker.js';
import type { Checkpoint } from './types.js';

/** The steps of all checkpoints, complete or not, latest first. */
function steps(folder: string): number[] {
  return namesIn(folder)
    .map(stepOf)
    .filter((step) => step >= 0)
    .sort((one, other) => other - one);
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return [];
    throw fileFailure(folder, 'read', error);
  }
}

/** Whether all ranks had written theirs, even if damaged since. */
export function wasCompleted(folder: string, step: number): boolean {
  return existsSync(join(folderOfStep(folder, step), markerFile));
}

/** The steps of completed checkpoints, even if damaged since, latest first. */
export function completedSteps(folder: string): number[] {
  return steps(folder).filter((step) => wasCompleted(folder, step));
}

/** Undefined if it is incomplete, damaged, or being removed by rank 0. */
export function markedAt(own: string): Marked | undefined {
  try {
    return readMarker(own);
  } catch {
    return undefined;
  }
}

/** The complete checkpoints of a folder, latest first. Checks markers but not arrays, which loading checks. */
export function completeCheckpoints(folder: string): Checkpoint[] {
  return steps(folder).flatMap((step) => markedAt(folderOfStep(folder, step))?.checkpoint ?? []);
}

/** Steps that may be removed: not links, and not other users' folders. */
function ownSteps(folder: string): number[] {
  const all = steps(folder);
  if (all.length > 0) checkFolder(folder);
  return all.filter((step) => isOwnFolder(folderOfStep(folder, step)));
}

/** Removes unfinished saves, to free space for the one of `step`. */
export function removeUnfinished(folder: string, step: number): void {
  for (const begun of ownSteps(folder)) {
    if (begun !== step && !wasCompleted(folder, begun)) remove(folderOfStep(folder, begun));
  }
}

/** Removes all but the last `keep` up to `step`; later ones, which a run went back from, stay. */
export function removeOld(folder: string, step: number, keep: number): void {
  const before = ownSteps(folder).filter((other) => other < step && wasCompleted(folder, other));
  const whole = before.filter((other) => markedAt(folderOfStep(folder, other)) !== undefined);
  const staying = new Set(whole.slice(0, keep - 1));
  for (const other of before) {
    if (!staying.has(other)) remove(folderOfStep(folder, other));
  }
}

/** Removes files that the marker does not name: replaced parts and partial files. */
export function removeReplaced(own: string, { files }: Marked): void {
  const staying = new Set([markerFile, ...files.map(({ name }) => name)]);
  for (const name of namesIn(own)) {
    const isOurs = name.startsWith('rank-') || name.endsWith('.partial');
    if (isOurs && !staying.has(name)) rmSync(join(own, name), { force: true });
  }
}

function remove(own: string): void {
  // Remove the marker first, because this process may be lost on the way.
  rmSync(join(own, markerFile), { force: true });
  rmSync(own, { recursive: true, force: true });
}

/** Removes a rank's part of a failed save, and the folder once empty. */
export function removePart(own: string, name: string): void {
  if (!isOwnFolder(own)) return;
  try {
    rmSync(ownFile(join(own, name)), { force: true });
    rmdirSync(own);
  } catch {
    // It still has others' parts, or a checkpoint to be replaced.
  }
}
