import { expect } from 'vitest';

/** For toThrow and lists of what was thrown: the code, and the names and numbers that its message must have. */
export const errorWith = (code: string, tokens: RegExp): Error =>
  expect.objectContaining({
    code,
    message: expect.stringMatching(tokens) as string,
  }) as Error;
