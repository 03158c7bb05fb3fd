// Reads this process's rank from the variables of mpirun or srun.

export interface KeeperPlace {
  /** MPI rank: workers first, then servers. */
  readonly place: number;
  /** Its number among the job's processes of this host, and their count, if its starter tells. */
  readonly localRank?: number;
  readonly localSize?: number;
}

type Env = Readonly<Record<string, string | undefined>>;

/** What mpirun and srun tell: rank, rank on its host, ranks of its host. */
export const launcherVariables = [
  ['OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_LOCAL_RANK', 'OMPI_COMM_WORLD_LOCAL_SIZE'],
  ['PMI_RANK', 'MPI_LOCALRANKID', 'MPI_LOCALNRANKS'],
  ['SLURM_PROCID', 'SLURM_LOCALID', 'SLURM_STEP_TASKS_PER_NODE'],
  ['PMIX_RANK', 'PMIX_LOCAL_RANK', 'PMIX_LOCAL_SIZE'],
] as const;

export function countIn(text: string | undefined): number | undefined {
  // Slurm writes 2(x3) for three nodes with 2 tasks each; 4,2 does not tell which node is this one.
  const [, digits] = /^(\d+)(?:\(x\d+\))?$/.exec(text ?? '') ?? [];
  return digits === undefined ? undefined : Number(digits);
}

/** @returns undefined if neither mpirun nor srun started this process */
export function keeperPlace(env: Env): KeeperPlace | undefined {
  for (const [rank, localRank, localSize] of launcherVariables) {
    const found = countIn(env[rank]);
    if (found === undefined) continue;
    const local = countIn(env[localRank]);
    const size = countIn(env[localSize]);
    return {
      place: found,
      ...(local === undefined ? {} : { localRank: local }),
      ...(local === undefined || size === undefined ? {} : { localSize: size }),
    };
  }
  return undefined;
}
