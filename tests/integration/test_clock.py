"""The real worker while the host's clock is set by an hour, back and forth (tests/fakes/fake_clock.c plays that): limits
count what has elapsed, over restarts of the worker too."""
import os
import struct
import subprocess
import time

import pytest

from test_worker import BUILD, ROOT, Worker, built, gate, open_gate, running, server, sh, wait_for  # noqa: F401

SECOND, HOUR = 1_000_000, 3600 * 1_000_000


@pytest.fixture
def worker(server):  # noqa: F811
    subprocess.run(["make", "-s", *(os.path.relpath(os.path.join(BUILD, f"libfake_{x}.so"), ROOT) for x in ("clock", "nvml"))], cwd=ROOT, check=True)
    w = Worker(server)
    w.offset = os.path.join(w.folder, "offset")
    set_clock(w, 0)
    use = os.path.join(w.folder, "use")
    open(use, "w").write("0")
    w.settings = {"LD_PRELOAD": os.path.join(BUILD, "libfake_clock.so"), "FAKE_CLOCK": w.offset,
                  "ASAN_OPTIONS": "verify_asan_link_order=0", "TIDEMILL_CHECKPOINT_EVERY": "1s",
                  "TIDEMILL_NVML_LIBRARY": os.path.join(BUILD, "libfake_nvml.so"), "FAKE_NVML_GPUS": "2", "FAKE_NVML_USE": use}
    with running(w):
        yield w


def set_clock(worker, us):
    """In place: the running worker sees it at once."""
    fd = os.open(worker.offset, os.O_RDWR | os.O_CREAT, 0o644)
    os.pwrite(fd, struct.pack("<q", us), 0)
    os.close(fd)


def restart(worker):
    worker.kill()
    worker.start()


def test_the_fake_reaches_the_worker(server, worker):  # noqa: F811
    set_clock(worker, -100 * HOUR)
    restart(worker)
    wait_for(lambda: any(line.startswith(time.strftime("ts=%Y-%m-%d", time.gmtime(time.time() - 100 * 3600)))
                         for line in worker.text().splitlines()))


@pytest.mark.parametrize("step", [HOUR, -HOUR], ids=["forward", "back"])
def test_limits_count_what_has_elapsed(server, worker, step):  # noqa: F811
    """Of each kind one that ends in time, and one with a long limit that goes on; the worker restarts after the step."""
    path, wait = gate(worker, "go")
    gpus = server.wait(lambda s: (s.last_sync or {}).get("devices"))
    digest = server.add_blob(b"data")
    data = {"datasets": [{"name": "d", "version_id": "dsv_1", "files": [{"path": "f", "digest": digest, "size": 4}]}]}
    server.hold_blobs = True
    kinds = {"timeout": lambda n, us: {"time_limit": us},
             "start_timeout": lambda n, us: {"start_timeout": us, **data},
             "gpu_idle": lambda n, us: {"gpu_idle": us, "gpu_idle_stop": True, "devices": [gpus[n]["uuid"]]}}
    began = time.monotonic()
    short, long = ({kind: server.assign(sh(f"echo up; {wait}"), step=f"stp_{kind}{n}", **more(n, us * SECOND))
                    for kind, more in kinds.items()} for n, us in ((0, 5), (1, 600)))
    for a in (*short.values(), *long.values()):
        if a in (short["start_timeout"], long["start_timeout"]):
            server.wait_state(a, "preparing")
        else:
            server.wait(lambda s: b"up" in s.attempts[a].log)
    set_clock(worker, step)
    restart(worker)
    for kind, a in short.items():
        end = server.wait_end(a, 20)
        assert (end["state"], end["reason"]) == ("failed", kind) and 5 <= time.monotonic() - began < 15, (kind, end)
    assert {server.attempts[a].state for a in long.values()} == {"running", "preparing"}
    server.set(hold_blobs=False)
    open_gate(path)
    assert {server.wait_end(a)["state"] for a in long.values()} == {"succeeded"}


def test_the_deadman(server, worker, step=-HOUR):  # noqa: F811
    """It is renewed for longer than its limit, and counts that when the server is gone."""
    a = server.assign(sh("echo up; sleep 600"), self_stop_after=2 * SECOND)
    server.wait(lambda s: b"up" in s.attempts[a].log)
    set_clock(worker, step)
    alive = worker.dir(a, "ctl", "alive")
    first = os.stat(alive).st_mtime_ns
    wait_for(lambda: os.stat(alive).st_mtime_ns > first + 2_500_000_000)
    assert server.attempts[a].state == "running"
    server.go_away()
    began = time.monotonic()
    wait_for(lambda: "state=running" not in open(worker.dir(a, "ctl", "status")).read(), 12)
    assert 1 < time.monotonic() - began < 8
    server.come_back()
    assert server.wait_end(a)["reason"] == "worker_lost"


def test_a_checkpoint_from_the_future(server, worker):  # noqa: F811
    """Its files seem to be written an hour from now: it is brought away all the same."""
    set_clock(worker, -HOUR)
    path, wait = gate(worker, "go")
    a = server.assign(sh(f"echo 7 > $TIDEMILL_CHECKPOINT_DIR/step; {wait}; exit 1"), user_retries=1)
    [files] = server.wait(lambda s: s.attempts[a].checkpoints, 15)
    assert files == {"step": b"7\n"}
    open_gate(path)
    assert server.wait_end(a)["reason"] == "exit_code"
