// Parameter shapes of known networks: `gradlink/models`.
import { publish } from '../caller.js';
import * as entry from './index.js';

export { isNetworkName, networkNames } from './names.js';
export type { FamilyName, NetworkName } from './names.js';
export { elementsOf, listNetworks, network } from './network.js';
export type { ImageShape, Network, NetworkInfo, NetworkOptions, Parameter } from './types.js';

publish(entry);
