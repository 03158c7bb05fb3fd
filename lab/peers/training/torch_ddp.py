"""One worker of run.js: torch, gradients averaged by DistributedDataParallel over Gloo.

    RANK=0 WORLD_SIZE=2 python3 torch_ddp.py STEPS RENDEZVOUS_FILE
"""

import json
import os
import sys
import time

import torch
import torch.distributed as dist

STEPS = int(sys.argv[1])
BATCH = 128
SIZES = [784, 1024, 1024, 10]

rank = int(os.environ["RANK"])
torch.set_num_threads(1)
dist.init_process_group(
    "gloo", init_method=f"file://{sys.argv[2]}", rank=rank, world_size=int(os.environ["WORLD_SIZE"])
)
torch.manual_seed(0)
layers = []
for i, (inputs, outputs) in enumerate(zip(SIZES, SIZES[1:])):
    layer = torch.nn.Linear(inputs, outputs)
    torch.nn.init.uniform_(layer.weight, -0.03, 0.03)
    torch.nn.init.zeros_(layer.bias)
    layers += [layer] if i + 2 == len(SIZES) else [layer, torch.nn.ReLU()]
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x = (((torch.arange(BATCH * 784) * 7919 + rank) % 1000) / 1000).reshape(BATCH, 784)
y = torch.arange(BATCH) % 10

seconds = []
for step in range(-10, STEPS):
    begin = time.perf_counter()
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    value = float(loss.detach())
    if step >= 0:
        seconds.append(time.perf_counter() - begin)
print(json.dumps({"rank": rank, "seconds": seconds, "loss": value}), flush=True)
dist.destroy_process_group()
