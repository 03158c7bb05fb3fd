const script = (await import(new URL('../../native/cuda/ptx.mjs', import.meta.url).href)) as {
  readonly readPtx: () => Readonly<Record<'kernels' | 'step_kernels', string>>;
};

/** The kernels' PTX as it is checked in. */
export const ptx = script.readPtx();
