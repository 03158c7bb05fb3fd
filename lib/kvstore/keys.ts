// The keys of one store: all ints or all strings, each with the length and type of its value.
import { argumentError, describe, ruleError } from '../errors.js';
import type { ArgumentError } from '../errors.js';
import { assertWellFormed } from '../checks.js';

/** An int (safe, so up to 53 bits) or a string. */
export type Key = number | string;

/** A key after its init. */
export interface KeyInfo {
  readonly key: Key;
  /** Its native number. */
  readonly id: number;
  readonly dtype: number;
  readonly count: number;
  /** Elements per row. */
  readonly rowLength: number;
}

export class KeyTable {
  readonly #infos = new Map<Key, KeyInfo>();
  readonly #byId: KeyInfo[] = [];
  #first: Key | undefined;

  /** @throws TypeError if the value is not a key of the store's kind */
  check(key: unknown): Key {
    if (typeof key === 'number') {
      if (!Number.isSafeInteger(key)) {
        throw argumentError(
          'ERR_INVALID_ARG_VALUE',
          'key',
          'an integer below 2^53 in size, or a string',
          key,
        );
      }
    } else if (typeof key !== 'string') {
      throw argumentError('ERR_INVALID_ARG_TYPE', 'key', 'an int or a string', key);
    } else {
      assertWellFormed(key, 'key');
    }
    if (this.#first !== undefined && typeof key !== typeof this.#first) {
      const kind = typeof this.#first === 'number' ? 'an int' : 'a string';
      throw argumentError(
        'ERR_INVALID_ARG_TYPE',
        'key',
        `${kind} (the keys of a store are all ints or all strings; this one's first was ${describe(this.#first)})`,
        key,
      );
    }
    return key;
  }

  /** @throws TypeError if the value is not a key or was never initialised */
  find(key: unknown): KeyInfo {
    const info = this.#infos.get(key as Key);
    if (info !== undefined) return info;
    const checked = this.check(key);
    throw ruleError(
      'ERR_INVALID_ARG_VALUE',
      `the key ${describe(checked)} was not initialised: call init first`,
    );
  }

  has(key: Key): boolean {
    return this.#infos.has(key);
  }

  add(info: KeyInfo): void {
    this.#first ??= info.key;
    this.#infos.set(info.key, info);
    this.#byId[info.id] = info;
  }

  some(is: (info: KeyInfo) => boolean): boolean {
    return this.#byId.some(is);
  }

  byId(id: number): KeyInfo | undefined {
    return this.#byId[id];
  }
}

/** The error of a second init of a key. */
export function duplicateKey(key: Key): ArgumentError {
  return argumentError(
    'ERR_INVALID_ARG_VALUE',
    'key',
    'a key that was not initialised before',
    key,
  );
}
