"""Full disks: the worker's, the server's, PostgreSQL's. Whoever is concerned is told so (`disk_full`, 507 or 503), nothing is
half written, nobody else is disturbed, and when there is space again all goes on without anybody's help."""
import contextlib
import hashlib
import os
import shutil
import subprocess

import pytest

from harness import Postgres, Server, misbehaviour, until
from stack import Worker, attempts_of, pipeline, raw_log, steps_of, submit, wait_for_run

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a file system of its own needs root")
M, WORK = "/api/2.0/mlflow", {"X-Tidemill-Project": "jobs"}


@contextlib.contextmanager
def small(path, size, **owner):
    """A file system of this size."""
    path.mkdir(parents=True, exist_ok=True)
    options = ",".join([f"size={size}", *(f"{k}={v}" for k, v in owner.items())])
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tidemill-test", path], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", path], check=True)


@contextlib.contextmanager
def full(path, leave=0):
    """Nothing, or only so many bytes, can be written there."""
    ballast = path / "ballast"
    with open(ballast, "wb", buffering=0) as f:
        try:
            while True:
                f.write(bytes(1 << 16))
        except OSError:
            pass
        if leave:
            f.truncate(f.tell() - leave)
    try:
        yield
    finally:
        ballast.unlink()


class SmallServer(Server):
    """Its data folder is a file system of 48 MiB."""

    def __enter__(self):
        self.mounts = contextlib.ExitStack()
        return super().__enter__()

    def start(self):
        if not (self.dir / "data").is_mount():
            self.data = self.mounts.enter_context(small(self.dir / "data", "48m", mode=700))
        super().start()

    def __exit__(self, *exc):
        self.stop()
        self.mounts.close()
        super().__exit__(*exc)


def run_step(api, script, **step):
    [name] = ["s"]
    run = submit(api, "jobs", pipeline("p", {name: {"run": ["/bin/sh", "-c", script], "retries": {"infra": 0}, **step}},
                                       **step.pop("spec", {})))["id"]
    return run, steps_of(api, run)[0]["id"]


def ended(api, run, step):
    wait_for_run(api, run)
    return max(attempts_of(api, step), key=lambda a: a["number"])


@pytest.fixture(scope="module")
def server():
    with Postgres() as pg, SmallServer(pg) as s:
        s.admin().post("/api/v1/projects", {"name": "jobs"}, expect=201)
        yield s
        s.command("fsck", "--deep")


@pytest.fixture(scope="module")
def worker(server):
    """Its work folder is a file system of 24 MiB, too."""
    w = Worker(server, "w", cpus=8)
    with contextlib.ExitStack() as stack:
        enter = Worker.start

        def start():
            if not (w.dir / "work").is_mount():
                w.space = stack.enter_context(small(w.dir / "work", "24m", mode=755))
            enter(w)
        w.start = start
        with w:
            yield w
            w.stop()
    shutil.rmtree(w.dir)  # it could not be removed while it held a file system


def test_a_step_that_fills_the_workers_disk(server, worker):
    api = server.admin()
    run, step = run_step(api, "echo begun; head -c 40000000 /dev/zero > $TIDEMILL_OUTPUT/big", outputs={"o": {"path": "big", "kind": "files"}})
    a = ended(api, run, step)
    assert (a["state"], a["reason"], a["log_complete"]) == ("failed", "disk_full", True), a
    assert raw_log(api, step, "stdout") == b"begun\n"
    run, step = run_step(api, "echo small > $TIDEMILL_OUTPUT/o", outputs={"o": {"path": "o", "kind": "files"}})
    assert ended(api, run, step)["state"] == "succeeded"


def test_a_log_that_fills_the_workers_disk(server, worker):
    """The command goes on; how much could not be kept is said, and the next step finds room again."""
    api = server.admin()
    run, step = run_step(api, "i=0; while [ $i -lt 40 ]; do i=$((i+1)); head -c 1000000 /dev/zero; echo; done; exit 5")
    a = ended(api, run, step)
    assert (a["state"], a["reason"], a["exit_code"], a["log_complete"]) == ("failed", "disk_full", 5, True), a
    page, stored = api.get(f"/api/v1/steps/{step}/log?tail=1", expect=200).json(), len(raw_log(api, step, "stdout"))
    assert page["dropped"] > 0 and stored + page["dropped"] == 40 * 1_000_001, (page["dropped"], stored)
    run, step = run_step(api, "echo again")
    assert ended(api, run, step)["state"] == "succeeded" and raw_log(api, step) == b"again\n"


def test_data_that_does_not_fit_on_the_workers_disk(server, worker):
    api, entries = server.admin(), []
    api.post("/api/v1/projects/jobs/datasets", {"name": "d"}, expect=201)
    for i in range(2):  # together more than the worker has, and less than the server has
        data = os.urandom(9_000_000)
        digest = hashlib.sha256(data).hexdigest()
        api.put(f"/api/v1/projects/jobs/blobs/{digest}", data, expect=201)
        entries.append({"path": f"f{i}", "digest": digest, "size": len(data)})
    api.post("/api/v1/projects/jobs/datasets/d/versions", {"files": entries, "latest": True}, expect=201)
    source = pipeline("p", {"s": {"run": ["true"], "retries": {"infra": 0}}}, datasets={"d": {"name": "d", "version": "latest"}})
    with full(worker.space, 12_000_000):
        run = submit(api, "jobs", source)["id"]
        a = ended(api, run, steps_of(api, run)[0]["id"])
        assert (a["state"], a["reason"]) == ("failed", "disk_full"), a
    run = submit(api, "jobs", source)["id"]
    a = ended(api, run, steps_of(api, run)[0]["id"])
    assert a["state"] == "succeeded", a
    api.delete("/api/v1/projects/jobs/datasets/d")


def test_a_worker_without_a_byte(server, worker):
    """What cannot be written down is not begun."""
    api = server.admin()
    with full(worker.space):
        run, step = run_step(api, "echo never > /dev/null")
        a = ended(api, run, step)
        assert (a["state"], a["reason"]) == ("failed", "disk_full"), a
        assert worker.proc.poll() is None
    run, step = run_step(api, "echo now")
    assert ended(api, run, step)["state"] == "succeeded" and raw_log(api, step) == b"now\n"


def held(server):
    return sorted(str(p.relative_to(server.data)) for p in server.data.rglob("*") if p.is_file() and p.name != "ballast")


def test_uploads_to_a_server_without_space(server, worker):
    api = server.admin()
    run = api.post(f"{M}/runs/create", {}, headers=WORK, expect=200).json()["run"]["info"]
    root = run["artifact_uri"].removeprefix("mlflow-artifacts:/")
    data = os.urandom(3_000_000)
    digest = hashlib.sha256(data).hexdigest()
    before = held(server)
    with full(server.data, 1_000_000):
        for path in (f"/api/v1/projects/jobs/blobs/{digest}", f"/api/2.0/mlflow-artifacts/artifacts/{root}/f"):
            reply = api.put(path, data)
            assert reply.status == 507 and str(server.dir) not in reply.body.decode(), reply
        assert reply.json()["error_code"] == "RESOURCE_EXHAUSTED", reply
        assert held(server) == before, "a refused upload has left something"
        assert server.sql(f"SELECT count(*) FROM blob WHERE digest = '\\x{digest}'") == ["0"]
        # What needs no space goes on; outputs of a step wait for it.
        going, step = run_step(api, "head -c 2000000 /dev/urandom > $TIDEMILL_OUTPUT/o; echo done", outputs={"o": {"path": "o", "kind": "files"}})
        until(lambda: [a["state"] for a in attempts_of(api, step)] == ["finishing"], 30, 0.1, lambda: f"{attempts_of(api, step)}")
    a = ended(api, going, step)
    assert (a["state"], a["number"]) == ("succeeded", 1), a
    api.put(f"/api/v1/projects/jobs/blobs/{digest}", data, expect=201)
    api.put(f"/api/2.0/mlflow-artifacts/artifacts/{root}/f", data, expect=200)
    assert api.get(f"/api/v1/tracking-runs/{run['run_id']}/artifacts/f", expect=200).body == data


class SmallPostgres(Postgres):
    """Its cluster is on a file system of 256 MiB."""

    def _call(self, verb):
        if verb == "start" and not self.dir.is_mount():
            self.mounts = contextlib.ExitStack()
            self.space = self.mounts.enter_context(small(self.dir, "256m", mode=755))
        return super()._call(verb)

    def __exit__(self, *exc):
        self._call("stop")
        self.mounts.close()
        self.dir.rmdir()


def test_a_database_without_space():
    """Its crash included, which a full disk of its log is to PostgreSQL."""
    with SmallPostgres() as pg, Server(pg) as server:
        api = server.admin()
        api.post("/api/v1/projects", {"name": "jobs"}, expect=201)
        run = api.post(f"{M}/runs/create", {}, headers=WORK, expect=200).json()["run"]["info"]["run_id"]
        taken, refused, n = [], 0, 0
        with contextlib.ExitStack() as stack:
            while refused < 20 and n < 3000:
                if n == 5:
                    stack.enter_context(full(pg.dir))
                n += 1
                points = [{"key": f"k{n}-{j}", "value": n, "timestamp": j, "step": n} for j in range(200)]
                reply = api.post(f"{M}/runs/log-batch", {"run_id": run, "metrics": points}, headers=WORK)
                if reply.status == 200:
                    taken.append(n)
                else:
                    assert reply.status == 507 or not misbehaviour(reply), reply
                    refused += 1
            assert refused == 20, "it was never full"
        with contextlib.suppress(AssertionError):
            pg.start()
        pg.start()  # it may have given up meanwhile
        until(server.ready, 60, 0.2, "the server does not come back to its database")
        reply = until(lambda: (r := api.post(f"{M}/runs/log-metric", {"run_id": run, "key": "last", "value": 1, "timestamp": 1, "step": 1},
                                             headers=WORK)).status == 200 and r, 30, 0.2, "nothing can be written")
        there = {line for line in server.sql("SELECT DISTINCT split_part(substr(k.key, 2), '-', 1) FROM metric m JOIN metric_key k "
                                             "ON k.id = m.key_id WHERE k.key LIKE 'k%'")}
        assert {str(i) for i in taken} <= there, "what was acknowledged is lost"
        parts = server.sql("SELECT DISTINCT count(*) FROM metric m JOIN metric_key k ON k.id = m.key_id WHERE k.key LIKE 'k%' GROUP BY m.step")
        assert len(taken) >= 5 and parts == ["200"], f"a batch is half there: {parts}"
        server.command("fsck", "--deep")
