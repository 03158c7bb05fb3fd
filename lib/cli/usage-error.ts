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
  static of(subject: string, expected: string, got: string, advice?: string): UsageError {
    const sentence = `${subject}: expected ${expected}, got ${got}.`;
    return new UsageError(advice === undefined ? sentence : `${sentence} ${advice}`);
  }
}

/** What the library calls the options, and what the user typed. */
const optionNames: Readonly<Record<string, string>> = {
  numLayers: '--num-layers',
  imageShape: '--image-shape',
  numClasses: '--num-classes',
  multiplier: '--multiplier',
  network: '--network',
  workers: '--workers',
  merge: '--merge',
  peer: '--no-peer',
};

/**
 * Runs a check of the library on what the user typed: its TypeErrors and RangeErrors of misuse, which say what was
 * expected and what came, become usage errors that name the options.
 */
export function asUsage<T>(check: () => T): T {
  try {
    return check();
  } catch (error) {
    const misuse = error instanceof TypeError || error instanceof RangeError;
    if (!misuse || !('code' in error)) throw error;
    const named = error.message
      .replace(/ for (\w+)\b/g, (_, name: string) => ` for ${optionNames[name] ?? name}`)
      // Of a rule, what it is about comes first.
      .replace(/^(\w+)(?= needs | \d+:)/, (_, name: string) => optionNames[name] ?? name)
      .replace("store type 'device' on GPUs", '--kv-store device on --gpus');
    throw new UsageError(`${named}.`);
  }
}
