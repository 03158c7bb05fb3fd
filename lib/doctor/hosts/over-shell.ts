// Checks the hosts of a hostfile through a remote shell.
import type { HostSeen, HostUnseen } from './compare.js';
import type { HostFacts } from './facts.js';
import { othersOf, type Door, type Reached } from './reach.js';
import { Remote, silenceMs } from './remote.js';

/** A login, and slow libraries. */
const factsTimeoutMs = 60_000;

/** The first answer of a host; further questions follow once all have answered. */
export interface Met {
  readonly host: string;
  /** Its own host name. */
  readonly name: string;
  readonly remote: Remote;
  readonly facts: HostFacts;
  readonly door: Door;
}

async function meet(host: string, remote: Remote): Promise<Met | HostUnseen> {
  try {
    const { facts, port, token, address: chosen, name } = await remote.hear(factsTimeoutMs);
    // The others call it by its name in the hostfile, unless it listens on a chosen network.
    const called = host.replace(/^.*@/, '').replace(/^\[(.*)\]$/, '$1');
    const address = typeof chosen === 'string' ? chosen : called;
    return {
      host,
      name: String(name),
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
    remote.say({ call: others });
    const { reached } = await remote.hear(silenceMs);
    return { host, facts, reached: reached as Reached[] };
  } catch (error) {
    return { host, reason: (error as Error).message };
  }
}

/** A login in progress, or finished but not yet handled. */
interface Attempt {
  readonly ending: Promise<void>;
  outcome?: Met | HostUnseen;
}

/**
 * Hosts that stay connected until they are lost or disconnected. Never fails: a host that does not answer has a reason.
 */
export class ShellHosts {
  /** In the order of the request. */
  protected met: readonly Met[] = [];
  unseen: readonly HostUnseen[] = [];
  private readonly remotes = new Map<string, Remote>();
  private readonly attempts = new Map<string, Attempt>();

  constructor(
    private readonly asked: readonly string[],
    private readonly remoteShell: string | undefined,
    private readonly env: NodeJS.ProcessEnv,
  ) {}

  /**
   * Retries hosts that never answered or were lost. If some are connected, the others are not awaited: they count from
   * the next round on.
   */
  async enter(): Promise<void> {
    this.takeUp();
    for (const host of this.asked) {
      if (!this.attempts.has(host) && !this.met.some((one) => one.host === host)) this.try(host);
    }
    if (this.met.length > 0) return;
    await Promise.all([...this.attempts.values()].map(({ ending }) => ending));
    this.takeUp();
  }

  private try(host: string): void {
    void this.remotes.get(host)?.end();
    const remote = Remote.start(host, this.remoteShell, this.env);
    this.remotes.set(host, remote);
    const attempt: Attempt = {
      ending: meet(host, remote).then((outcome) => void (attempt.outcome = outcome)),
    };
    this.attempts.set(host, attempt);
  }

  private takeUp(): void {
    const known = new Map<string, Met | HostUnseen>(
      [...this.met, ...this.unseen].map((one) => [one.host, one]),
    );
    for (const [host, { outcome }] of this.attempts) {
      if (outcome === undefined) continue;
      known.set(host, outcome);
      this.attempts.delete(host);
    }
    const all = [...new Set(this.asked)].flatMap((host) => known.get(host) ?? []);
    this.met = all.filter((one) => 'remote' in one);
    this.unseen = all.filter((one) => 'reason' in one);
  }

  async look(): Promise<readonly HostSeen[]> {
    const doors = this.met.map(({ door }) => door);
    const all = await Promise.all(this.met.map((one) => reach(one, othersOf(doors, one.host))));
    for (const one of all) if ('reason' in one) this.lose(one);
    return all.filter((one) => 'reached' in one);
  }

  protected lose(lost: HostUnseen): void {
    this.unseen = [...this.unseen, lost];
    this.met = this.met.filter(({ host }) => host !== lost.host);
  }

  /** Closing the standard input ends the program on a host. */
  async end(): Promise<void> {
    for (const { host } of this.met) this.lose({ host, reason: 'it was let go' });
    await Promise.all([...this.remotes.values()].map((remote) => remote.end()));
  }
}

export async function lookOverShell(
  ...[hosts, remoteShell, env]: ConstructorParameters<typeof ShellHosts>
): Promise<Pick<ShellHosts, 'unseen'> & { readonly seen: readonly HostSeen[] }> {
  const around = new ShellHosts(hosts, remoteShell, env);
  try {
    await around.enter();
    const seen = await around.look();
    return { seen, unseen: around.unseen };
  } finally {
    await around.end();
  }
}
