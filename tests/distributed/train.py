"""A regression by gradients that are summed over all ranks, in double precision: the same weights whoever starts it, however
often. Rank 1 of the first attempt stops in the middle and waits to be killed; what it was is in the folder by then."""
import json
import os
import signal
import sys

import torch
import torch.distributed as dist

STEPS, STOP_AT, RATE = 30, 20, 0.05


def rows(rank):
    i = torch.arange(1, 9, dtype=torch.float64)
    x = torch.stack([torch.sin(i + 3 * rank), torch.cos(2 * i + rank), torch.ones_like(i)], 1)
    return x, x @ torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64) + torch.sin(5 * i + rank)


def put(path, text):
    with open(path + ".new", "w") as f:
        f.write(text)
    os.rename(path + ".new", path)


def main(folder):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    saved, attempt = os.environ["TIDEMILL_CHECKPOINT_DIR"] + "/weights.pt", os.environ["TIDEMILL_ATTEMPT_NUMBER"]
    first, w = 0, torch.zeros(3, dtype=torch.float64)
    if os.path.exists(saved):
        state = torch.load(saved)
        first, w = state["step"], state["w"]
    print(f"rank {rank} of {world} begins at step {first}", flush=True)
    w.requires_grad_()
    x, y = rows(rank)
    for step in range(first, STEPS):
        if step == STOP_AT and attempt == "1" and rank == 1:
            put(f"{folder}/waits", json.dumps([os.getppid(), os.getpid()]))
            signal.pause()
        loss = ((x @ w - y) ** 2).mean()
        loss.backward()
        dist.all_reduce(w.grad)
        with torch.no_grad():
            w -= RATE * w.grad / world
        w.grad = None
        if rank == 0:
            torch.save({"step": step + 1, "w": w.detach()}, saved + ".new")
            os.rename(saved + ".new", saved)
    total = torch.tensor([float(rank + 1)])
    dist.all_reduce(total)
    put(f"{folder}/result.{rank}", json.dumps({"w": w.tolist(), "sum": total.item(), "host": os.uname().nodename}))
    dist.destroy_process_group()


main(sys.argv[1])
