// The ranks of a job with servers, by the users' names.
import { GradlinkError } from '../../errors.js';

interface Roles {
  /** The number of workers, which are the first ranks. */
  readonly workers: number;
  /** The number of servers, which are the ranks after them. */
  readonly servers: number;
}

/** A join error with worker or server number instead of the rank. */
export function named(error: unknown, { workers, servers }: Roles): unknown {
  if (!(error instanceof GradlinkError) || servers === 0) return error;
  const { code, rank, op, usable } = error;
  const blame = blameOf(error);
  if (blame === undefined || rank === undefined || rank < 0) return error;
  const who = rank < workers ? `worker ${rank}` : `server ${rank - workers}`;
  const all =
    `. Ranks 0 to ${workers - 1} are the workers (WORLD_SIZE, for servers GRADLINK_NUM_WORKERS), ` +
    `${workers} to ${workers + servers - 1} the servers (GRADLINK_NUM_SERVERS)`;
  const message = `${who} ${blame}: ${error.message}${code === 'ERR_PEER_LOST' ? '' : all}`;
  const whose = op === undefined ? {} : { op };
  return new GradlinkError(code, message, { rank, usable, ...whose, cause: error });
}

function blameOf({ code, op }: GradlinkError): string | undefined {
  if (code === 'ERR_TIMEOUT') return 'has not joined';
  if (code === 'ERR_PEER_LOST') return 'was lost';
  // If stores differ, the message names the worker.
  return code === 'ERR_MISMATCH' && op === 'join' ? 'was given another rank' : undefined;
}
