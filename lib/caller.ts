// Where a program called the library. An error of misuse begins its stack there: Node shows the line at which an uncaught
// error begins, and the library's own is of no help to anybody.
import { dirname, sep } from 'node:path';
import { pathToFileURL } from 'node:url';

import { ownFile } from './package-folder.js';

/** Namespaces of what users import. */
const entries: Readonly<Record<string, unknown>>[] = [];

export function publish(entry: Readonly<Record<string, unknown>>): void {
  entries.push(entry);
}

type Callable = (...args: never) => unknown;

const isCallable = (value: unknown): value is Callable => typeof value === 'function';

const exported = (name: string): unknown =>
  entries.find((entry) => Object.hasOwn(entry, name))?.[name];

/** A method of a class, or of what it extends. */
function methodOf(start: unknown, name: string): Callable | undefined {
  for (let at = start; at !== null && at !== undefined; at = Object.getPrototypeOf(at) as unknown) {
    const own = Object.getOwnPropertyDescriptor(at, name) as Record<string, unknown> | undefined;
    const found = [own?.['value'], own?.['set'], own?.['get']].find(isCallable);
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * What an entry has, by its name in a stack: `KVStore.create`, or `Module.ringGraph`, as Node has a function that was called
 * as an entry's.
 */
function published(name: string): Callable | undefined {
  const [first = '', method] = name.split('.');
  const found = exported(first);
  if (method === undefined) return isCallable(found) ? found : undefined;
  if (isCallable(found)) return methodOf(found.prototype, method) ?? methodOf(found, method);
  const alone = exported(method);
  return isCallable(alone) ? alone : undefined;
}

/** Frames of the library that lie before the program's; more are not taken. */
const mostFrames = 50;

/** Takes the library's frames off the stack, where a published function was called. GRADLINK_DEBUG keeps them. */
export function beginAtCaller<E extends Error>(error: E): E {
  if (process.env['GRADLINK_DEBUG'] !== undefined) return error;
  const folder = dirname(ownFile()) + sep;
  const places = [folder, pathToFileURL(folder).href];
  const frames = framesHere();
  const first = frames.findIndex((line) => !places.some((place) => line.includes(place)));
  const [, name] = /^ {4}at (?:new )?([\w$]+(?:\.[\w$]+)?) /.exec(frames[first - 1] ?? '') ?? [];
  const called = name === undefined ? undefined : published(name);
  if (called !== undefined) Error.captureStackTrace(error, called);
  return error;
}

function framesHere(): string[] {
  const { stackTraceLimit } = Error;
  const here: { stack?: unknown } = {};
  // Not where intrinsics are frozen.
  Reflect.set(Error, 'stackTraceLimit', mostFrames);
  Error.captureStackTrace(here, beginAtCaller);
  Reflect.set(Error, 'stackTraceLimit', stackTraceLimit);
  // Anything at all where the program has its own Error.prepareStackTrace.
  const text = typeof here.stack === 'string' ? here.stack : '';
  return text.split('\n').filter((line) => line.startsWith('    at '));
}
