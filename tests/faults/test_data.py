"""kill -9 of the server, and a crash of PostgreSQL, while data comes in from many sides. Afterwards: what was acknowledged
is there to the byte, what is there is whole, and nothing that was half written shows."""
import hashlib
import http.client
import os
import random
import sys
import threading
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
from harness import Postgres, Server, misbehaviour  # noqa: E402

ROUNDS = 50 if os.environ.get("SOAK") else 5
M = "/api/2.0/mlflow"


class Writers:
    """Appends versions, logs points and uploads artifacts as fast as the server takes them; remembers the acknowledged, and
    every answer that is neither that nor "come again"."""

    def __init__(self, server, seed):
        self.server, self.random = server, random.Random(seed)
        self.stop = threading.Event()
        self.versions, self.points, self.artifacts, self.wrong = [], [], {}, []
        self.run = server.admin().post(f"{M}/runs/create", {}, expect=200).json()["run"]["info"]
        self.threads = [threading.Thread(target=self.loop, args=(what, self.random.random()), daemon=True)
                        for what in (self.version, self.version, self.point, self.artifact)]
        for t in self.threads:
            t.start()

    def loop(self, what, seed):
        api, rng, n = self.server.client(self.server.token), random.Random(seed), 0
        while not self.stop.is_set():
            n += 1
            try:
                what(api, rng, n)
            except TimeoutError as e:
                self.wrong.append(f"{what.__name__}: {e!r}")
            except (OSError, http.client.HTTPException):
                time.sleep(0.02)

    def taken(self, reply, *right):
        wrong = misbehaviour(reply, *right)
        if wrong:
            self.wrong.append(wrong)
        return reply.status in right

    def version(self, api, rng, n):
        data = rng.randbytes(rng.choice([10, 5000, 200_000]))
        digest = hashlib.sha256(data).hexdigest()
        if not self.taken(api.put(f"/api/v1/projects/default/blobs/{digest}", data), 201):
            return
        path = f"{threading.get_ident()}/{n}-{rng.random()}"
        reply = api.post("/api/v1/projects/default/datasets/d/versions",
                         {"files": [{"path": path, "digest": digest, "size": len(data)}], "latest": True})
        if self.taken(reply, 201):
            self.versions.append((reply.json()["number"], path, digest))

    def point(self, api, rng, n):
        point = {"key": "m", "value": rng.random(), "timestamp": n, "step": rng.randrange(1 << 40)}
        if self.taken(api.post(f"{M}/runs/log-metric", dict(point, run_id=self.run["run_id"])), 200):
            self.points.append((point["step"], point["value"]))

    def artifact(self, api, rng, n):
        data = rng.randbytes(rng.choice([1, 70_000, 3_000_000]))
        root = self.run["artifact_uri"].removeprefix("mlflow-artifacts:/")
        if self.taken(api.put(f"/api/2.0/mlflow-artifacts/artifacts/{root}/f{n}", data), 200):
            self.artifacts[f"f{n}"] = hashlib.sha256(data).hexdigest()

    def end(self):
        self.stop.set()
        for t in self.threads:
            t.join(60)
            assert not t.is_alive()


def check(server, w):
    """All acknowledged is there, and all that is there is whole."""
    assert not w.wrong, w.wrong[:5]
    api = server.admin()
    for number, path, digest in w.versions:
        body = api.get(f"/api/v1/projects/default/datasets/d/versions/{number}/files/{path}", expect=200).body
        assert hashlib.sha256(body).hexdigest() == digest
    run = w.run["run_id"]
    for path, digest in w.artifacts.items():
        body = api.get(f"/api/v1/tracking-runs/{run}/artifacts/{path}", expect=200).body
        assert hashlib.sha256(body).hexdigest() == digest
    seen = {(p["step"], p["value"]) for p in api.get(f"{M}/metrics/get-history?run_id={run}&metric_key=m").json().get("metrics", [])}
    assert set(w.points) <= seen
    numbers = [int(n) for n in server.sql("SELECT number FROM dataset_version ORDER BY number")]
    assert numbers == list(range(1, len(numbers) + 1))
    assert server.sql("SELECT count(*) FROM dataset_version v WHERE v.files <> (SELECT count(*) FROM dataset_file f "
                      "WHERE f.version_id = v.id)") == ["0"], "a version is half there"
    assert server.sql("SELECT count(*) FROM dataset_version v WHERE NOT EXISTS (SELECT 1 FROM event e WHERE e.subject = v.id)") == ["0"]
    for line in server.sql("SELECT encode(digest, 'hex') || ' ' || size FROM blob"):
        digest, size = line.split()
        file = server.dir / "data/blobs/sha256" / digest[:2] / digest[2:4] / digest
        assert file.stat().st_size == int(size), "a row without its bytes"
    server.command("fsck")


@pytest.mark.parametrize("what", ["server", "postgres"])
def test_kill(what):
    seed = int(os.environ.get("SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"SEED={seed}")
    rng = random.Random(seed)
    with Postgres() as pg, Server(pg) as server:
        api = server.admin()
        api.post("/api/v1/projects", {"name": "default"}, expect=201)
        api.post("/api/v1/projects/default/datasets", {"name": "d"}, expect=201)
        for _ in range(ROUNDS):
            w = Writers(server, rng.random())
            time.sleep(rng.uniform(0.1, 1.2))
            if what == "server":
                server.kill()
                w.end()
                server.start()
            else:
                pg.crash()
                time.sleep(rng.uniform(0, 0.2))
                pg.start()
                before = len(w.versions)
                end = time.monotonic() + 20
                while len(w.versions) == before:
                    assert time.monotonic() < end, "the server does not come back to its database"
                    time.sleep(0.05)
                w.end()
            check(server, w)
