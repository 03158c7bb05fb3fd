// A vitest reporter for what its JSON reporter leaves out: why a test was skipped (`context.skip('reason')`), which tests
// were left to another layer by --tags-filter, and what lies outside any test: rejections that nobody handled, cases that
// hung. Writes NAME.skips.json beside the JSON reporter's NAME.json; test-summary.mjs reads both.
//
// A process that blocks cannot end its own case, so this one does: the folder GRADLINK_RUNNING has a file for each process
// of tests, written by test/setup/running.ts at the start of each case: how many seconds it may take, and its name.
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

import { createTagsFilter } from '@vitest/runner/utils';

const folder = process.env.GRADLINK_RUNNING;
const everyMs = 1000;

/** What a process has started, by any of its threads. */
function children(pid) {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean),
    );
  } catch {
    // It has ended.
    return [];
  }
}

/** A process and all that it started, the youngest first. */
const family = (pid) => [...children(pid).flatMap(family), pid];

function end(pid) {
  for (const each of family(pid)) {
    try {
      process.kill(Number(each), 'SIGKILL');
    } catch (error) {
      // It ended meanwhile.
      if (error.code !== 'ESRCH') throw error;
    }
  }
}

/** Ends the processes whose case has taken too long; its name, for each. */
function endHung() {
  const own = new Set(children(process.pid));
  return readdirSync(folder).flatMap((pid) => {
    const file = join(folder, pid);
    // Its process has ended; another may get the number.
    if (!own.has(pid)) {
      rmSync(file, { force: true });
      return [];
    }
    const said = readFileSync(file, 'utf8');
    const [seconds, name] = [Number(said.split(' ', 1)[0]), said.slice(said.indexOf(' ') + 1)];
    if (said === '' || Date.now() - statSync(file).mtimeMs < seconds * 1000) return [];
    end(pid);
    rmSync(file);
    return [`${relative(process.cwd(), name)}: killed, since it had not ended after ${seconds} s`];
  });
}

export default class ResultsReporter {
  hung = [];

  onInit(vitest) {
    const { tagsFilter, tags, outputFile } = vitest.config;
    this.isOfLayer = tagsFilter ? createTagsFilter(tagsFilter, tags) : () => true;
    this.output = outputFile?.json?.replace(/json$/, 'skips.json');
    if (folder === undefined) return;
    const watch = () => {
      for (const line of endHung()) {
        console.error(line);
        this.hung.push(line);
      }
    };
    setInterval(watch, everyMs).unref();
  }

  onTestRunEnd(modules, unhandledErrors = []) {
    if (!this.output) return;
    const reasons = {};
    const otherLayers = [];
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const { state, note } = test.result();
        if (state !== 'skipped') continue;
        const name = test.fullName.replaceAll(' > ', ' ');
        if (this.isOfLayer(test.tags)) reasons[name] = note ?? '';
        else otherLayers.push(name);
      }
    }
    mkdirSync(dirname(this.output), { recursive: true });
    const errors = unhandledErrors.map(({ name, message, VITEST_TEST_PATH: file }) =>
      [file, `${name ?? 'Error'}: ${message ?? ''}`].filter(Boolean).join(': '),
    );
    const outside = [...this.hung, ...errors];
    writeFileSync(this.output, JSON.stringify({ reasons, otherLayers, outside }));
  }
}
