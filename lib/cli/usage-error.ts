// Errors that are the caller's to mend: exit status 2.

/** A wrong option or combination of options. `message` says what was expected, what came and what to do. */
export class UsageError extends Error {
  override readonly name = 'UsageError';

  /**
   * @param subject the option or argument at fault, `--gpus` for example
   * @param expected what would have been right
   * @param got what came, as the user wrote it
   * @param advice what to do about it; left out where `expected` already says it
   */
  constructor(subject: string, expected: string, got: string, advice?: string) {
    super(
      `${subject}: expected ${expected}, got ${got}.${advice === undefined ? '' : ` ${advice}`}`,
    );
  }
}
