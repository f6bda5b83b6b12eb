"""Bad disks under worker and server at once (tests/fakes/fake_io.c spoils calls: full, broken, short counts), while both are
killed now and then. What the server has taken of logs and files is what the steps wrote, to the byte; what could not be done
has ended with a reason, or was done again; nothing that was half written counts after a restart; neither program ends by
itself. SEED=n repeats a campaign."""
import collections
import os
import random
import time

import pytest

from harness import Postgres, SANITIZERS, Server, program, until
from stack import Worker, attempts_of, pipeline, raw_log, steps_of, submit, wait_for_run

SOAK = bool(os.environ.get("SOAK"))
RUNS, RATE, ROUNDS = (80, 40, 25) if SOAK else (5, 20, 1)
# What the host's or the server's disk may do to an attempt; each is an infra failure, which is tried again.
REASONS = {"disk_full", "runtime_failed", "staging_failed", "upload_failed", "worker_lost", "not_started", "checkout_failed"}


class Disk:
    """Of one program, below one folder. On and off for the running program, too."""

    def __init__(self, folder, seed):
        self.folder, self.seed, self.calls, self.switch = folder, seed, folder / "spoiled", folder / "switch"
        self.calls.touch()
        self.switch.write_text("0")

    def env(self, below):
        return {"LD_PRELOAD": str(program("libfake_io.so")), "FAKE_IO": f"{self.seed},{RATE},{self.folder / below}",
                "FAKE_IO_LOG": str(self.calls), "FAKE_IO_ON": str(self.switch),
                "ASAN_OPTIONS": SANITIZERS["ASAN_OPTIONS"] + ":verify_asan_link_order=0"}

    def turn(self, on):
        fd = os.open(self.switch, os.O_WRONLY)  # in place
        os.pwrite(fd, b"1" if on else b"0", 0)
        os.close(fd)

    def spoiled(self):
        return collections.Counter(" ".join(line.split()[:2]) for line in self.calls.read_text().splitlines())


class BadServer(Server):
    seed, disk = 0, None

    def env(self):
        self.disk = self.disk or Disk(self.dir, self.seed)
        return {**super().env(), **self.disk.env("data")}

    def command(self, *args):
        with_disk, self.disk.calls = self.disk.calls, self.dir / "spoiled-by-commands"
        try:
            return super().command(*args)
        finally:
            self.disk.calls = with_disk


class BadWorker(Worker):
    seed, disk = 0, None

    def env(self):
        self.disk = self.disk or Disk(self.dir, self.seed + 1)
        return {**super().env(), **self.disk.env("work")}


def lines_of(n):
    return b"".join(b"%d of step %d\n" % (i, n) for i in range(4000))


def file_of(n):
    return (b"%d\n" % n) * 60000


def script_of(n):
    return (f"i=0; while [ $i -lt 4000 ]; do echo $i of step {n}; i=$((i+1)); done; "
            f"yes {n} | head -n 60000 > $TIDEMILL_OUTPUT/o")


def start(api, n):
    step = {"run": ["/bin/sh", "-c", script_of(n)], "outputs": {"o": {"path": "o", "kind": "files"}},
            "retries": {"infra": 20, "backoff": {"first": "1s", "factor": 1, "max": "1s"}}}
    return submit(api, "jobs", pipeline("p", {"s": step}))["id"]


def trouble(server, worker, rng):
    """One of them is killed. The worker begins again on a bad disk, and may refuse that; the server is ready first."""
    one = rng.choice([server, worker])
    one.kill()
    one.disk.turn(False)
    one.start()
    if one is server:
        until(server.ready, 30)
    one.disk.turn(True)


def refused(worker):
    """It never ends by itself, but when it cannot read at its start what it needs, and says so; it is started again then."""
    if worker.proc.poll() is None:
        return
    last = worker.log().splitlines()[-1]
    assert worker.proc.returncode == 1 and last.startswith("tidemill-worker: cannot ") and last.endswith("Input/output error"), last
    worker.disk.turn(False)
    worker.start()
    worker.disk.turn(True)


def check(api, n, run, counts):
    done = wait_for_run(api, run, 120)
    [step] = steps_of(api, run)
    attempts = attempts_of(api, step["id"])
    said = f"run {n}: {done['state']} {done.get('message')} {attempts}"
    assert done["state"] == "succeeded", said
    for a in attempts:
        counts[a.get("reason") or a["state"]] += 1
        log = api.get(f"/api/v1/attempts/{a['id']}/log?raw=true&stream=stdout", expect=200).body
        assert lines_of(n).startswith(log), f"{said}: the log of {a['id']} is not what was written"
        if a["state"] == "succeeded":
            assert a["log_complete"] and log == lines_of(n), said
        else:
            assert a["reason"] in REASONS and a["message"], said
    assert raw_log(api, step["id"], "stdout") == lines_of(n), said
    assert api.get(f"/api/v1/steps/{step['id']}/outputs/o/o", expect=200).body == file_of(n), said


def test_bad_disks():
    if not program("libfake_io.so").exists():
        pytest.skip("libfake_io.so is not built")
    seed = int(os.environ.get("SEED", "0")) or random.SystemRandom().randrange(1, 1 << 31)
    print(f"SEED={seed}")
    rng, counts = random.Random(seed), collections.Counter()
    BadServer.seed = BadWorker.seed = seed
    with Postgres() as pg, BadServer(pg) as server, BadWorker(server, "w1", cpus=8) as worker:
        api = server.admin()
        api.post("/api/v1/projects", {"name": "jobs"}, expect=201)
        runs = [start(api, n) for n in range(RUNS)]
        for one in (server, worker):
            one.disk.turn(True)
        for _ in range(ROUNDS):
            moment = time.monotonic() + rng.uniform(0.5, 3)
            until(lambda: time.monotonic() > moment, 5)
            assert server.proc.poll() is None, server.log()[-5000:]
            refused(worker)
            trouble(server, worker, rng)
        spoiled = server.disk.spoiled() + worker.disk.spoiled()
        refused(worker)
        for one in (server, worker):
            one.disk.turn(False)
            one.kill()
            one.start()
        until(server.ready, 30)
        for n, run in enumerate(runs):
            check(api, n, run, counts)
        until(lambda: not os.listdir(worker.dir / "work" / "attempts"), 60)
        server.command("fsck", "--deep")
        print(f"{sum(spoiled.values())} calls spoiled: {dict(spoiled)}; attempts: {dict(counts)}")
        assert sum(spoiled.values()) > RUNS or not SOAK
        said = worker.log() + server.log()
        assert "No space left on device" in said or "Input/output error" in said or not SOAK
