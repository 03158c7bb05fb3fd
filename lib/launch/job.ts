// What a job is: a command started as several processes that know their places.

/** A job as the user asked for it. */
export interface JobSpec {
  /** Program and arguments, started without a shell. */
  readonly command: readonly [string, ...string[]];
  /** Number of worker processes, the ranks 0 to workers - 1. */
  readonly workers: number;
  /** Variables of every process of the job, on top of the launcher's environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Cores to share out among the processes of this host; none: they run where the kernel puts them. */
  readonly cores: readonly number[];
}

/** One process to start. A launcher for many hosts starts its remote shell or mpirun here instead of the command. */
export interface ProcessPlan {
  /** What the process is called in output tags and file names; `0` for rank 0. */
  readonly label: string;
  readonly command: readonly [string, ...string[]];
  /** Added to the launcher's own environment. */
  readonly env: Readonly<Record<string, string>>;
  /** The cores it is bound to; all where absent. */
  readonly cores?: readonly number[];
}

/** A way to place a job's processes. Registered in launchers.ts. */
export interface Launcher {
  readonly name: string;
  /** The processes in rank order; `jobId` is the secret that they recognise each other by. */
  plan(job: JobSpec, jobId: string): readonly ProcessPlan[];
}

/** The variable every process of a job carries; its value is the job's secret. */
export const jobVariable = 'GRADLINK_JOB';
