// What the folders of checkpoints are called.
import { join } from 'node:path';

const pattern = /^checkpoint-(\d{1,15})$/;

/** Of a checkpoint's own folder, by its name; -1 for any other. */
export function stepOf(name: string): number {
  return Number(pattern.exec(name)?.[1] ?? '-1');
}

export function folderOfStep(folder: string, step: number): string {
  return join(folder, `checkpoint-${step}`);
}
