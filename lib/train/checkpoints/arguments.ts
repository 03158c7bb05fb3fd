// Validates the arguments of save and load before anything is written. Other ranks are notified (save.ts, load.ts), as
// they would wait for this one.
import { argumentError } from '../../errors.js';
import { integer, maxInt32, nonEmpty } from '../../checks.js';
import type { CheckpointRanks, NamedArray, TrainingPlace } from './types.js';

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;
const isFunction = (value: unknown): boolean => typeof value === 'function';

/** Validates the communicator first: without it the others cannot be notified. */
export function checkRanks(ranks: unknown): void {
  const { allReduce, broadcast, rank, size } = (
    isObject(ranks) ? ranks : {}
  ) as Partial<CheckpointRanks>;
  if (!isFunction(allReduce) || !isFunction(broadcast) || typeof rank !== 'number') {
    throw argumentError('ERR_INVALID_ARG_TYPE', 'ranks', "a rank's communicator", ranks);
  }
  integer(rank, 'ranks.rank', 0, integer(size, 'ranks.size', 1, maxInt32) - 1);
}

export function checkFolder(folder: unknown): void {
  nonEmpty(folder, 'folder');
}

export function checkPlace(place: TrainingPlace): void {
  if (!isObject(place)) {
    throw argumentError('ERR_INVALID_ARG_TYPE', 'place', 'an object with step', place);
  }
  integer(place.step, 'place.step', 0, Number.MAX_SAFE_INTEGER);
  integer(place.samplesSeen, 'place.samplesSeen', 0, Number.MAX_SAFE_INTEGER);
  checkLabels(place.labels, 'place.labels');
}

export function checkLabels(labels: unknown, name: string): void {
  const texts = isObject(labels) && !Array.isArray(labels) ? Object.values(labels) : undefined;
  if (texts?.every((value) => typeof value === 'string') !== true) {
    throw argumentError('ERR_INVALID_ARG_TYPE', name, 'an object of strings', labels);
  }
}

export function checkArrays(arrays: unknown): void {
  if (!Array.isArray(arrays)) {
    throw argumentError('ERR_INVALID_ARG_TYPE', 'arrays', 'an array of named arrays', arrays);
  }
  arrays.forEach((array: unknown, at) => {
    const { name, shape, data } = (isObject(array) ? array : {}) as Partial<NamedArray>;
    const own = `arrays[${at}]`;
    if (typeof name !== 'string') {
      throw argumentError('ERR_INVALID_ARG_TYPE', `${own}.name`, 'a string', name);
    }
    if (!(data instanceof Float32Array) && !(data instanceof Int32Array)) {
      const expected = 'a Float32Array or an Int32Array';
      throw argumentError('ERR_INVALID_ARG_TYPE', `${own}.data`, expected, data);
    }
    if (!Array.isArray(shape)) {
      throw argumentError('ERR_INVALID_ARG_TYPE', `${own}.shape`, 'an array of numbers', shape);
    }
  });
}
