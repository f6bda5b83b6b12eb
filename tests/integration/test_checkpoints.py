"""What a step leaves in TIDEMILL_CHECKPOINT_DIR is there for its next attempt: on the same host, and on another one."""
import os
import random
import re
import signal
import time

import pytest

from harness import Server, until
from proxy import CUT_REQUEST, FaultProxy
from stack import Wire, Worker, attempts_of, join_token, pipeline, raw_log, steps_of, submit, wait_for_run

# Counts steps; each is in the checkpoint before it is told of.
TRAIN = """
import os, sys, time
folder, total, pause = os.environ["TIDEMILL_CHECKPOINT_DIR"], int(sys.argv[1]), float(sys.argv[2])
file = os.path.join(folder, "deep", "step")
os.makedirs(os.path.dirname(file), exist_ok=True)
step = int(open(file).read()) if os.path.exists(file) else 0
print("resumed at", step, "pid", os.getpid(), flush=True)
while step < total:
    time.sleep(pause)
    step += 1
    with open(file + ".new", "w") as f:
        f.write(str(step))
    os.rename(file + ".new", file)
    print("step", step, flush=True)
"""


@pytest.fixture(scope="module")
def server(postgres):
    with Server(postgres) as s:
        s.admin().post("/api/v1/projects", {"name": "ckpt"}, expect=201)
        yield s


def worker_of(server, pool, name, **settings):
    """Each test has a pool of its own, so that none is given to a worker that another one has ended."""
    return Worker(server, name, cpus=4, join_token=join_token(server.admin(), pool=pool), **settings)


def train(api, pool, total, pause, **more):
    step = {"placement": {"pool": pool}, "run": ["/usr/bin/python3", "-c", TRAIN, str(total), str(pause)], **more}
    step.setdefault("retries", {"user": 20, "infra": 20, "backoff": {"first": "0s"}})
    return submit(api, "ckpt", pipeline("train", {"s": step}))["id"]


def step_of(api, run):
    return steps_of(api, run)[0]


def log_of(api, attempt):
    return api.get(f"/api/v1/attempts/{attempt['id']}/log?raw=true&stream=stdout", expect=200).body.decode()


def reached(text):
    """(resumed at, last step told of)."""
    steps = [int(n) for n in re.findall(r"^step (\d+)$", text, re.M)]
    start = int(re.search(r"^resumed at (\d+)", text, re.M)[1])
    assert steps == list(range(start + 1, start + 1 + len(steps))), text
    return start, start + len(steps)


def check_chain(api, run):
    """Each attempt began where the one before had left off: no step is lost, and one at most is done twice."""
    attempts = sorted(attempts_of(api, step_of(api, run)["id"]), key=lambda a: a["number"])
    before = 0
    for n, a in enumerate(attempts):
        start, end = reached(log_of(api, a))
        assert before <= start <= before + 1, f"attempt {n + 1} began at {start}, the one before had come to {before}"
        assert bool(a["evidence"].get("resumed")) == (n > 0 and start > 0)
        before = end
    return attempts


def kept(worker):
    return sorted(p.name for p in (worker.dir / "work/checkpoints").iterdir())


def pid_of(api, run):
    """The training process of the newest attempt, when it is there."""
    attempts = attempts_of(api, step_of(api, run)["id"])
    newest = max(attempts, key=lambda a: a["number"], default=None)
    if newest is None or newest["state"] != "running":
        return None
    found = re.search(r"pid (\d+)\n", log_of(api, newest))
    return (newest["number"], int(found[1])) if found else None


def test_a_training_killed_again_and_again_goes_on(server):
    seed = int(os.environ.get("SEED") or random.SystemRandom().randrange(1 << 31))
    print(f"SEED={seed}")
    rng, api = random.Random(seed), server.admin()
    with worker_of(server, "p1", "c1") as worker:
        run, last = train(api, "p1", 150, 0.03), 0
        for _ in range(4):
            number, pid = until(lambda: (p := pid_of(api, run)) and p[0] > last and p, 60, 0.05)
            time.sleep(rng.uniform(0, 0.8))  # the random moment
            os.kill(pid, signal.SIGKILL)
            last = number
        assert wait_for_run(api, run)["state"] == "succeeded"
        attempts = check_chain(api, run)
        assert len(attempts) == 5 and [a["reason"] for a in attempts[:4]] == ["signal"] * 4
        assert reached(log_of(api, attempts[-1]))[1] == 150
        # Nothing is kept once the step has ended, here or there.
        until(lambda: kept(worker) == [], 40, 0.2, lambda: kept(worker))
        assert server.sql("SELECT count(*) FROM checkpoint_file") == ["0"]
        assert step_of(api, run)["checkpoint_attempt"] == 4
        worker.stop()


def test_another_host_goes_on_from_what_the_server_has(server):
    """The first worker is gone for good, with its disk; the second one has never seen the step."""
    api = server.admin()
    with worker_of(server, "p2", "c2", checkpoint_every="1s") as one:
        run = train(api, "p2", 40, 0.3, on_lost={"lost_after": "10s"})
        # A file that is always being written to is not taken; hold it still for a moment.
        _, pid = until(lambda: pid_of(api, run), 60, 0.05)
        until(lambda: "step 5\n" in raw_log(api, step_of(api, run)["id"]).decode(), 60, 0.05)
        os.kill(pid, signal.SIGSTOP)
        until(lambda: step_of(api, run)["checkpoint_attempt"] == 1, 60, 0.1, "the checkpoint does not reach the server")
        one.kill()
        one.end_steps()
        with worker_of(server, "p2", "c3") as two:
            assert wait_for_run(api, run, 120)["state"] == "succeeded"
            attempts = sorted(attempts_of(api, step_of(api, run)["id"]), key=lambda a: a["number"])
            assert [a["state"] for a in attempts] == ["lost", "succeeded"] and attempts[1]["worker"] == "c3"
            start, end = reached(log_of(api, attempts[1]))
            assert 5 <= start <= 12 and end == 40 and attempts[1]["evidence"]["resumed"]
            two.stop()


def test_what_is_older_than_the_servers_is_not_taken(server):
    """One host, then another, then the first again: it must not go back to what it kept itself."""
    api = server.admin()
    with worker_of(server, "p4", "c4") as one:
        run = train(api, "p4", 10000, 0.02)
        _, pid = until(lambda: pid_of(api, run), 60, 0.05)
        until(lambda: "step 10\n" in raw_log(api, step_of(api, run)["id"]).decode(), 60, 0.05)
        api.post(f"/api/v1/workers/{one.id()}/drain", expect=(200, 204))
        os.kill(pid, signal.SIGKILL)
        until(lambda: kept(one), 60, 0.05)
        with worker_of(server, "p4", "c5") as two:
            number, pid = until(lambda: (p := pid_of(api, run)) and p[0] == 2 and p, 60, 0.05)
            until(lambda: "step 60\n" in log_of(api, max(attempts_of(api, step_of(api, run)["id"]), key=lambda a: a["number"])), 60, 0.05)
            api.post(f"/api/v1/workers/{two.id()}/drain", expect=(200, 204))
            api.post(f"/api/v1/workers/{one.id()}/resume", expect=(200, 204))
            os.kill(pid, signal.SIGKILL)
            until(lambda: (p := pid_of(api, run)) and p[0] == 3, 60, 0.05)
            attempts = sorted(attempts_of(api, step_of(api, run)["id"]), key=lambda a: a["number"])
            assert [a["worker"] for a in attempts] == ["c4", "c5", "c4"]
            assert reached(log_of(api, attempts[2]))[0] >= 60
            api.post(f"/api/v1/runs/{run}/cancel", expect=200)
            assert wait_for_run(api, run)["state"] == "cancelled"
            check_chain(api, run)
            for w in (one, two):
                until(lambda: kept(w) == [], 60, 0.2, lambda: kept(w))
                w.stop()


def test_a_checkpoint_that_is_too_large_stays_on_its_host_and_is_told(postgres):
    with Server(postgres, checkpoint_max="1000") as server:
        api = server.admin()
        api.post("/api/v1/projects", {"name": "ckpt"}, expect=201)
        script = "cd $TIDEMILL_CHECKPOINT_DIR; ls -l; if [ -e x ]; then exit 0; fi; head -c %d /dev/zero > x; exit 3"
        with worker_of(server, "p7", "c7", checkpoint_every="1s") as worker:
            for size, at_server in ((1000, 1), (1001, 0)):
                step = {"placement": {"pool": "p7"}, "run": script % size, "retries": {"user": 1, "backoff": {"first": "0s"}}}
                run = submit(api, "ckpt", pipeline("large", {"s": step}))["id"]
                assert wait_for_run(api, run)["state"] == "succeeded"  # on the same host
                one, two = sorted(attempts_of(api, step_of(api, run)["id"]), key=lambda a: a["number"])
                assert step_of(api, run)["checkpoint_attempt"] == at_server and two["evidence"]["resumed"]
                said = one["evidence"].get("checkpoint", "")
                assert ("1001 bytes" in said and "checkpoint-max" in said) == (at_server == 0), said
            worker.stop()
        wire = Wire(server, "w7")
        job = wire.take(submit(api, "ckpt", pipeline("sent", {"s": {"run": "true"}}))["id"])
        files = [{"path": p, "digest": "0" * 64, "size": n} for p, n in (("a", 999), ("b", 2))]
        [error] = wire.api.post(f"/api/v1/workers/self/attempts/{job['attempt']}/checkpoint", {"epoch": job["epoch"], "files": files},
                                expect=422).json()["errors"]
        assert error["pointer"] == "/files" and "1000 bytes (checkpoint-max" in error["detail"]


def test_a_first_failure_without_retries_keeps_nothing(server):
    api = server.admin()
    with worker_of(server, "p6", "c6") as worker:
        run = submit(api, "ckpt", pipeline("once", {"s": {"placement": {"pool": "p6"}, "run": "echo x > $TIDEMILL_CHECKPOINT_DIR/x; exit 3"}}))["id"]
        assert wait_for_run(api, run)["state"] == "failed"
        assert step_of(api, run)["checkpoint_attempt"] == 0  # nothing would ever go on from it
        until(lambda: kept(worker) == [], 60, 0.2, lambda: kept(worker))
        worker.stop()


def test_one_that_gives_way_goes_on_where_it_was(server):
    """A real worker ends it with SIGTERM, brings its checkpoint, runs who goes first, and goes on."""
    api = server.admin()
    api.put("/api/v1/pools/ck-preempt", {"preemption": "priority"}, expect=200)
    whole = {"resources": {"cpus": 4}}
    with worker_of(server, "ck-preempt", "ck-preempt"):
        low = train(api, "ck-preempt", 40, 0.05, **whole, retries={"user": 0, "infra": 0, "preempted": 1})
        first = until(lambda: next(iter(attempts_of(api, step_of(api, low)["id"])), None), 30)
        until(lambda: "step 5\n" in log_of(api, first), 30)
        urgent = {"placement": {"pool": "ck-preempt", "priority": 5}, "run": ["true"], **whole}
        high = submit(api, "ckpt", pipeline("urgent", {"s": urgent}))["id"]
        assert wait_for_run(api, high, 60)["state"] == "succeeded"
        assert wait_for_run(api, low, 60)["state"] == "succeeded"
    one, two = check_chain(api, low)
    assert (one["state"], one["reason"], two["state"]) == ("failed", "preempted", "succeeded")
    assert one["message"] == "preempted by step s of project ckpt (priority 5 > 0)"
    assert reached(log_of(api, two))[0] >= 5
    [h] = attempts_of(api, step_of(api, high)["id"])
    assert one["ended_at"] <= h["started_at"] and h["ended_at"] <= two["started_at"]


# Two files that belong together, in generations; each is written when a file says so.
PAIRS = """
import os, sys, time
folder, gate = os.environ["TIDEMILL_CHECKPOINT_DIR"], sys.argv[1]
read = lambda n: open(os.path.join(folder, n)).read(8) if os.path.exists(os.path.join(folder, n)) else "none"
print("resumed with", read("a"), read("b"), flush=True)
if read("a") != "none":
    sys.exit(0)
for generation in (1, 2):
    while generation > 1 and not os.path.exists(gate):
        time.sleep(0.05)
    for name in "ab":
        with open(os.path.join(folder, name), "w") as f:
            f.write(("%07d" % generation + name) * 40000)
    print("generation", generation, flush=True)
time.sleep(600)
"""


def test_a_checkpoint_whose_way_was_cut_is_none(server):
    """The worker is lost when one file of the second checkpoint is at the server and the other is not: the next attempt gets
    the first one, whole."""
    api, cut = server.admin(), []

    def rule(request):
        if not cut or request.method != "PUT" or "/blobs/" not in request.path:
            return None
        cut.append(request.path)
        return None if len(set(cut)) == 2 else CUT_REQUEST  # cut[0] says that it is on
    with FaultProxy(server.port, rule) as proxy:
        with worker_of(server, "p8", "c8", checkpoint_every="1s", url=f"http://127.0.0.1:{proxy.port}") as one:
            gate = one.dir / "gate"
            step = {"placement": {"pool": "p8"}, "run": ["/usr/bin/python3", "-c", PAIRS, str(gate)],
                    "on_lost": {"lost_after": "10s"}, "retries": {"infra": 5, "backoff": {"first": "0s"}}}
            run = submit(api, "ckpt", pipeline("pairs", {"s": step}))["id"]
            until(lambda: step_of(api, run)["checkpoint_attempt"] == 1, 60, 0.1, "the checkpoint does not reach the server")
            cut.append("")
            gate.touch()
            until(lambda: proxy.done[CUT_REQUEST] >= 2, 60, 0.05, "the second checkpoint is not on its way")
            one.kill()
            one.end_steps()
            with worker_of(server, "p8", "c9") as two:
                assert wait_for_run(api, run, 120)["state"] == "succeeded"
                attempts = sorted(attempts_of(api, step_of(api, run)["id"]), key=lambda a: a["number"])
                assert [a["state"] for a in attempts] == ["lost", "succeeded"]
                assert log_of(api, attempts[0]) == "resumed with none none\ngeneration 1\ngeneration 2\n"
                assert log_of(api, attempts[1]) == "resumed with 0000001a 0000001b\n"
                two.stop()
