// The package as users get it: packed once a test file, offered by a registry of this process, installed by package
// managers into folders of their own, and run without a compiler within reach.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, statSync, symlinkSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { delimiter, dirname, join } from 'node:path';
import { tmpdir } from 'node:os';
import { promisify } from 'node:util';

const run = promisify(execFile);
export const checkout = join(import.meta.dirname, '../..');
/** The package of this machine. */
export const platform = `${process.platform}-${process.arch}-gnu`;
const other = process.arch === 'x64' ? 'arm64' : 'x64';

const { version } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')) as {
  version: string;
};

/** What npm and vitest set for this process is none of the user's. */
export const environment: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(process.env).flatMap(([name, value]) =>
    value === undefined || /^(npm_|VITEST|NODE_ENV|NODE_PATH|GRADLINK_)/i.test(name)
      ? []
      : [[name, value] as const],
  ),
);

/** What a package manager and a program need besides Node; neither a compiler nor make nor python. */
const programs =
  'sh env uname ldd getconf tar gzip sed grep cat ls cp mv rm mkdir ln dirname basename readlink tr cut id ps';

/** Where a program of this machine is. */
function which(name: string): string | undefined {
  return (process.env['PATH'] ?? '')
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find((file) => existsSync(file));
}

export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Packed once, with a registry that offers the platform packages; given back with `remove`. */
export class Packed {
  private constructor(
    /** Holds everything; removed at the end. */
    readonly work: string,
    /** gradlink itself. */
    readonly main: string,
    /** The platform package of this machine. */
    readonly binary: string,
    private readonly server: Server,
    readonly registry: string,
    private readonly bin: string,
  ) {}

  static async make(): Promise<Packed> {
    const work = await mkdtemp(join(tmpdir(), 'gradlink-packages-'));
    const output = join(work, 'tarballs');
    await run(process.execPath, [join(checkout, 'scripts/pack.mjs'), '--output', output], {
      env: environment,
    });
    const foreign = await packForeign(work, output);
    const tarball = (name: string): string => join(output, `${name}-${version}.tgz`);
    const { server, address } = await serve({
      [`@gradlink/${platform}`]: tarball(`gradlink-${platform}`),
      [`@gradlink/linux-${other}-gnu`]: foreign,
    });
    const bin = join(work, 'bin');
    await mkdir(bin);
    for (const name of [...programs.split(' '), 'npm', 'npx']) {
      const file = which(name);
      if (file !== undefined) symlinkSync(file, join(bin, name));
    }
    symlinkSync(process.execPath, join(bin, 'node'));
    return new Packed(
      work,
      tarball('gradlink'),
      tarball(`gradlink-${platform}`),
      server,
      address,
      bin,
    );
  }

  /** An empty project that gets the scope's packages from the registry here, and all others from where npm does. */
  async project(name: string, manifest: object = {}): Promise<Project> {
    const folder = join(this.work, name);
    await mkdir(folder);
    const fields = { name, private: true, type: 'module', ...manifest };
    await writeFile(join(folder, 'package.json'), JSON.stringify(fields));
    await writeFile(join(folder, '.npmrc'), `@gradlink:registry=${this.registry}\n`);
    return new Project(folder, { ...environment, PATH: this.bin });
  }

  async remove(): Promise<void> {
    this.server.close();
    await rm(this.work, { recursive: true, force: true });
  }
}

/** Of the other processor: no manager may unpack it here. */
async function packForeign(work: string, output: string): Promise<string> {
  const folder = join(work, 'foreign');
  await mkdir(folder);
  const name = `@gradlink/linux-${other}-gnu`;
  const fields = { name, version, os: ['linux'], cpu: [other], libc: ['glibc'] };
  await writeFile(join(folder, 'package.json'), JSON.stringify(fields));
  const args = ['pack', '--silent', '--pack-destination', output];
  const { stdout } = await run('npm', args, { cwd: folder, env: environment });
  return join(output, stdout.trim());
}

/** As much of npm's registry as installing asks for. */
async function serve(
  tarballs: Readonly<Record<string, string>>,
): Promise<{ server: Server; address: string }> {
  const manifests = new Map<string, object>();
  for (const [name, file] of Object.entries(tarballs)) {
    const { stdout } = await run('tar', ['-xzOf', file, 'package/package.json']);
    manifests.set(name, JSON.parse(stdout) as object);
  }
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? '').slice(1);
    const [, packed] = /^tarballs\/(.+)$/.exec(path) ?? [];
    const file = tarballs[packed ?? path];
    if (file === undefined) {
      response.writeHead(404).end('{}');
      return;
    }
    const bytes = readFileSync(file);
    if (packed !== undefined) {
      response.writeHead(200, { 'content-type': 'application/octet-stream' }).end(bytes);
      return;
    }
    const hash = (kind: string) => createHash(kind).update(bytes);
    const dist = {
      tarball: `http://${request.headers.host ?? ''}/tarballs/${path}`,
      shasum: hash('sha1').digest('hex'),
      integrity: `sha512-${hash('sha512').digest('base64')}`,
    };
    const versions = { [version]: { ...manifests.get(path), dist } };
    // Long ago: some managers do not take what was published today.
    const time = { [version]: '2020-01-01T00:00:00.000Z' };
    const packument = { name: path, 'dist-tags': { latest: version }, versions, time };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(packument));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { server, address: `http://127.0.0.1:${port}/` };
}

/** A user's folder. */
export class Project {
  constructor(
    readonly folder: string,
    /** Without a compiler in PATH. */
    readonly env: Readonly<Record<string, string>>,
  ) {}

  write(file: string, text: string): Promise<void> {
    return writeFile(join(this.folder, file), text);
  }

  /** How a program ends in this folder; it may fail. */
  async end(
    program: string,
    args: readonly string[],
    env: Readonly<Record<string, string>> = {},
    timeout = 200_000,
  ): Promise<Ended> {
    const options = {
      cwd: this.folder,
      env: { ...this.env, ...env },
      timeout,
      maxBuffer: 2 ** 26,
    };
    return await run(program, [...args], options).then(
      ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
      (error: unknown) => error as Ended,
    );
  }

  /** Standard output of a program that must end well. */
  async run(
    program: string,
    args: readonly string[],
    env: Readonly<Record<string, string>> = {},
    timeout?: number,
  ): Promise<string> {
    const { code, stdout, stderr } = await this.end(program, args, env, timeout);
    if (code !== 0) throw new Error(`${program} ${args.join(' ')}: ${code}\n${stdout}\n${stderr}`);
    return stdout;
  }

  /** Packages in node_modules, and the bytes of all their files. */
  weight(): { readonly packages: readonly string[]; readonly bytes: number } {
    const top = join(this.folder, 'node_modules');
    const files = readdirSync(top, { recursive: true, withFileTypes: true }).filter((entry) =>
      entry.isFile(),
    );
    const paths = files.map((entry) => join(entry.parentPath, entry.name));
    const packages = paths
      .filter((path) => /node_modules\/(@[^/]+\/)?[^/@.][^/]*\/package\.json$/.test(path))
      .map((path) => dirname(path).slice(top.length + 1));
    return {
      packages: packages.sort(),
      bytes: paths.reduce((sum, path) => sum + statSync(path).size, 0),
    };
  }
}

/** Sums over two ranks, and tells which file the addon came from; `esm` or `cjs`. */
export function sumProgram(kind: 'esm' | 'cjs'): string {
  const names = '{ Communicator, nativePath }';
  const body = `
    const comm = Communicator.local(2);
    const arrays = [new Float32Array([1, 2, 3]), new Float32Array([10, 20, 30])];
    await comm.allReduce(arrays);
    await comm.close();
    console.log(JSON.stringify({ sum: [...arrays[1]], addon: nativePath() }));
  `;
  return kind === 'esm'
    ? `import ${names} from 'gradlink';\n${body}`
    : `const ${names} = require('gradlink');\n(async () => {${body}})();`;
}

export interface Summed {
  readonly sum: readonly number[];
  readonly addon: string;
}
