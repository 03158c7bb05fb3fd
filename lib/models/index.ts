export { elementsOf, listNetworks, network } from './network.js';
export type { ImageShape, Network, NetworkInfo, NetworkOptions, Parameter } from './types.js';
