// Finds the program's call into the library. The stack of a misuse error begins there, because Node shows the first
// line of an uncaught error's stack.
import { dirname, sep } from 'node:path';
import { pathToFileURL } from 'node:url';

import { ownFile } from './package-folder.js';

/** The public namespaces. */
const entries: Readonly<Record<string, unknown>>[] = [];

export function publish(entry: Readonly<Record<string, unknown>>): void {
  entries.push(entry);
}

type Callable = (...args: never) => unknown;

const isCallable = (value: unknown): value is Callable => typeof value === 'function';

const exported = (name: string): unknown =>
  entries.find((entry) => Object.hasOwn(entry, name))?.[name];

/** A method of a class or its base classes. */
function methodOf(start: unknown, name: string): Callable | undefined {
  for (let at = start; at !== null && at !== undefined; at = Object.getPrototypeOf(at) as unknown) {
    const own = Object.getOwnPropertyDescriptor(at, name) as Record<string, unknown> | undefined;
    const found = [own?.['value'], own?.['set'], own?.['get']].find(isCallable);
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * The public function with this name in a stack: `KVStore.create`, or `Module.ringGraph`, as Node names a function
 * called through a namespace.
 */
function published(name: string): Callable | undefined {
  const [first = '', method] = name.split('.');
  const found = exported(first);
  if (method === undefined) return isCallable(found) ? found : undefined;
  if (isCallable(found)) return methodOf(found.prototype, method) ?? methodOf(found, method);
  const alone = exported(method);
  return isCallable(alone) ? alone : undefined;
}

/** At most this many library frames above the program's are searched. */
const mostFrames = 50;

/** Drops the library's frames above the program's call of a public function. GRADLINK_DEBUG keeps them. */
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
  // Fails silently where intrinsics are frozen.
  Reflect.set(Error, 'stackTraceLimit', mostFrames);
  Error.captureStackTrace(here, beginAtCaller);
  Reflect.set(Error, 'stackTraceLimit', stackTraceLimit);
  // Can be anything if the program set Error.prepareStackTrace.
  const text = typeof here.stack === 'string' ? here.stack : '';
  return text.split('\n').filter((line) => line.startsWith('    at '));
}
