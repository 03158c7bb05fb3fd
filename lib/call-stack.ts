// Errors that native code makes on the way back from another thread, where no JavaScript is on the stack.
import { GradlinkError } from './errors.js';

/**
 * What `start` gives; a failure of native code carries the stack of this call. For what happens once, such as joining:
 * taking the stack costs microseconds, whether it is needed or not, and finds callers that do not await too.
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
