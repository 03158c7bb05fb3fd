// What NVIDIA's programs print, in their formats.

/** nvbandwidth, of one case on one GPU. */
export function nvbandwidthOutput(testcase: string, gigabytesPerSecond: number): string {
  const figure = gigabytesPerSecond.toFixed(2);
  return `nvbandwidth Version: v0.8
Built from Git version: v0.8

CUDA Runtime Version: 13000
CUDA Driver Version: 13000
Driver Version: 580.65.06

host
Device 0: NVIDIA H200 (00000000:1b:00)

Running ${testcase}.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0
 0     ${figure}

SUM ${testcase} ${figure}

NOTE: The reported results may not reflect the full capabilities of the platform.
`;
}

/** all_reduce_perf, of one size. */
export function allReduceOutput(
  bytes: number,
  outOfPlace: number,
  inPlace: number,
  wrong = 0,
): string {
  const half = (rate: number): string =>
    `  ${(bytes / rate / 1e3).toFixed(2)}  ${rate.toFixed(2)}  ${(rate * 1.5).toFixed(2)}  ${String(wrong)}`;
  return `# nccl-tests version 2.19.6 nccl-headers=23007 nccl-library=23007
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 4 minBytes ${String(bytes)} maxBytes ${String(bytes)} step: 1048576(bytes) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
  ${String(bytes)}  ${String(bytes / 4)}  float  sum  -1${half(outOfPlace)}${half(inPlace)}
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 18.75
`;
}
