"""Training outlives the control plane: server, worker or PostgreSQL die at random moments while steps run, logs are written
and runs are submitted. Afterwards, by the word of a witness that is no part of the product (files that the steps write to
themselves): every acknowledged run is there once and was started once, its exit code is the true one, its log is complete
to the byte."""
import os
import random
import threading
import time
import http.client

import pytest

from harness import Postgres, Server, misbehaviour, until
from stack import ENDED, Worker, attempts_of, pipeline, raw_log, steps_of

ROUNDS = 50 if os.environ.get("SOAK") else 5
LONG, SHORT = 4, 2  # threads that submit steps of seconds, and of an instant
SCRIPT = """
w={witness}/{key}
echo start >> $w
i=0
while [ $i -lt {lines} ]; do
	i=$((i + 1))
	line="{key} line $i of {lines}"
	echo "$line"
	echo "$line" >> $w.out
	[ $((i % 7)) != 0 ] || echo "{key} note $i" >&2
	sleep {pause}
done
printf 'no newline at the end'
printf 'no newline at the end' >> $w.out
exit {code}
"""


class Load:
    """Submits runs, again and again with the same key until there is an answer, and remembers what was acknowledged."""

    def __init__(self, server, witness, seed):
        self.server, self.witness, self.stop = server, witness, threading.Event()
        self.acknowledged, self.asked, self.wrong = {}, set(), []
        server.admin().post("/api/v1/projects", {"name": "jobs"}, expect=201)
        rng = random.Random(seed)
        self.threads = [threading.Thread(target=self.loop, args=(i, rng.random()), daemon=True) for i in range(LONG + SHORT)]
        for t in self.threads:
            t.start()

    def loop(self, number, seed):
        api, rng = self.server.client(self.server.token), random.Random(seed)
        n = 0
        while not self.stop.is_set():
            n += 1
            key = f"t{number}-{n}"
            lines, pause = (rng.randrange(60, 140), 0.02) if number < LONG else (rng.randrange(0, 4), 0)
            code = rng.choice([0, 0, 1, 3, 17, 255])
            script = SCRIPT.format(witness=self.witness, key=key, lines=lines, pause=pause, code=code)
            source = pipeline(f"p{number}", {"s": {"run": ["/bin/sh", "-c", script], "resources": {"cpus": 0.1, "memory": "32MiB"}}})
            run = self.submit(api, key, {"source": source, "labels": {"key": key}})
            if run is None:
                return
            self.acknowledged[key] = {"run": run, "code": code, "lines": lines}
            self.wait(api, run, 8 if number < LONG else 0.7)

    def submit(self, api, key, body):
        """Until it is acknowledged. What was asked for when the load ends may or may not have come about."""
        self.asked.add(key)
        first = None
        while True:
            try:
                reply = api.post("/api/v1/projects/jobs/runs", body, headers={"Idempotency-Key": key})
                if reply.status == 201:
                    if first not in (None, reply.json()["id"]):
                        self.wrong.append(f"{key}: two runs: {first}, {reply}")
                    if first is not None or self.stop.is_set() or random.random() > 0.2:
                        return reply.json()["id"]
                    first = reply.json()["id"]  # sometimes asked for once more, as if the answer had been lost
                elif misbehaviour(reply) and reply.json().get("code") != "in_progress":
                    self.wrong.append(f"{key}: {misbehaviour(reply)}")
                    return None
            except TimeoutError as e:
                self.wrong.append(f"{key}: {e!r}")
            except (OSError, http.client.HTTPException):
                pass
            if self.stop.is_set() and first is None:
                return None
            time.sleep(0.05)

    def wait(self, api, run, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.stop.is_set():
            time.sleep(0.1)
            try:
                reply = api.get(f"/api/v1/runs/{run}")
                if misbehaviour(reply, 200):
                    self.wrong.append(f"{run}: {misbehaviour(reply, 200)}")
                if reply.status == 200 and reply.json()["state"] in ENDED:
                    return
            except TimeoutError as e:
                self.wrong.append(f"{run}: {e!r}")
            except (OSError, http.client.HTTPException):
                pass

    def end(self):
        self.stop.set()
        for t in self.threads:
            t.join(60)
            assert not t.is_alive(), "a submitter hangs"

    def running(self):
        """Steps that have started and not ended, by the witness."""
        return sum(1 for p in self.witness.glob("*.out"))


def check_run(api, witness, key, known):
    run = api.get(f"/api/v1/runs/{known['run']}", expect=200).json()
    [step] = steps_of(api, known["run"])
    attempts = attempts_of(api, step["id"])
    said = f"{key} {known}: {run['state']} {run.get('reason')} {attempts}"
    assert run["state"] == ("succeeded" if known["code"] == 0 else "failed"), said
    assert (witness / key).read_text() == "start\n", f"{said}: it was not started exactly once: {(witness / key).read_text()!r}"
    assert len(attempts) == 1 and attempts[0]["exit_code"] == known["code"] and attempts[0]["log_complete"], said
    out = raw_log(api, step["id"], "stdout")
    wanted = (witness / f"{key}.out").read_bytes()
    assert wanted.count(b"\n") == known["lines"]
    assert out == wanted, f"{said}: {len(out)} bytes of log, the step wrote {len(wanted)}; they part at {common(out, wanted)}"
    notes = "".join(f"{key} note {i}\n" for i in range(7, known["lines"] + 1, 7)).encode()
    assert raw_log(api, step["id"], "stderr") == notes, said


def common(a, b):
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


def check(server, load, witness):
    api = server.admin()
    assert not load.wrong, load.wrong[:5]
    runs = server.sql("SELECT labels->>'key', count(*), min(id) FROM run GROUP BY 1")
    counted = {key: (int(n), run) for key, n, run in (line.split("|") for line in runs)}
    twice = {k: v for k, v in counted.items() if v[0] != 1}
    assert not twice, f"more than one run for a key: {twice}"
    assert set(counted) <= load.asked
    for key, known in load.acknowledged.items():
        assert counted.get(key, (0, None))[1] == known["run"], f"the acknowledged run {key} {known} is lost"
    until(lambda: server.sql("SELECT count(*) FROM run WHERE state NOT IN ('succeeded', 'failed', 'cancelled')") == ["0"], 90, 0.2,
          lambda: f"runs do not end: {server.sql('SELECT id, state, labels FROM run WHERE ended_at IS NULL')}"
                  f" {server.sql('SELECT id, state, reason, message FROM attempt WHERE ended_at IS NULL')}")
    for key, known in load.acknowledged.items():
        check_run(api, witness, key, known)
    assert server.sql("SELECT count(*) FROM (SELECT step_id FROM attempt GROUP BY 1 HAVING count(*) > 1) x") == ["0"]


def kill_server(pg, server, worker, rng):
    server.kill()
    time.sleep(rng.uniform(0, 1.5))
    server.start()


def kill_worker(pg, server, worker, rng):
    worker.kill()
    time.sleep(rng.uniform(0, 1.5))
    worker.start()


def crash_postgres(pg, server, worker, rng):
    if rng.random() < 0.5:
        pg.crash()
    else:
        pg.stop()
    time.sleep(rng.uniform(0, 1.0))
    pg.start()
    until(server.ready, 30, 0.1, "the server does not come back to the database")


def kill_both(pg, server, worker, rng):
    worker.kill()
    server.kill()
    time.sleep(rng.uniform(0, 1.0))
    for start in rng.sample([worker.start, server.start], 2):
        start()


@pytest.mark.parametrize("fault", [kill_server, kill_worker, crash_postgres, kill_both], ids=lambda f: f.__name__)
def test_work_goes_on(fault, witness):
    seed = int(os.environ.get("SEED", "0")) or random.SystemRandom().randrange(1, 1 << 31)
    print(f"SEED={seed}")
    rng = random.Random(seed)
    with Postgres() as pg, Server(pg) as server, Worker(server, "w1", cpus=16) as worker:
        load = Load(server, witness, seed)
        try:
            until(lambda: load.running() >= 2, 30, 0.05, "no step has started")
            for _ in range(ROUNDS):
                time.sleep(rng.uniform(0.2, 2.5))  # the random moment
                fault(pg, server, worker, rng)
            time.sleep(rng.uniform(0.5, 1.5))
        finally:
            load.end()
        assert len(load.acknowledged) >= ROUNDS + 4, "hardly anything was submitted"
        check(server, load, witness)
        worker.stop()
        server.command("fsck", "--deep")


def test_two_workers_and_200_short_steps(witness):
    """Each step starts exactly once, by what the steps themselves append to one file."""
    with Postgres() as pg, Server(pg) as server, Worker(server, "w1", cpus=8) as one, Worker(server, "w2", cpus=8) as two:
        api = server.admin()
        api.post("/api/v1/projects", {"name": "jobs"}, expect=201)
        run_ids = []
        for r in range(4):
            steps = {f"s{i}": {"run": f"echo {r}-{i} $TIDEMILL_ATTEMPT >> {witness}/starts; echo {r}-{i}",
                               "resources": {"cpus": 1, "memory": "16MiB"}} for i in range(50)}
            source = pipeline(f"many{r}", steps)
            run_ids.append(api.post("/api/v1/projects/jobs/runs", {"source": source}, expect=201).json()["id"])
        for run in run_ids:
            until(lambda: api.get(f"/api/v1/runs/{run}", expect=200).json()["state"] in ENDED, 180, 0.2)
        starts = [line.split()[0] for line in (witness / "starts").read_text().splitlines()]
        assert sorted(starts) == sorted(f"{r}-{i}" for r in range(4) for i in range(50))
        assert server.sql("SELECT count(*), count(DISTINCT worker_id), count(*) FILTER (WHERE state = 'succeeded') FROM attempt") == [
            "200|2|200"]
        for r, run in enumerate(run_ids):
            for s in steps_of(api, run):
                assert raw_log(api, s["id"]) == f"{r}-{s['name'][1:]}\n".encode()
        for w in (one, two):
            until(lambda: not list((w.dir / "work/attempts").iterdir()), 20, 0.1, "the worker keeps what has ended")
        server.command("fsck", "--deep")
