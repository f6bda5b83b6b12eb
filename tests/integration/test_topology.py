"""What workers tell of how things are wired, and what steps get of it: GPUs that are near to each other (a fake library of the
driver, all else is real), and workers on which the ranks of a step reach each other."""
import subprocess

import pytest

import stack
from harness import SANITIZERS, program, until
from test_engine import Hand, pipeline, submit as submit_text
from test_queue import why_until

GPUS = ["GPU-%08x-0000-4000-8000-000000000000" % i for i in range(8)]
TOLD = {"FAKE_NVML_GPUS": "8", "FAKE_NVML_NUMA": "4", "FAKE_NVML_LINKS": "2"}  # two nodes; bridges between two each


@pytest.fixture(scope="module")
def worker(server, admin):
    admin.post("/api/v1/projects", {"name": "near"}, expect=201)
    with stack.Worker(server, "near", more=TOLD, cpus=8, join_token=stack.join_token(admin, pool="near"),
                      nvml_library=program("libfake_nvml.so")) as w:
        yield w


def submit(admin, gpus, script):
    step = {"run": ["/bin/sh", "-c", script], "placement": {"pool": "near"}, "resources": {"gpus": gpus, "cpus": 0.1}}
    return stack.submit(admin, "near", stack.pipeline("p", {"a": step}))["id"]


def devices(admin, run):
    step = stack.steps_of(admin, run)[0]["id"]
    return until(lambda: [a["devices"] for a in stack.attempts_of(admin, step)], 30)[0]


def test_a_worker_tells_how_its_gpus_are_wired(server, admin, worker, tmp_path):
    one = until(lambda: [w for w in admin.get("/api/v1/workers", expect=200).json()["items"] if w["name"] == "near" and w["devices"]], 30)[0]
    assert [d["uuid"] for d in one["devices"]] == GPUS
    assert [d["numa"] for d in one["devices"]] == [0] * 4 + [1] * 4
    assert [d["links"] for d in one["devices"]] == [[GPUS[i ^ 1]] for i in range(8)]
    env = {"XDG_CONFIG_HOME": str(tmp_path), "TIDEMILL_SERVER": f"http://127.0.0.1:{server.port}", "TIDEMILL_TOKEN": server.token,
           **SANITIZERS}
    shown = subprocess.run([program("tidemill"), "worker", "show", "near"], env=env, text=True, capture_output=True, timeout=60).stdout
    assert [line for line in shown.splitlines() if GPUS[5] in line and line.endswith(", 80 GiB, node 1, NVLink to 1 of 7")], shown


def test_a_step_gets_gpus_that_are_near(server, admin, worker):
    go = worker.dir / "go"
    wait = f"while [ ! -e {go} ]; do sleep 0.05; done"
    single = submit(admin, 1, wait)
    assert devices(admin, single) == [GPUS[0]]
    pair = submit(admin, 2, wait)
    assert devices(admin, pair) == GPUS[2:4]  # not the next two, which have no bridge
    other = submit(admin, 1, wait)
    assert devices(admin, other) == [GPUS[1]]  # its mate is in use, so it breaks no pair
    four = submit(admin, 4, wait + "; echo got $CUDA_VISIBLE_DEVICES")
    assert devices(admin, four) == GPUS[4:]
    go.touch()
    for run in (single, pair, other, four):
        assert stack.wait_for_run(admin, run)["state"] == "succeeded"


def test_a_gang_goes_where_its_ranks_reach_each_other(server, admin):
    admin.post("/api/v1/projects", {"name": "reach"}, expect=201)
    hands = [Hand(server, admin, f"reach-{i}", pool="reach", runtimes=["docker"], isolated=["docker"]) for i in range(3)]
    for hand in hands:
        hand.sync()
    step = "{run: [x], image: 'x:1', runtimes: [docker], placement: {pool: reach, nodes: 2}}"
    run = submit_text(admin, "reach", pipeline({"a": step}))
    [b] = why_until(admin, run, "isolated")["blockers"]
    assert b["message"] == "no worker of pool reach lets what docker runs for several nodes reach each other (gang-host-network)"
    assert (b["unsatisfiable"], b["workers"], b["what"]) == (True, 3, "docker")
    assert admin.get("/api/v1/workers/reach-0", expect=200).json()["isolated"] == ["docker"]
    hands[0].machine["isolated"] = []  # its operator has allowed it
    hands[0].sync()
    [b] = why_until(admin, run, "nodes")["blockers"]
    assert b["message"].endswith("each; pool reach has 1, and 2 more where containers do not reach each other (gang-host-network)")
    assert (b["unsatisfiable"], b["unit"], b["need"], b["most"]) == (True, "workers", 2, 1)
    hands[2].machine["isolated"] = []
    hands[2].sync()
    given = [hands[i].take()[0] for i in (0, 2)]
    assert sorted(a["rank"] for a in given) == [0, 1] and not hands[1].sync().get("assign")
