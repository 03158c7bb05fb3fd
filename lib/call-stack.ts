// Errors that native code creates while returning from another thread, where no JavaScript is on the stack.
import { GradlinkError } from './errors.js';

/**
 * Awaits `start` and gives a native failure the stack of this call. Only for rare calls such as joining: capturing the
 * stack takes microseconds even on success.
 */
export async function withCallStack<T>(start: () => Promise<T>): Promise<T> {
  const here: { stack?: string } = {};
  Error.captureStackTrace(here, withCallStack);
  try {
    return await start();
  } catch (error) {
    if (error instanceof GradlinkError) {
      const frames = (here.stack ?? '').split('\n').slice(1).join('\n');
      error.stack = `${error.name}: ${error.message}\n${frames}`;
    }
    throw error;
  }
}
