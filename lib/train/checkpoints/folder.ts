// The folder of a run's checkpoints: which there are, and which have had their day.
import { existsSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { checkFolder, fileFailure, hasCode, isOwnFolder, ownFile } from '../../files/index.js';
import { markerFile, readMarker, type Marked, folderOfStep, stepOf } from './marker.js';
import type { Checkpoint } from './types.js';

/** The steps of all checkpoints that were begun, the last first. */
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

/** Whether all ranks had written theirs, damaged or not since. */
export function wasCompleted(folder: string, step: number): boolean {
  return existsSync(join(folderOfStep(folder, step), markerFile));
}

/** The steps of those that were completed, damaged or not since, the last first. */
export function completedSteps(folder: string): number[] {
  return steps(folder).filter((step) => wasCompleted(folder, step));
}

/** Undefined where it is not complete, damaged, or being removed by rank 0 at this moment. */
export function markedAt(own: string): Marked | undefined {
  try {
    return readMarker(own);
  } catch {
    return undefined;
  }
}

/**
 * The complete checkpoints of a folder, the last first. Their marks are checked, their arrays are not: that is done by
 * loading one.
 */
export function completeCheckpoints(folder: string): Checkpoint[] {
  return steps(folder).flatMap((step) => markedAt(folderOfStep(folder, step))?.checkpoint ?? []);
}

/** The steps of those that may be removed: a link is not ours, and what another user has is not ours either. */
function ownSteps(folder: string): number[] {
  const all = steps(folder);
  if (all.length > 0) checkFolder(folder);
  return all.filter((step) => isOwnFolder(folderOfStep(folder, step)));
}

/** Removes what saves left that came to no end: room for the next one, of `step`. */
export function removeUnfinished(folder: string, step: number): void {
  for (const begun of ownSteps(folder)) {
    if (begun !== step && !wasCompleted(folder, begun)) remove(folderOfStep(folder, begun));
  }
}

/** Removes all but the last `keep` up to that of `step`; those behind it, which a run went back from, stay. */
export function removeOld(folder: string, step: number, keep: number): void {
  const before = ownSteps(folder).filter((other) => other < step && wasCompleted(folder, other));
  const whole = before.filter((other) => markedAt(folderOfStep(folder, other)) !== undefined);
  const staying = new Set(whole.slice(0, keep - 1));
  for (const other of before) {
    if (!staying.has(other)) remove(folderOfStep(folder, other));
  }
}

/** Removes from a checkpoint's own folder what `marked` does not name: parts that it replaced, and parts of files. */
export function removeReplaced(own: string, { files }: Marked): void {
  const staying = new Set([markerFile, ...files.map(({ name }) => name)]);
  for (const name of namesIn(own)) {
    const isOurs = name.startsWith('rank-') || name.endsWith('.partial');
    if (isOurs && !staying.has(name)) rmSync(join(own, name), { force: true });
  }
}

function remove(own: string): void {
  // First it stops to count, for removing takes time in which this process may be lost.
  rmSync(join(own, markerFile), { force: true });
  rmSync(own, { recursive: true, force: true });
}

/** Removes a rank's part of a save that failed, and the folder with the last of them. */
export function removePart(own: string, name: string): void {
  if (!isOwnFolder(own)) return;
  try {
    rmSync(ownFile(join(own, name)), { force: true });
    rmdirSync(own);
  } catch {
    // Others' parts are there, or a checkpoint that this one was to replace, or what made the save fail.
  }
}
