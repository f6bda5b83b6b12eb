"""The real tidemill-worker with its `docker` runtime on a private daemon, against the fake server; and with GPUs that a
fake library plays."""
import os
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_docker_runtime import daemon  # noqa: E402,F401
from test_worker import BUILD, ROOT, Worker, built, running, server, sh, wait_for  # noqa: E402,F401

IMAGE = "tidemill-test:1"
OUT = [{"name": "o", "path": "o", "kind": "files"}]


@pytest.fixture
def worker(server, daemon):  # noqa: F811
    w = Worker(server)
    w.settings = {"TIDEMILL_RUNTIMES": "docker,process", "TIDEMILL_DOCKER_SOCKET": daemon["socket"], "TIDEMILL_DOCKER_NETWORK": "none"}
    with running(w):
        yield w


def containers(daemon):  # noqa: F811
    return subprocess.run(["docker", "ps", "-aq"], env=daemon["env"], check=True, capture_output=True, text=True).stdout.split()


def docker_step(server, script, **more):  # noqa: F811
    return server.assign(sh(script), runtimes=["docker", "process"], image=IMAGE, **more)


needs_root = pytest.mark.skipif(os.getuid() != 0, reason="a private daemon needs root")


@needs_root
def test_step_in_a_container(server, worker, daemon):  # noqa: F811
    files = [{"path": "d/x", "digest": server.add_blob(b"data\n"), "size": 5}]
    a = docker_step(server, "cat $TIDEMILL_DATASET_D/d/x; echo no > $TIDEMILL_DATASET_D/d/x || echo read-only; id -u;"
                    "cat $TIDEMILL_TOKEN_FILE; echo; echo result > $TIDEMILL_OUTPUT/o; exit 0",
                    datasets=[{"name": "d", "version": "dsv_1", "files": files}], outputs=OUT, memory=64 << 20)
    end = server.wait_end(a, 60)
    assert end["state"] == "succeeded" and end["runtime"] == "docker", (end, worker.text())
    lines = server.output(a, 1).decode().split("\n")
    assert lines[0] == "data" and lines[1] == "read-only" and int(lines[2]) > 0 and set(lines[3][4:]) == {"*"}
    assert server.attempts[a].outputs == {"o": {"o": b"result\n"}}
    assert end["evidence"]["image_id"].startswith("sha256:")
    wait_for(lambda: worker.attempts() == [] and containers(daemon) == [])
    wait_for(lambda: len(server.holds) == 2)
    image, data = server.holds  # what a later step finds here
    assert (image["kind"], image["name"]) == ("image", IMAGE) and image["bytes"] > 0
    assert data == {"kind": "dataset", "name": "dsv_1", "bytes": 5}
    assert server.last_sync["isolated"] == ["docker"]  # no other host reaches a container without the host's network


@needs_root
def test_killed_while_a_container_runs(server, worker, daemon):  # noqa: F811
    a = docker_step(server, "n=0; while [ ! -e $TIDEMILL_OUTPUT/go ]; do n=$((n+1)); echo $n; sleep 0.02; done; exit 4")
    server.wait(lambda s: b"20\n" in s.output(a), 60)
    worker.kill()
    spool = worker.dir(a, "ctl", "spool")
    size = os.stat(spool).st_size
    wait_for(lambda: os.stat(spool).st_size > size + 500)
    worker.start()
    wait_for(lambda: len(server.attempts[a].log) > size + 500)
    open(worker.dir(a, "out", "go"), "w").close()
    end = server.wait_end(a)
    assert (end["state"], end["exit_code"]) == ("failed", 4)
    lines = server.output(a).decode().split()
    assert lines == [str(i + 1) for i in range(len(lines))]
    wait_for(lambda: containers(daemon) == [])


@needs_root
def test_cancelled_container(server, worker, daemon):  # noqa: F811
    a = docker_step(server, "trap 'exit 3' TERM; echo up; while :; do sleep 0.05; done")
    server.wait(lambda s: b"up" in s.output(a), 60)
    server.cancel(a)
    end = server.wait_end(a)
    assert (end["state"], end["exit_code"]) == ("cancelled", 3)
    wait_for(lambda: containers(daemon) == [])


@needs_root
def test_no_such_image(server, worker, daemon):  # noqa: F811
    end = server.wait_end(server.assign(sh("true"), runtimes=["docker"], image="127.0.0.1:9/none:1"), 60)
    assert (end["state"], end["reason"]) == ("failed", "image_pull") and end["message"]


@needs_root
def test_remains_are_removed(server, worker, daemon):  # noqa: F811
    """A container of ours whose folder is gone belongs to nobody."""
    a = docker_step(server, "echo up; sleep 600")
    server.wait(lambda s: b"up" in s.output(a), 60)
    worker.kill()
    subprocess.run(["rm", "-rf", worker.dir(a)], check=True)
    worker.start()
    wait_for(lambda: containers(daemon) == [])


# ---- GPUs ---------------------------------------------------------------------------------------
@pytest.fixture
def gpu_worker(server):  # noqa: F811
    subprocess.run(["make", "-s", os.path.relpath(os.path.join(BUILD, "libfake_nvml.so"), ROOT)], cwd=ROOT, check=True)
    w = Worker(server)
    w.settings = {"TIDEMILL_NVML_LIBRARY": os.path.join(BUILD, "libfake_nvml.so"), "FAKE_NVML_GPUS": "2"}
    with running(w):
        yield w


def test_a_device_is_given_to_one_at_a_time(server, gpu_worker):  # noqa: F811
    devices = server.wait(lambda s: s.last_sync and s.last_sync.get("devices"))
    assert all(d["uuid"].startswith(("GPU-", "MIG-")) and d["memory"] > 0 and d["model"] for d in devices)
    uuid = devices[0]["uuid"]
    ids = [server.assign(sh("echo $CUDA_VISIBLE_DEVICES; sleep 0.2"), devices=[uuid]) for _ in range(4)]
    spans = []
    for a in ids:
        end = server.wait_end(a)
        assert end["state"] == "succeeded" and server.output(a, 1).decode().split() == [uuid]
        spans.append((end["started_at"], end["ended_at"]))
    spans.sort()
    assert all(before[1] <= after[0] for before, after in zip(spans, spans[1:]))


def test_locks_are_rebuilt(server, gpu_worker):  # noqa: F811
    uuid = server.wait(lambda s: s.last_sync and s.last_sync.get("devices"))[0]["uuid"]
    a = server.assign(sh("echo up; sleep 600"), devices=[uuid])
    server.wait(lambda s: b"up" in s.output(a))
    gpu_worker.kill()
    b = server.assign(sh("true"), devices=[uuid])
    gpu_worker.start()
    server.wait_state(a, "running")
    server.wait_state(b, "assigned")
    assert server.attempts[b].reported is None or server.attempts[b].state == "assigned"
    server.cancel(a)
    assert server.wait_end(a)["state"] == "cancelled"
    assert server.wait_end(b)["state"] == "succeeded"


def test_no_such_device(server, gpu_worker):  # noqa: F811
    end = server.wait_end(server.assign(sh("true"), devices=["GPU-nobody"]))
    assert (end["state"], end["reason"]) == ("failed", "gpu_fault") and "GPU-nobody" in end["message"]
