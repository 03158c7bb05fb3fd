// What `gradlink launch` says: the commands of a dry run, and how a job ended.
import { sharedText, visibleGpus, workerShare } from '../../launch/gpus.js';
import { jobVariable, type JobSpec, type Launcher, type ProcessPlan } from '../../launch/job.js';
import type { Member } from '../../launch/members.js';
import { roleEnvVariable } from '../../launch/role-env.js';
import type { Failure, JobResult } from '../../launch/run-job.js';
import { shownVariables } from '../../results/shown-variables.js';

function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** The names of the variables that the user gives a job and whose values, as in reports, are not shown. */
export function hiddenVariables({ env, roleEnv }: JobSpec): ReadonlySet<string> {
  const given = [env, roleEnv?.worker ?? {}, roleEnv?.server ?? {}].flatMap(Object.keys);
  // That of the keepers holds those of a role.
  return new Set([...given.filter((name) => !shownVariables.has(name)), roleEnvVariable]);
}

/** The line a shell would take to start the process; the job's secret and what is `hidden` are not shown. */
export function shellLine(plan: ProcessPlan, hidden: ReadonlySet<string>): string {
  const shown = (name: string, value: string): string =>
    name === jobVariable ? 'SECRET' : hidden.has(name) ? '…' : quote(value);
  const variables = Object.entries(plan.env).map(
    ([name, value]) => `${name}=${shown(name, value)}`,
  );
  const bound = plan.cores === undefined ? [] : ['taskset', '-c', plan.cores.join(',')];
  return [...variables, ...bound, ...plan.command.map(quote)].join(' ');
}

/** What there is to say of the GPUs of this host's workers; those of other hosts say it themselves. */
export function gpuNotes(launcher: Launcher, job: JobSpec): string {
  const { gpusPerWorker: each } = job;
  if (each === undefined || launcher.remote === true) return '';
  const env = { ...job.outerEnv, ...job.env };
  const { length: gpus } = visibleGpus(env);
  if (gpus === 0) return 'gradlink launch: --gpus-per-worker: this host shows no GPU to give.\n';
  const shares = Math.max(Math.floor(gpus / each), 1);
  return Array.from({ length: Math.min(shares, job.workers) }, (_, localRank) => {
    const share = workerShare({ localRank, localSize: job.workers }, env, undefined, each);
    const text = share === undefined ? undefined : sharedText('workers', share, each);
    return text === undefined ? '' : `gradlink launch: ${text}.\n`;
  }).join('');
}

/** `rank 1 (process 4711)`, `server 0 (process 4712 on node2)`, `mpirun (process 4713)`. */
function nameOf({ role, index, label, pid, host }: Member): string {
  const name =
    role === undefined ? label : `${role === 'server' ? 'server' : 'rank'} ${String(index)}`;
  const where = host === undefined ? '' : ` on ${host}`;
  return pid === undefined ? name : `${name} (process ${String(pid)}${where})`;
}

function describeFailure({ member, what, lastLines }: Failure, consequence: string): string[] {
  const told = `gradlink launch: ${nameOf(member)} ${what}; ${consequence}.`;
  if (lastLines.length === 0) return [told];
  return [told, 'Its last lines:', ...lastLines.map((line) => `  ${line}`)];
}

/** What the user is told of a job that did not simply go well; empty where it did. */
export function explain({ interruption, tolerated, survivors, crowd, midLine }: JobResult): string {
  const lines = tolerated.flatMap((failure) =>
    describeFailure(failure, 'the job went on without it'),
  );
  switch (interruption?.kind) {
    case 'failure':
      lines.push(...describeFailure(interruption.failure, 'the job was ended'));
      break;
    case 'timeout': {
      const seconds = String(interruption.timeoutMs / 1000);
      lines.push(`gradlink launch: the job was ended after ${seconds} s (--timeout).`);
      break;
    }
    case 'signal':
      lines.push(`gradlink launch: the job was ended by ${interruption.signal}.`);
      break;
    case undefined:
      break;
  }
  if (interruption !== undefined && crowd > 0) {
    lines.push(
      `gradlink launch: not all of the job's processes connected, but ${String(crowd)} connections came without the job's secret. They may have kept processes away: see who else can reach this host.`,
    );
  }
  if (survivors.length > 0) {
    lines.push(`gradlink launch: these processes could not be ended: ${survivors.join(', ')}.`);
  }
  const begin = midLine && lines.length > 0 ? '\n' : '';
  return begin + lines.map((line) => `${line}\n`).join('');
}
