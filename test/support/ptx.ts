const script = (await import(new URL('../../native/cuda/ptx.mjs', import.meta.url).href)) as {
  readonly readPtx: () => Readonly<Record<string, string>>;
  readonly modulesOf: (
    text: string,
  ) => ReadonlyMap<string, { readonly text: string; readonly kernels: readonly string[] }>;
};

/** The kernels' PTX as it is checked in. */
export const ptx = script.readPtx();
export const { modulesOf } = script;
