import { describe, expect, it } from 'vitest';

import { iterationLine, optionsLines } from '../../lib/report/index.js';

describe('options line', () => {
  it("is the README's", () => {
    const options = {
      network: 'resnet',
      gpus: '0,1',
      numLayers: 200,
      'kv-store': 'device',
      num_batches: 5,
      dispBatches: 1,
      testResults: 1,
      imageShape: '3,224,224',
      numClasses: 1000,
      optimizer: 'None',
    };
    expect(optionsLines(options)).toEqual([
      "INFO:root:Namespace(disp_batches=1, gpus='0,1', image_shape='3,224,224', kv_store='device', " +
        "network='resnet', num_batches=5, num_classes=1000, num_layers=200, optimizer='None', test_results=1)",
    ]);
  });

  it('writes values as Python does', () => {
    const options = { a: null, b: true, c: 0.5, d: "it's", e: 'a\\b', f: `'"` };
    expect(optionsLines(options)).toEqual([
      'INFO:root:Namespace()',
      `INFO:root:also a=None, b=True, c=0.5, d="it's", e='a\\\\b', f='\\'"'`,
    ]);
  });
});

describe('an iteration', () => {
  it('shows an unchecked result as -1 and one that is no number as Python does', () => {
    const line = { iteration: 1, seconds: 1, bytesPerSecond: 0 };
    expect(iterationLine({ ...line, error: -1 })).toMatch(/error -1\.000000$/);
    expect(iterationLine({ ...line, error: null })).toMatch(/error nan$/);
  });
});
