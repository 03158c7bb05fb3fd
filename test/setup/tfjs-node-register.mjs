// Loaded first by each process of a test that trains on tfjs-node (NODE_OPTIONS=--import): see tfjs-node-resolve.mjs.
import { register } from 'node:module';

register('./tfjs-node-resolve.mjs', import.meta.url);
