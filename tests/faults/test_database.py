"""PostgreSQL stops and crashes while a training runs and everything is written to at once: its own metrics, metrics of
others, submissions, streams of observations. Who gets an acknowledgement notes it in a file that is no part of the product;
afterwards the database holds all of that, each once, and nothing by halves. Meanwhile clients see 503 with Retry-After or a
closed connection, and the training is the same process before and after."""
import http.client
import json
import os
import random
import sys
import threading
import time
from pathlib import Path

import pytest

from harness import Postgres, Server, misbehaviour, until
from stack import ENDED, Worker, attempts_of, pipeline, raw_log, steps_of, submit, wait_for_run

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))
from world import World  # noqa: E402

ROUNDS = 30 if os.environ.get("SOAK") else 4
LONG = 6.5  # seconds: more than a request waits for the database
M, WORK = "/api/2.0/mlflow", {"X-Tidemill-Project": "jobs"}

# Logs a metric until it is told to stop; whatever is not acknowledged is sent again, and only 503 or a closed connection may
# be in the way.
TRAIN = """
import http.client, json, os, sys, time, urllib.error, urllib.request
folder = sys.argv[1]
token = open(os.environ["TIDEMILL_TOKEN_FILE"]).read()
with open(folder + "/pid.new", "w") as f:
    f.write("%d %s" % (os.getpid(), open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19]))
os.rename(folder + "/pid.new", folder + "/pid")
step = 0
while not os.path.exists(folder + "/stop"):
    body = json.dumps({"run_id": os.environ["MLFLOW_RUN_ID"], "key": "loss", "value": 1 / (step + 1), "timestamp": step, "step": step})
    ask = urllib.request.Request(os.environ["MLFLOW_TRACKING_URI"] + "/api/2.0/mlflow/runs/log-metric", body.encode(),
                                 {"Content-Type": "application/json", "Authorization": "Bearer " + token})
    try:
        urllib.request.urlopen(ask, timeout=60).read()
    except urllib.error.HTTPError as e:
        if e.code != 503 or not e.headers.get("Retry-After"):
            sys.exit("step %d: %d %s" % (step, e.code, e.read()))
        time.sleep(0.05)
        continue
    except (OSError, http.client.HTTPException):
        time.sleep(0.05)
        continue
    with open(folder + "/trained", "a") as f:
        f.write("%d\\n" % step)
    print("step", step, flush=True)
    step += 1
    time.sleep(0.01)
"""


class Witness:
    """A file of lines, in the order in which things were acknowledged."""

    def __init__(self, path):
        self.path, self.lock = path, threading.Lock()

    def note(self, *what):
        with self.lock, open(self.path, "a") as f:
            f.write(json.dumps(what) + "\n")

    def read(self, kind):
        return [line[1:] for line in map(json.loads, self.path.read_text().splitlines()) if line[0] == kind]


class Load:
    def __init__(self, server, world, noted, seed):
        self.server, self.world, self.noted = server, world, noted
        self.stop, self.wrong, self.asked, self.refused = threading.Event(), [], [], 0
        self.run_id = server.admin().post(f"{M}/runs/create", {}, headers=WORK, expect=200).json()["run"]["info"]["run_id"]
        rng = random.Random(seed)
        self.threads = [threading.Thread(target=self.loop, args=(what, i, rng.random()), daemon=True)
                        for i, what in enumerate([self.metric, self.metric, self.submission, self.observations, self.observations])]
        for t in self.threads:
            t.start()

    def loop(self, what, i, seed):
        api, rng, n = self.server.client(self.server.token), random.Random(seed), 0
        while not self.stop.is_set():
            n += 1
            what(api, rng, f"{i}-{n}")

    def until_taken(self, ask, status):
        """Asks until there is an answer; None when the load ends before."""
        while not self.stop.is_set():
            try:
                reply = ask()
                if reply.status == status:
                    return reply
                if misbehaviour(reply) and b'"in_progress"' not in reply.body:
                    self.wrong.append(misbehaviour(reply))
                self.refused += 1
            except TimeoutError as e:
                self.wrong.append(repr(e))
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.03)
        return None

    def metric(self, api, rng, key):
        points = [{"key": f"k{j % 3}", "value": rng.random(), "timestamp": j, "step": rng.randrange(1 << 40)} for j in range(20)]
        if self.until_taken(lambda: api.post(f"{M}/runs/log-batch", {"run_id": self.run_id, "metrics": points}, headers=WORK), 200):
            for p in points:
                self.noted.note("point", p["key"], p["step"], p["timestamp"], p["value"])

    def submission(self, api, rng, key):
        body = {"source": pipeline("quick", {"s": {"run": ["true"]}}), "labels": {"key": key}}
        reply = self.until_taken(lambda: api.post("/api/v1/projects/jobs/runs", body, headers={"Idempotency-Key": key}), 201)
        if reply:
            self.noted.note("run", key, reply.json()["id"])
        time.sleep(0.1)

    def observations(self, api, rng, key):
        """A stream that goes on for a while, so that the fault may fall into its middle."""
        n, parts = rng.choice([5, 300, 4000]), rng.choice([1, 5])
        rows = [b"2001-01-20T%02d:00:00Z,%s/%d,%d.5,%d,%d\n" % (j % 24, key.encode(), j, j % 7, j % 5, j % 6) for j in range(n)]
        self.asked.append((key, n))

        def body():
            yield b"date,row_id,x,y,y_pred\n"
            for p in range(parts):
                yield b"".join(rows[p * n // parts:(p + 1) * n // parts])
                time.sleep(0.05)
        head = {"Content-Type": "text/csv", "Idempotency-Key": key, "Transfer-Encoding": "chunked"}
        reply = self.until_taken(lambda: self.once(api, f"{self.world.base}/monitors/m/observations", body(), head), 200)
        if reply:
            self.noted.note("rows", key, n)

    @staticmethod
    def once(api, path, body, head):
        """A stream cannot be sent again by the client itself."""
        api.close()
        return api.post(path, body, headers=head)

    def end(self):
        self.stop.set()
        for t in self.threads:
            t.join(60)
            assert not t.is_alive(), "a writer hangs"


def start_of(pid):
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]


def check_points(server, noted, folder, tracking_run):
    seen = {tuple(line.split("|")) for line in server.sql("SELECT k.key, step, time, value FROM metric JOIN metric_key k ON k.id = key_id")}
    points = {(key, str(step), str(at), repr(value)) for key, step, at, value in noted.read("point")}
    assert len(points) >= 100 and points <= {(k, s, t, repr(float(v))) for k, s, t, v in seen}, "acknowledged points are not there"
    trained = [int(n) for n in (folder / "trained").read_text().split()]
    assert trained == list(range(len(trained))) and len(trained) > ROUNDS
    kept = server.sql("SELECT step FROM metric JOIN metric_key k ON k.id = key_id JOIN tracking_run t ON t.id = tracking_id "
                      f"WHERE k.key = 'loss' AND t.run_id = '{tracking_run}' ORDER BY step")
    assert [int(n) for n in kept][:len(trained)] == trained and len(kept) <= len(trained) + 1
    return trained


def check_runs(server, noted):
    acknowledged = {key: run for key, run in noted.read("run")}
    runs = [line.split("|") for line in server.sql("SELECT labels->>'key', id FROM run WHERE pipeline = 'quick'")]
    assert len({key for key, _ in runs}) == len(runs), "a key has made two runs"
    assert acknowledged.items() <= dict(runs).items() and len(acknowledged) >= 5
    api = server.admin()
    for _, run in runs:
        until(lambda: api.get(f"/api/v1/runs/{run}", expect=200).json()["state"] in ENDED, 60, 0.1, f"{run} does not end")
    assert server.sql("SELECT count(*) FROM run WHERE pipeline = 'quick' AND state <> 'succeeded'") == ["0"]
    assert server.sql("SELECT max(attempts) FROM step JOIN run r ON r.id = run_id WHERE r.pipeline = 'quick'") == ["1"]


def check_rows(server, noted, asked):
    held = dict(line.split("|") for line in server.sql(
        "SELECT split_part(row_id, '/', 1), count(*) FROM observation WHERE row_id LIKE '%/%' GROUP BY 1"))
    acknowledged = dict(noted.read("rows"))
    assert len(acknowledged) >= 5
    for key, n in asked:
        held_here = int(held.pop(key, 0))
        assert held_here == n or (held_here == 0 and key not in acknowledged), f"{key}: {held_here} rows of {n} are there"
    assert not held


@pytest.mark.parametrize("how", ["stop", "crash"])
def test_nothing_is_lost_and_the_training_goes_on(how, witness):
    seed = int(os.environ.get("SEED") or random.SystemRandom().randrange(1 << 31))
    print(f"SEED={seed}")
    rng = random.Random(seed)
    with Postgres() as pg, Server(pg) as server, Worker(server, "w1", cpus=8) as worker:
        world, api, noted = World(server, "jobs", "m1"), server.admin(), Witness(witness / "acknowledged")
        run = submit(api, "jobs", pipeline("train", {"train": {"run": ["/usr/bin/python3", "-c", TRAIN, str(witness)]}}))["id"]
        until(lambda: (witness / "trained").exists(), 60, 0.05, "the training does not begin")
        pid, start = (witness / "pid").read_text().split()
        assert start_of(pid) == start
        load = Load(server, world, noted, rng.random())
        try:
            for i in range(ROUNDS):
                time.sleep(rng.uniform(0.5, 2.0))  # the random moment
                getattr(pg, how)()
                time.sleep(rng.uniform(0, 1.5) if i else LONG)
                pg.start()
                until(server.ready, 30, 0.1, "the server does not come back to the database")
                assert start_of(pid) == start, "the training is not the same process"
            time.sleep(1)
        finally:
            load.end()
        assert not load.wrong and load.refused > 0, load.wrong[:5]
        assert start_of(pid) == start
        (witness / "stop").touch()
        assert wait_for_run(api, run)["state"] == "succeeded", raw_log(api, steps_of(api, run)[0]["id"])
        [step] = steps_of(api, run)
        [attempt] = attempts_of(api, step["id"])
        assert attempt["state"] == "succeeded" and attempt["log_complete"]
        trained = check_points(server, noted, witness, step["tracking_run"])
        assert raw_log(api, step["id"], "stdout") == "".join(f"step {n}\n" for n in trained).encode()
        check_runs(server, noted)
        check_rows(server, noted, load.asked)
        worker.stop()
        server.command("fsck", "--deep")
