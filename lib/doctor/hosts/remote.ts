// Controls the program on another host (main.ts) through a remote shell, line by line. Closing its standard input ends
// it.
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { createInterface } from 'node:readline';

import { interfaceVariable, portsVariable } from '../../network.js';
import { packageFile } from '../../package-folder.js';
import { graceMs } from './own-command.js';

/** Heartbeat interval of both sides, and the silence after which the other side is lost. */
export const beatMs = 1000;
export const silenceMs = 15_000;

/** Never waits for a password. */
const careful = ['-o', 'BatchMode=yes', '-o', 'ConnectTimeout=10'] as const;

function quote(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

/** The command for one host. `env` names the network to listen on, because a login shell does not know it. */
export function shellCommand(
  host: string,
  remoteShell: string | undefined,
  env: NodeJS.ProcessEnv = {},
): readonly string[] {
  const variables = [interfaceVariable, portsVariable].flatMap((name) =>
    (env[name] ?? '') === '' ? [] : [`${name}=${env[name]}`],
  );
  const words = [process.execPath, packageFile('dist/doctor-host.js')];
  const all = variables.length === 0 ? words : ['env', ...variables, ...words];
  const remote = `exec ${all.map(quote).join(' ')}`;
  const shell = (remoteShell ?? '').split(/\s+/).filter((word) => word !== '');
  return [...(shell.length === 0 ? ['ssh', ...careful] : shell), host, remote];
}

/** The program on one host. Its heartbeats show when the host is lost. */
export class Remote {
  private readonly lines: AsyncIterator<string>;
  private complaint = '';
  private how = 'it ended';
  private readonly beat = setInterval(() => {
    this.say({ alive: true });
  }, beatMs);

  private constructor(private readonly child: ChildProcessWithoutNullStreams) {
    this.beat.unref();
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

  /**
   * Reads its next message.
   *
   * @param timeoutMs maximum silence
   * @throws Error with the reason if there is none
   */
  async hear(timeoutMs: number): Promise<Record<string, unknown>> {
    for (;;) {
      const said = await this.line(timeoutMs);
      if (said['alive'] !== true) return said;
    }
  }

  private async line(timeoutMs: number): Promise<Record<string, unknown>> {
    const state = { late: false };
    const timer = setTimeout(() => {
      state.late = true;
      this.child.kill('SIGKILL');
      this.child.stdout.destroy();
    }, timeoutMs);
    try {
      const next = (await this.lines.next()) as IteratorResult<string, undefined>;
      if (state.late) throw new Error(`no answer within ${timeoutMs / 1000} s`);
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
    clearInterval(this.beat);
    const { pid, exitCode, signalCode } = this.child;
    if (pid === undefined || exitCode !== null || signalCode !== null) return;
    const closed = new Promise((resolve) => this.child.once('close', resolve));
    this.child.stdin.end();
    // The child may be the program itself, which first has to end its own command.
    const timer = setTimeout(() => this.child.kill('SIGKILL'), graceMs + 2 * beatMs);
    await closed;
    clearTimeout(timer);
  }
}
