"""PyTorch on two hosts: see train.py. What is checked against it is computed by numpy, in this process."""
import json
import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest

from harness import until
from stack import attempts_of, pipeline, steps_of, submit, wait_for_run

TRAIN = Path(__file__).with_name("train.py")
torch = pytest.mark.skipif(not Path("/usr/lib/python3/dist-packages/torch").exists(), reason="python3-torch is missing")

# Debian's torchrun 1.13 is older than its Python 3.11, with which it does not know its own default of the first two. The
# last one: it looks at its processes more often than each 5 seconds.
TORCHRUN = {"PET_REDIRECTS": "1", "PET_TEE": "1", "PET_MONITOR_INTERVAL": "0.2"}


def weights(steps=30, rate=0.05):
    i = np.arange(1, 9)
    xs = [np.stack([np.sin(i + 3 * r), np.cos(2 * i + r), np.ones(8)], 1) for r in (0, 1)]
    ys = [x @ np.array([1.0, -2.0, 3.0]) + np.sin(5 * i + r) for r, x in enumerate(xs)]
    w = np.zeros(3)
    for _ in range(steps):
        w -= rate * sum(2 * x.T @ (x @ w - y) / 8 for x, y in zip(xs, ys)) / 2
    return w


def log_of(api, step, rank, attempt=None):
    path = f"/api/v1/attempts/{attempt}/log?raw=true" if attempt else f"/api/v1/steps/{step['id']}/log?raw=true&rank={rank}"
    return api.get(path, expect=200).body.decode()


@torch
@pytest.mark.parametrize("launcher", ["torchrun", "plain"])
def test_both_ranks_go_on_from_the_checkpoint_when_one_was_killed(api, workers, folder, launcher):
    script = folder / "train.py"
    shutil.copy(TRAIN, script)
    program = ["torchrun"] if launcher == "torchrun" else ["/usr/bin/python3"]
    run = submit(api, "jobs", pipeline(launcher, {"train": {
        "run": [*program, str(script), str(folder)], "placement": {"nodes": 2, "launcher": launcher},
        "resources": {"cpus": 1, "memory": "512MiB"}, "env": {"OMP_NUM_THREADS": "1", **TORCHRUN},
        "retries": {"user": 1, "backoff": {"first": "0s"}}}}))
    step = lambda: steps_of(api, run["id"])[0]  # noqa: E731

    def state():
        return "\n".join([str(step())] + [log_of(api, step(), r) for r in (0, 1) if step()["attempts"]])

    until((folder / "waits").exists, 90, 0.05, lambda: f"rank 1 does not come to the middle: {state()}")
    # With torchrun the command is the parent of what trains; it would notice some seconds later, when the other rank has, too.
    command, training = json.loads((folder / "waits").read_text())
    for pid in ([command] if launcher == "torchrun" else []) + [training]:
        os.kill(pid, signal.SIGKILL)
    ended = wait_for_run(api, run["id"], 120)
    assert ended["state"] == "succeeded", state()

    attempts = attempts_of(api, step()["id"])
    assert [(a["number"], a["rank"]) for a in attempts] == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert [a["state"] for a in attempts[2:]] == ["succeeded"] * 2
    killed = attempts[1]
    assert (killed["state"], killed["signal"]) == ("failed", 9), killed
    assert attempts[0]["state"] in ("cancelled", "failed"), attempts[0]  # stopped, or it saw its peer go first
    assert {a["worker"] for a in attempts[:2]} == {a["worker"] for a in attempts[2:]} == {"w0", "w1"}
    # Both start together, after both have ended.
    assert min(a["started_at"] for a in attempts[2:]) > max(a["ended_at"] for a in attempts[:2])

    for rank in (0, 1):
        assert f"rank {rank} of 2 begins at step 0\n" in log_of(api, step(), rank, attempts[rank]["id"])
        assert f"rank {rank} of 2 begins at step 20\n" in log_of(api, step(), rank)
    results = [json.loads((folder / f"result.{rank}").read_text()) for rank in (0, 1)]
    assert {r["host"] for r in results} == {"node-0.test", "node-1.test"}
    for r in results:
        assert r["sum"] == 3.0
        np.testing.assert_allclose(r["w"], weights(), rtol=0, atol=1e-12)
