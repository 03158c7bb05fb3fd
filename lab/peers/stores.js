// Parameter servers: gradlink's distributed store and ps-lite, one worker and one server each.
import { randomInt } from 'node:crypto';
import { builtWaived, here, list } from './work.js';

/**
 * @param {'plain' | 'shared'} arrays
 * @returns {import('./contenders.js').Contender}
 */
const distSyncOf = (arrays, id, label) => ({
  id,
  label,
  waived: () => undefined,
  places: ['store'],
  programs: ({ sizes, seconds }) => [
    {
      command: process.execPath,
      args: [
        ...[here('../../bench/gradlink.js'), 'launch', '-n', '1', '-s', '1'],
        ...[process.execPath, here('store-worker.js'), list(sizes), String(seconds), arrays],
      ],
    },
  ],
});

export const distSync = distSyncOf('plain', 'dist_sync', 'gradlink, dist_sync');
export const distSyncShared = distSyncOf(
  'shared',
  'dist_sync-shared',
  "gradlink, dist_sync, the store's arrays",
);

/** What build-ps-lite.sh made of ps_lite.cc and dmlc/ps-lite. */
export const psLiteVariable = 'GRADLINK_PEERS_PS_LITE';

/** @type {import('./contenders.js').Contender} */
export const psLite = {
  id: 'ps-lite',
  label: 'ps-lite (loopback)',
  waived: () => builtWaived(psLiteVariable, 'build-ps-lite.sh'),
  places: ['store'],
  programs: ({ sizes, seconds }) => {
    const common = {
      DMLC_PS_ROOT_URI: '127.0.0.1',
      DMLC_PS_ROOT_PORT: String(randomInt(20_000, 60_000)),
      DMLC_NUM_WORKER: '1',
      DMLC_NUM_SERVER: '1',
      DMLC_INTERFACE: 'lo',
      DMLC_NODE_HOST: '127.0.0.1',
    };
    return ['scheduler', 'server', 'worker'].map((role) => ({
      command: process.env[psLiteVariable] ?? '',
      args: [list(sizes), String(seconds)],
      env: { ...common, DMLC_ROLE: role },
    }));
  },
};
