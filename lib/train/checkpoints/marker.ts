// The marker that completes a checkpoint: the sizes and digests of all ranks' files, and its own checksum at the end.
import { createHash } from 'node:crypto';
import { basename, join } from 'node:path';

import { fileFailure, ownEntry, readRegular, writeOwnFile } from '../../files/index.js';
import { parseJson } from '../../files/json-text.js';
import type { Digest } from './tensor-file.js';
import { DamagedFile } from './tensor-header.js';
import type { Checkpoint, TrainingPlace } from './types.js';

const folderName = /^checkpoint-(\d{1,15})$/;

/** The step of a checkpoint's folder name; -1 for others. */
export function stepOf(name: string): number {
  return Number(folderName.exec(name)?.[1] ?? '-1');
}

export function folderOfStep(folder: string, step: number): string {
  return join(folder, `checkpoint-${step}`);
}

/** A rank's file in its checkpoint folder. */
export interface RankFile extends Digest {
  readonly name: string;
}

/** A checkpoint with one file per rank; without digests if written by version 0.2 or earlier. */
export interface Marked {
  readonly checkpoint: Checkpoint;
  readonly files: readonly (RankFile | (Pick<RankFile, 'name'> & Partial<Digest>))[];
}

export const markerFile = 'complete.json';
/** Enough for a million ranks. */
const mostBytes = 2 ** 28;
const version = 2;
/** The checksum is the last member and covers all text before it. */
const sealed = /^(\{.*),"checksum":"([0-9a-f]{64})"\}\n$/s;
const rankFilePattern = /^rank-(\d+)(?:\.again)?\.safetensors$/;

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/**
 * The name of a rank's file; `again` selects the other name if the first is part of a checkpoint that is being
 * replaced.
 */
export function rankFile(rank: number, again = false): string {
  return `rank-${rank}${again ? '.again' : ''}.safetensors`;
}

/** Completes the checkpoint. */
export function writeMarker(own: string, place: TrainingPlace, files: readonly RankFile[]): void {
  const { step, samplesSeen, labels } = place;
  const content = { format: version, step, samplesSeen, labels, size: files.length, files };
  const head = JSON.stringify(content).slice(0, -1);
  writeOwnFile(join(own, markerFile), [`${head},"checksum":"${sha256(head)}"}\n`]);
}

/**
 * @throws GradlinkError ERR_SYSTEM if it is absent or damaged; `cause.code` is ENOENT if the checkpoint is not complete
 *   yet, or is being removed
 */
export function readMarker(own: string): Marked {
  const path = join(own, markerFile);
  try {
    ownEntry(own, 'folder');
    ownEntry(path, 'file');
    return decode(readRegular(path, mostBytes), own);
  } catch (cause) {
    throw fileFailure(path, 'read', cause);
  }
}

function decode(bytes: Uint8Array, own: string): Marked {
  const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  const [, head, checksum] = sealed.exec(text) ?? [];
  if (head !== undefined && sha256(head) !== checksum) {
    throw new DamagedFile('its checksum does not match, so it was altered');
  }
  const content = parseJson(text, (why) => new DamagedFile(`it is ${why}`));
  if (typeof content !== 'object' || content === null) throw new DamagedFile('it is not an object');
  const marked = head === undefined ? decodeOld(content, own) : decodeSealed(content, own);
  const { step } = marked.checkpoint;
  if (step !== stepOf(basename(own))) {
    throw new DamagedFile(`it is for step ${step}, in a folder for ${basename(own)}`);
  }
  return marked;
}

type Members = Readonly<Record<string, unknown>>;

function decodeSealed(content: object, own: string): Marked {
  const members = content as Members;
  if (members.format !== version) {
    const shown = JSON.stringify(members.format);
    throw new DamagedFile(`it has format ${shown}, expected ${version}: another gradlink wrote it`);
  }
  const checkpoint = checkpointOf(members, own);
  const { files } = members;
  if (!Array.isArray(files) || files.length !== checkpoint.size || !files.every(isRankFile)) {
    throw new DamagedFile(`it does not name a file for each of ${checkpoint.size} ranks`);
  }
  return { checkpoint, files };
}

/** Exactly these members: an altered marker must not pass for an old one. */
const oldMembers = ['labels', 'samplesSeen', 'size', 'step'].join();

function decodeOld(content: object, own: string): Marked {
  if (Object.keys(content).sort().join() !== oldMembers) {
    throw new DamagedFile('it is not as it was written: it was cut short or altered');
  }
  const checkpoint = checkpointOf(content as Members, own);
  const ranks = Array.from({ length: checkpoint.size }, (_, rank) => rank);
  return { checkpoint, files: ranks.map((rank) => ({ name: rankFile(rank) })) };
}

function checkpointOf({ step, samplesSeen, labels, size }: Members, own: string): Checkpoint {
  if (!isCount(step)) throw damaged('step', step);
  if (!isCount(samplesSeen)) throw damaged('samplesSeen', samplesSeen);
  if (!isCount(size) || size < 1 || size > mostRanks) throw damaged('size', size);
  if (typeof labels !== 'object' || labels === null || !Object.values(labels).every(isText)) {
    throw damaged('labels', labels);
  }
  const checked = labels as Checkpoint['labels'];
  return { step, samplesSeen, labels: checked, size, folder: own };
}

/** Far more than any job, because a list of them is allocated. */
const mostRanks = 1_000_000;

const isText = (value: unknown): value is string => typeof value === 'string';
const isCount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;

function damaged(name: string, value: unknown): DamagedFile {
  return new DamagedFile(`its ${name} is ${JSON.stringify(value)}`);
}

function isRankFile(file: unknown, rank: number): file is RankFile {
  if (typeof file !== 'object' || file === null) return false;
  const { name, bytes, sha256: digest } = file as Members;
  return (
    isText(name) &&
    rankFilePattern.exec(name)?.[1] === String(rank) &&
    isCount(bytes) &&
    isText(digest) &&
    /^[0-9a-f]{64}$/.test(digest)
  );
}
