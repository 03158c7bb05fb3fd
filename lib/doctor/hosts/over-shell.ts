// Looks at the hosts of a hostfile, through ssh or what stands for it.
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { createInterface } from 'node:readline';

import { interfaceVariable, portsVariable } from '../../network.js';
import { packageFile } from '../../package-folder.js';
import type { HostSeen, HostUnseen } from './compare.js';
import type { HostFacts } from './facts.js';
import { othersOf, type Door, type Reached } from './reach.js';

/** A login, and libraries that take their time. */
const factsPatienceMs = 60_000;
/** Calls that nobody answers take five seconds a batch of them. */
const reachPatienceMs = 120_000;

/** A host that asks for a password would wait forever. */
const careful = ['-o', 'BatchMode=yes', '-o', 'ConnectTimeout=10'] as const;

function quote(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

/** The program and its arguments for one host, which is told by `env` on which network to listen: a login knows nothing. */
export function shellCommand(
  host: string,
  remoteShell: string | undefined,
  env: NodeJS.ProcessEnv = {},
): readonly string[] {
  const told = [interfaceVariable, portsVariable].flatMap((name) =>
    (env[name] ?? '') === '' ? [] : [`${name}=${env[name]}`],
  );
  const words = [process.execPath, packageFile('dist/doctor-host.js')];
  const all = told.length === 0 ? words : ['env', ...told, ...words];
  const remote = `exec ${all.map(quote).join(' ')}`;
  const shell = (remoteShell ?? '').split(/\s+/).filter((word) => word !== '');
  return [...(shell.length === 0 ? ['ssh', ...careful] : shell), host, remote];
}

/** The program on one host, asked line by line. */
class Remote {
  private readonly lines: AsyncIterator<string>;
  private complaint = '';
  private how = 'it ended';

  private constructor(private readonly child: ChildProcessWithoutNullStreams) {
    this.lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    child.stdin.on('error', () => undefined);
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.complaint = `${this.complaint}${text}`.slice(-500);
    });
    child.on('error', ({ message }) => (this.how = message));
    child.on('close', (code, signal) => {
      if (code !== null && code >= 0) this.how = `ended with status ${code}`;
      else if (signal !== null) this.how = `was ended by ${signal}`;
    });
  }

  static start(host: string, remoteShell: string | undefined, env: NodeJS.ProcessEnv): Remote {
    const [program = 'ssh', ...args] = shellCommand(host, remoteShell, env);
    return new Remote(spawn(program, args, { env, stdio: ['pipe', 'pipe', 'pipe'] }));
  }

  say(what: object): void {
    this.child.stdin.write(`${JSON.stringify(what)}\n`);
  }

  /** @throws Error that says why there is no line */
  async hear(patienceMs: number): Promise<Record<string, unknown>> {
    const state = { late: false };
    const timer = setTimeout(() => {
      state.late = true;
      this.child.kill('SIGKILL');
      this.child.stdout.destroy();
    }, patienceMs);
    try {
      const next = (await this.lines.next()) as IteratorResult<string, undefined>;
      if (state.late) throw new Error(`no answer within ${patienceMs / 1000} s`);
      if (next.done === true) throw new Error(await this.reason());
      const said = JSON.parse(next.value) as Record<string, unknown>;
      if (typeof said['error'] === 'string') throw new Error(said['error']);
      return said;
    } finally {
      clearTimeout(timer);
    }
  }

  private async reason(): Promise<string> {
    if (
      this.child.exitCode === null &&
      this.child.signalCode === null &&
      this.child.pid !== undefined
    )
      await new Promise((resolve) => this.child.once('close', resolve));
    return [this.how, this.complaint.trim().split('\n').at(-1) ?? '']
      .filter((part) => part !== '')
      .join(': ');
  }

  async end(): Promise<void> {
    if (this.child.pid === undefined || this.child.exitCode !== null) return;
    const closed = new Promise((resolve) => this.child.once('close', resolve));
    this.child.stdin.end();
    const timer = setTimeout(() => this.child.kill('SIGKILL'), 5000);
    await closed;
    clearTimeout(timer);
  }
}

/** What one host said of itself; the rest is asked once all have. */
interface Met {
  readonly host: string;
  readonly remote: Remote;
  readonly facts: HostFacts;
  readonly door: Door;
}

async function meet(host: string, remote: Remote): Promise<Met | HostUnseen> {
  try {
    const { facts, port, token, address: chosen } = await remote.hear(factsPatienceMs);
    // What the hostfile calls it is what the others would call it, too, unless it listens on a network of its choice.
    const called = host.replace(/^.*@/, '').replace(/^\[(.*)\]$/, '$1');
    const address = typeof chosen === 'string' ? chosen : called;
    return {
      host,
      remote,
      facts: facts as HostFacts,
      door: { host, addresses: [address], port: Number(port), token: String(token) },
    };
  } catch (error) {
    return { host, reason: (error as Error).message };
  }
}

async function reach(
  { host, remote, facts }: Met,
  others: readonly Door[],
): Promise<HostSeen | HostUnseen> {
  try {
    remote.say(others);
    const { reached } = await remote.hear(reachPatienceMs);
    return { host, facts, reached: reached as Reached[] };
  } catch (error) {
    return { host, reason: (error as Error).message };
  }
}

/** Never fails: a host that cannot be looked at is one with a reason. */
export async function lookOverShell(
  hosts: readonly string[],
  remoteShell: string | undefined,
  env: NodeJS.ProcessEnv,
): Promise<{ readonly seen: readonly HostSeen[]; readonly unseen: readonly HostUnseen[] }> {
  const remotes = hosts.map((host) => Remote.start(host, remoteShell, env));
  try {
    const first = await Promise.all(hosts.map((host, index) => meet(host, remotes[index]!)));
    const met = first.filter((one): one is Met => 'remote' in one);
    const doors = met.map(({ door }) => door);
    const second = await Promise.all(met.map((one) => reach(one, othersOf(doors, one.host))));
    const all = [...first.filter((one) => !('remote' in one)), ...second];
    return {
      seen: all.filter((one): one is HostSeen => 'reached' in one),
      unseen: all.filter((one): one is HostUnseen => 'reason' in one),
    };
  } finally {
    await Promise.all(remotes.map((remote) => remote.end()));
  }
}
