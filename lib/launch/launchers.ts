// The launchers by name. A new one is a file beside this and a line here.
import type { Launcher } from './job.js';
import { local } from './local.js';

export const launchers: Readonly<Record<string, Launcher>> = { [local.name]: local };
