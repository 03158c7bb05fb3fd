// The files of examples/cluster, and what docs/check.md has for schedulers: Kubernetes' own schemas for what it knows, and
// that the parts fit together. A schema takes a misspelt field for one that it need not know; the types that come with it
// do not.
import { execFile, execFileSync, spawnSync, type ExecFileException } from 'node:child_process';
import { chmodSync, existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { PodTemplateSpec, Service } from 'kubernetes-models/v1';
import { Job } from 'kubernetes-models/batch/v1';
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1';
import {
  createProgram,
  flattenDiagnosticMessageText,
  getPreEmitDiagnostics,
  ModuleKind,
  ModuleResolutionKind,
  ScriptTarget,
} from 'typescript';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';

import { meetingVariables, placeVariables } from '../../lib/launch/torchrun.js';
import { blocksOf } from '../support/guides.js';
import { gradlink, missing } from '../support/launching.js';
import { folderOfAllTests } from '../support/folders.js';
import { freePort } from '../support/tcp.js';

const root = new URL('../../', import.meta.url).pathname;
const folder = join(root, 'examples/cluster');

type Json = Readonly<Record<string, unknown>>;

function documents(file: string): Json[] {
  return parseAllDocuments(readFileSync(join(folder, file), 'utf8')).map((document) => {
    expect(document.errors).toEqual([]);
    return document.toJS() as Json;
  });
}

/** What is at `spec.template` and the like; undefined where nothing is. */
function at(value: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((inner, key) => (inner as Json | undefined)?.[key], value);
}

interface Kind {
  readonly from: string;
  readonly name: string;
  readonly model: new (data: never) => { validate(): void };
}

const kinds: Readonly<Record<string, Kind>> = {
  'v1 Service': { from: 'v1', name: 'IService', model: Service },
  'v1 PodTemplateSpec': { from: 'v1', name: 'IPodTemplateSpec', model: PodTemplateSpec },
  'batch/v1 Job': { from: 'batch/v1', name: 'IJob', model: Job },
  'networking.k8s.io/v1 NetworkPolicy': {
    from: 'networking.k8s.io/v1',
    name: 'INetworkPolicy',
    model: NetworkPolicy,
  },
};

let scratch = '';
folderOfAllTests((made) => (scratch = made));
beforeAll(() => {
  symlinkSync(join(root, 'node_modules'), join(scratch, 'node_modules'));
});

/** What the compiler says of them as literals of their types: unknown fields are errors there. */
function complaints(all: readonly (readonly [kind: string, value: unknown])[]): string[] {
  const file = join(scratch, 'manifests.ts');
  const lines = all.map(([kind, value], index) => {
    const { from, name } = kinds[kind]!;
    return `export const m${index}: import('kubernetes-models/${from}').${name} = ${JSON.stringify(value)};`;
  });
  writeFileSync(file, `${lines.join('\n')}\n`);
  const program = createProgram([file], {
    noEmit: true,
    strict: true,
    skipLibCheck: true,
    types: [],
    module: ModuleKind.NodeNext,
    moduleResolution: ModuleResolutionKind.NodeNext,
    target: ScriptTarget.ESNext,
    // Reading the DOM's takes longer than all else.
    lib: ['lib.es5.d.ts'],
  });
  return getPreEmitDiagnostics(program).map(({ messageText }) =>
    flattenDiagnosticMessageText(messageText, '\n'),
  );
}

/** The literal values of the first container's variables, and the names of all. */
function variablesOf(job: Json): { names: string[]; values: Record<string, string> } {
  const [container] = at(job, 'spec.template.spec.containers') as Json[];
  const env = container!.env as { name: string; value?: string }[];
  const literal = env.filter(({ value }) => value !== undefined);
  return {
    names: env.map(({ name }) => name),
    values: Object.fromEntries(literal.map(({ name, value }) => [name, value!])),
  };
}

const kindOf = (manifest: Json): string =>
  `${String(manifest.apiVersion)} ${String(manifest.kind)}`;

const manifests = documents('job.yaml');
const withServers = documents('servers.yaml');
const [mpiJob] = documents('mpijob.yaml');
const templates = ['Launcher', 'Worker'].map((role) =>
  at(mpiJob, `spec.mpiReplicaSpecs.${role}.template`),
);
const ofKind = (all: readonly Json[], kind: string): Json => all.find((one) => one.kind === kind)!;

it('all are what the schemas and the types of Kubernetes say, which refuse others', () => {
  expect([manifests, withServers].map((all) => all.map(({ kind }) => kind))).toEqual([
    ['Service', 'Job', 'NetworkPolicy'],
    ['Service', 'Job', 'Job', 'NetworkPolicy'],
  ]);
  const [, ofGuide] = blocksOf('docs/check.md', ['yaml']).map((block) => parse(block) as Json);
  const all = [
    ...[...manifests, ...withServers, ofGuide!].map((one) => [kindOf(one), one] as const),
    ...templates.map((one) => ['v1 PodTemplateSpec', one] as const),
  ];
  for (const [kind, value] of all) {
    const { model: Model } = kinds[kind]!;
    expect(() => {
      new Model(value as never).validate();
    }).not.toThrow();
  }
  const job = ofKind(manifests, 'Job');
  const spec = job.spec as Json;
  const wrong = { ...job, spec: { ...spec, completions: 'two' } };
  expect(() => {
    new Job(wrong as never).validate();
  }).toThrow('completions');
  // All at once: to read the types takes most of the time.
  const misspelt = { ...job, spec: { ...spec, completion: 2 } };
  const [ofMisspelt, ...others] = complaints([...all, ['batch/v1 Job', misspelt]]);
  expect(ofMisspelt).toMatch(/"completion".* not exist/);
  expect(others).toEqual([]);
});

describe('job.yaml', () => {
  it('tells each rank its place and where to meet', () => {
    const job = ofKind(manifests, 'Job');
    const service = ofKind(manifests, 'Service');
    const [container] = at(job, 'spec.template.spec.containers') as Json[];
    const env = new Map((container!.env as Json[]).map((one) => [one.name, one]));
    expect([...env.keys()]).toEqual([...placeVariables, ...meetingVariables, 'GRADLINK_JOB']);
    const size = String(at(job, 'spec.completions'));
    expect(String(at(job, 'spec.parallelism'))).toBe(size);
    expect(env.get('WORLD_SIZE')?.value).toBe(size);
    const name = at(service, 'metadata.name') as string;
    expect(at(job, 'spec.template.spec.subdomain')).toBe(name);
    expect(env.get('MASTER_ADDR')?.value).toBe(`${at(job, 'metadata.name') as string}-0.${name}`);
    const [port] = at(service, 'spec.ports') as Json[];
    expect(env.get('MASTER_PORT')?.value).toBe(String(port!.port));
    expect(at(service, 'spec.selector')).toEqual(
      at(ofKind(manifests, 'NetworkPolicy'), 'spec.podSelector.matchLabels'),
    );
  });
});

describe('servers.yaml', () => {
  const find = (kind: string): Json => ofKind(withServers, kind);
  const [workers, servers] = withServers.filter((one) => one.kind === 'Job') as [Json, Json];

  it('lets the pods of both Jobs, and nobody else, reach worker 0 and one another', () => {
    const name = at(find('Service'), 'metadata.name') as string;
    const [port] = at(find('Service'), 'spec.ports') as Json[];
    const label = at(find('Service'), 'spec.selector');
    const policy = find('NetworkPolicy');
    const [{ from }] = at(policy, 'spec.ingress') as [{ from: Json[] }];
    expect(at(policy, 'spec.podSelector.matchLabels')).toEqual(label);
    expect(from).toEqual([{ podSelector: { matchLabels: label } }]);
    for (const job of [workers, servers]) {
      expect(at(job, 'spec.template.metadata.labels')).toEqual(label);
      expect(at(job, 'spec.template.spec.subdomain')).toBe(name);
      expect(variablesOf(job).values).toMatchObject({
        MASTER_ADDR: `${at(workers, 'metadata.name') as string}-0.${name}`,
        MASTER_PORT: String(port!.port),
      });
    }
  });

  it('starts workers and servers that meet, and that end together', async () => {
    const store = readFileSync(join(folder, 'store.js'), 'utf8');
    const library = JSON.stringify(join(root, 'dist/index.js'));
    const script = join(scratch, 'store.mjs');
    writeFileSync(script, store.replace("'gradlink'", library));
    // Here what only a cluster gives: the index, the secret, and a name.
    const meeting = {
      GRADLINK_JOB: 'of this test',
      MASTER_ADDR: '127.0.0.1',
      MASTER_PORT: String(await freePort()),
    };
    const start = (job: Json, index: string, program: readonly string[]): Promise<string> => {
      const given = Array.from({ length: Number(at(job, 'spec.completions')) }, (_, pod) =>
        promisify(execFile)(process.execPath, program, {
          env: { ...process.env, ...variablesOf(job).values, ...meeting, [index]: String(pod) },
          // None stays behind where they do not meet.
          timeout: 50_000,
        }).catch((cause: unknown) => {
          // Its own message has no signal.
          const { code, signal, stderr } = cause as ExecFileException;
          throw new Error(`${index} ${pod} ended by ${String(signal ?? code)}: ${stderr}`);
        }),
      );
      return Promise.all(given).then((all) => all.map(({ stdout }) => stdout).join(''));
    };
    const command = (job: Json): unknown =>
      (at(job, 'spec.template.spec.containers') as Json[])[0]!.command;
    expect(command(workers)).toEqual(['node', 'store.js']);
    expect(command(servers)).toEqual(['npx', 'gradlink', 'serve']);
    expect(variablesOf(workers).names).toContain('RANK');
    expect(variablesOf(servers).names).toContain('GRADLINK_SERVER_RANK');
    const [told] = await Promise.all([
      start(workers, 'RANK', [script]),
      start(servers, 'GRADLINK_SERVER_RANK', [gradlink, 'serve']),
    ]);
    expect(told.match(/: weight -12\.5$/gm)).toHaveLength(4);
  });
});

describe('mpijob.yaml', () => {
  // Its schema is no part of Kubernetes: the fields of v2beta1 that it needs, by hand.
  it('is an MPIJob of v2beta1', () => {
    expect(kindOf(mpiJob!)).toBe('kubeflow.org/v2beta1 MPIJob');
    expect(Object.keys(mpiJob!.spec as Json)).toEqual([
      'slotsPerWorker',
      'runPolicy',
      'mpiReplicaSpecs',
    ]);
    expect(Object.keys(at(mpiJob, 'spec.mpiReplicaSpecs') as Json)).toEqual(['Launcher', 'Worker']);
    for (const role of ['Launcher', 'Worker']) {
      const spec = at(mpiJob, `spec.mpiReplicaSpecs.${role}`) as Json;
      expect(Object.keys(spec)).toEqual(['replicas', 'restartPolicy', 'template']);
    }
    expect(at(mpiJob, 'spec.mpiReplicaSpecs.Launcher.replicas')).toBe(1);
    expect(['None', 'Running', 'All']).toContain(at(mpiJob, 'spec.runPolicy.cleanPodPolicy'));
  });

  it('starts as many ranks as there are slots and GPUs, with options that there are', ({
    skip,
  }) => {
    const slots = Number(at(mpiJob, 'spec.slotsPerWorker'));
    const replicas = Number(at(mpiJob, 'spec.mpiReplicaSpecs.Worker.replicas'));
    const [worker] = at(templates[1], 'spec.containers') as Json[];
    expect(at(worker, 'resources.limits')).toMatchObject({ 'nvidia.com/gpu': String(slots) });
    const [launcher] = at(templates[0], 'spec.containers') as Json[];
    const command = launcher!.command as string[];
    expect(command.slice(0, 3)).toEqual(['npx', 'gradlink', 'launch']);
    expect(command).toContain(`--num-workers=${slots * replicas}`);
    const reason = missing(['mpirun']);
    if (reason !== undefined) skip(reason);
    const hosts = join(scratch, 'hosts');
    writeFileSync(hosts, 'train-worker-0.train slots=8\ntrain-worker-1.train slots=8\n');
    const args = command.slice(2).map((word) => word.replace('/etc/mpi/hostfile', hosts));
    args.splice(1, 0, '--dry-run');
    const told = execFileSync(process.execPath, [gradlink, ...args], { encoding: 'utf8' });
    expect(told).toContain('train-worker-1.train');
    expect(told).toMatch(/ node train\.js\n$/);
  });
});

it('memory of /dev/shm is within the limit of its pod', () => {
  const gibibytes = (text: unknown): number => Number(/^(\d+)Gi$/.exec(String(text))?.[1]);
  const pods = [at(ofKind(manifests, 'Job'), 'spec.template.spec'), at(templates[1], 'spec')];
  for (const pod of pods) {
    const [volume] = at(pod, 'volumes') as Json[];
    const [container] = at(pod, 'containers') as Json[];
    const [mount] = container!.volumeMounts as Json[];
    expect(mount).toEqual({ name: volume!.name, mountPath: '/dev/shm' });
    const shared = gibibytes(at(volume, 'emptyDir.sizeLimit'));
    expect(shared).toBeGreaterThanOrEqual(1);
    expect(shared).toBeLessThan(gibibytes(at(container, 'resources.limits.memory')));
  }
});

describe('the image and the batch script', () => {
  const dockerfile = readFileSync(join(folder, 'Dockerfile'), 'utf8');

  it('have instructions that Docker knows, and copy what is there', () => {
    const lines = dockerfile
      .replace(/^\s*#.*\n/gm, '')
      .replace(/\\\n/g, ' ')
      .split('\n');
    const used = lines.filter((line) => line.trim() !== '').map((line) => line.split(' ')[0]);
    for (const word of used)
      expect(['FROM', 'RUN', 'ARG', 'WORKDIR', 'COPY', 'ENV', 'CMD']).toContain(word);
    expect(existsSync(join(folder, 'package.json'))).toBe(true);
    expect(dockerfile).toContain('CMD ["node", "train.js"]');
    // What gradlink runs on: glibc, and a Node of the versions it supports.
    expect(lines[0]).toMatch(/^FROM node:2[02468]-(bookworm|trixie)-slim$/);
  });

  it('take packages that Debian has', ({ skip }) => {
    const reason = missing(['apt-cache']);
    if (reason !== undefined) skip(reason);
    const [, list = ''] = /--no-install-recommends \\\n([^&]*)/.exec(dockerfile) ?? [];
    const packages = list.split(/[\s\\]+/).filter((word) => word !== '');
    expect(packages.length).toBeGreaterThan(5);
    const known = execFileSync('apt-cache', ['pkgnames'], { encoding: 'utf8', maxBuffer: 2 ** 26 });
    const names = new Set(known.split('\n'));
    if (names.size < 10_000) skip('this machine has no lists of Debian packages');
    expect(packages.filter((name) => !names.has(name))).toEqual([]);
  });

  it('are shell that bash can read', () => {
    execFileSync('bash', ['-n', join(folder, 'slurm.sh')]);
    const runs = [...dockerfile.replace(/^ *#.*\n/gm, '').matchAll(/^RUN ((?:.*\\\n)*.*)$/gm)];
    expect(runs.length).toBeGreaterThan(3);
    for (const [, script = ''] of runs) execFileSync('bash', ['-n', '-c', script]);
  });
});

describe('docs/check.md, in a scheduler', () => {
  it('has a plugin whose message begins with the answer, and whose status is that of a problem', () => {
    const plugin = JSON.parse(blocksOf('docs/check.md', ['json'])[0]!) as Json;
    const [{ args }] = plugin.rules as [{ args: string[] }];
    const expected = join(scratch, 'expected.yaml');
    writeFileSync(expected, 'gpus: { count: 999 }\n');
    const { status, stdout } = spawnSync(
      process.execPath,
      [gradlink, ...args, '--expect', expected],
      { encoding: 'utf8' },
    );
    expect({
      status,
      message: stdout.slice(0, at(plugin, 'pluginConfig.max_output_length') as number),
    }).toEqual({ status: 1, message: expect.stringMatching(/^bad: doctor: /) as string });
  });

  it('has a prolog that needs nothing of its environment', () => {
    // It is given no PATH, nor has it one to give to a program but what it exports.
    const command = join(scratch, 'gradlink');
    writeFileSync(
      command,
      `#!/bin/sh\nprintenv PATH > ${scratch}/path\nexec ${process.execPath} ${gradlink} "$@" --parts doctor\n`,
    );
    chmodSync(command, 0o755);
    const prolog = blocksOf('docs/check.md', ['bash'])[1]!
      .replace('/usr/local/bin/gradlink', command)
      .replace('/var/log/', `${scratch}/`);
    const script = join(scratch, 'prolog');
    writeFileSync(script, prolog);
    const { status, stderr } = spawnSync('/bin/bash', [script], {
      cwd: '/',
      encoding: 'utf8',
      env: { SLURM_JOB_ID: '1' },
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(readFileSync(join(scratch, 'path'), 'utf8')).toContain('/usr/local/bin');
    expect(readFileSync(join(scratch, 'gradlink-check.txt'), 'utf8')).toMatch(/^good: /);
  });
});
