import type { Family } from './types.js';
import type { Parameter } from './types.js';

/** BERT base, uncased, with its pooler; names and order as in the published PyTorch checkpoint. */

const vocabulary = 30522;
const positions = 512;
const segments = 2;
const hidden = 768;
const intermediate = 3072;
const layers = 12;

export const bertBase: Family = {
  name: 'bert-base',
  description: 'BERT base uncased with pooler; takes neither image nor classes',
  numLayers: [],
  multipliers: [],
  build() {
    const parameters: Parameter[] = [];
    const embedding = (name: string, rows: number): void => {
      parameters.push({ name: `embeddings.${name}.weight`, shape: [rows, hidden] });
    };
    const dense = (name: string, outputs: number, inputs: number): void => {
      parameters.push(
        { name: `${name}.weight`, shape: [outputs, inputs] },
        { name: `${name}.bias`, shape: [outputs] },
      );
    };
    const norm = (name: string): void => {
      parameters.push(
        { name: `${name}.LayerNorm.weight`, shape: [hidden] },
        { name: `${name}.LayerNorm.bias`, shape: [hidden] },
      );
    };
    embedding('word_embeddings', vocabulary);
    embedding('position_embeddings', positions);
    embedding('token_type_embeddings', segments);
    norm('embeddings');
    for (let index = 0; index < layers; index += 1) {
      const layer = `encoder.layer.${index}`;
      for (const part of ['query', 'key', 'value']) {
        dense(`${layer}.attention.self.${part}`, hidden, hidden);
      }
      dense(`${layer}.attention.output.dense`, hidden, hidden);
      norm(`${layer}.attention.output`);
      dense(`${layer}.intermediate.dense`, intermediate, hidden);
      dense(`${layer}.output.dense`, hidden, intermediate);
      norm(`${layer}.output`);
    }
    dense('pooler.dense', hidden, hidden);
    return parameters;
  },
};
