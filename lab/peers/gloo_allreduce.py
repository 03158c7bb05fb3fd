"""The peer's side of run.js: times torch.distributed.all_reduce over Gloo, float32, in place (it has no other form).

    RANK=0 WORLD_SIZE=2 python3 gloo_allreduce.py BYTES,BYTES,... SECONDS RENDEZVOUS_FILE

Prints, on rank 0, one JSON line for each size: seconds of one call, for each sample the slowest rank's.
"""

import json
import os
import sys
import time

import torch
import torch.distributed as dist

MIN_SAMPLES = 5
MAX_SAMPLES = 200


def time_batch(tensor, calls):
    dist.barrier()
    start = time.perf_counter()
    for _ in range(calls):
        dist.all_reduce(tensor)
    return (time.perf_counter() - start) / calls


def agreed(value):
    """Rank 0's value, on every rank."""
    box = torch.tensor([value], dtype=torch.float64)
    dist.broadcast(box, src=0)
    return float(box[0])


def warm_up(tensor):
    """Seconds of one call, from a batch that grows until it is long enough to trust; rank 0 decides for all."""
    calls = 1
    while True:
        each = agreed(time_batch(tensor, calls))
        if each * calls > 0.02 or calls >= 4096:
            return each
        calls *= 4


def measure(size_bytes, seconds, rank, size):
    count = size_bytes // 4
    # Small whole numbers that differ by rank and index: their sum is exact.
    base = torch.arange(count, dtype=torch.float32).remainder(61)
    tensor = base + rank
    dist.all_reduce(tensor)
    wrong = int((tensor != base * size + size * (size - 1) // 2).sum())
    # Not zeros from here on: see allreduce_loop.h.

    warm = warm_up(tensor)
    calls = max(1, int(2e-3 / warm))
    samples = max(MIN_SAMPLES, min(MAX_SAMPLES, int(seconds / (warm * calls))))
    times = torch.tensor([time_batch(tensor, calls) for _ in range(samples)], dtype=torch.float64)
    dist.all_reduce(times, op=dist.ReduceOp.MAX)
    if rank == 0:
        line = {"bytes": size_bytes, "place": "in", "wrong": wrong, "calls": calls, "seconds": times.tolist()}
        print(json.dumps(line), flush=True)


def main():
    sizes, seconds, rendezvous = sys.argv[1:4]
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + rendezvous, rank=rank, world_size=size)
    for size_bytes in map(int, sizes.split(",")):
        measure(size_bytes, float(seconds), rank, size)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
