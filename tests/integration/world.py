"""A project with one of everything, for the tests that go over all operations."""
import hashlib

import monitor_world
from harness import until
from stack import Wire, pipeline, steps_of, submit

MONITOR = """
apiVersion: tidemill/v1
kind: Monitor
metadata: {name: m}
spec:
  subject: {model: MODEL, alias: champion}
  columns: {id: row_id, time: date, prediction: y_pred, label: y}
  window: {size: 1d}
  min_samples: 2
  performance: {metric: mae}
  policy: {performance: {action: warn}, drift: {action: warn}}
"""
STEPS = {"s": {"run": ["true"], "outputs": {"out": {"path": "out", "kind": "files"}}}}


def csv(days, first=1):
    return b"date,row_id,x,y,y_pred\n" + b"".join(
        b"2001-01-%02dT%02d:00:00Z,r%d-%d,%d.5,%d,%d\n" % (first + i // 8, i % 8, first, i, i % 7, i % 5, i % 6) for i in range(8 * days))


class World:
    """Names and ids of what the project holds, as `path` fills them into a route's path."""

    def __init__(self, server, project, model):
        self.server, self.project, self.model = server, project, model
        self.api = api = server.admin()
        api.post("/api/v1/projects", {"name": project}, expect=201)
        self.base = f"/api/v1/projects/{project}"
        data = csv(5)
        self.digest = hashlib.sha256(data).hexdigest()
        version = monitor_world.dataset(api, project, "d", {"f.csv": data})
        self.source = pipeline("p", STEPS)
        api.put(f"{self.base}/pipelines/p", {"source": self.source}, expect=200)
        monitor_world.model(server, project, model, version, **{"from": "2001-01-01", "to": "2001-01-05"}, level=1.0)
        server.sql(f"INSERT INTO model_file (version_id, path, size, digest) VALUES ('mv_{model}_1', 'f.csv', {len(data)},"
                   f" '\\x{self.digest}')")
        self.monitor_source = MONITOR.replace("MODEL", model)
        api.put(f"{self.base}/monitors/m", self.monitor_source.encode(),
                headers={"Content-Type": "application/yaml"}, expect=200)
        api.post(f"{self.base}/monitors/m/observations", csv(2, 6), headers={"Content-Type": "text/csv"}, expect=200)
        # The sweep may have closed it before.
        api.post(f"{self.base}/monitors/m/windows/close", {"before": "2001-01-07T00:00:00Z"}, expect=200)
        self.decision = until(lambda: api.get(f"{self.base}/monitors/m/decisions", expect=200).json()["items"], 20)[0]["id"]
        self.window = api.get(f"{self.base}/monitors/m/windows", expect=200).json()["items"][-1]["id"]

    def work(self, wire):
        """One run whose attempt goes on in the worker's hands, one that has ended, one that waits."""
        self.wire = wire
        ended = submit(self.api, self.project, self.source)["id"]
        self.ended_job = wire.take(ended)
        wire.outputs(self.ended_job, {"out": [("out/a.txt", b"abc")]})
        wire.finish(self.ended_job["attempt"])
        until(lambda: self.api.get(f"/api/v1/runs/{ended}").json()["state"] == "succeeded", 20)
        self.ended_run = ended
        self.ended_step = steps_of(self.api, ended)[0]["id"]
        self.run = submit(self.api, self.project, self.source)["id"]
        self.job = wire.take(self.run)
        self.step, self.attempt = self.job["step"], self.job["attempt"]
        self.epoch, self.tracking = self.job["epoch"], self.job["tracking_run"]
        self.artifacts = f"/api/2.0/mlflow-artifacts/artifacts/{self.job['experiment_id']}/{self.tracking}/artifacts"
        self.api.put(f"{self.artifacts}/f.csv", b"1\n", expect=200)
        self.experiment = self.job["experiment_id"]
        return self

    def names(self, op=""):
        step = self.ended_step if op == "steps.outputs" else self.step
        path = "out/a.txt" if op == "steps.outputs" else "f.csv"
        return {"path": path, "project": self.project, "dataset": "d", "number": "1", "digest": self.digest, "pipeline": "p",
                "run": self.run, "step": step, "attempt": self.attempt, "tracking": self.tracking,
                "model": self.model, "alias": "champion", "monitor": "m", "window": self.window,
                "decision": self.decision, "kind": "pipeline.json", "output": "out", "worker": self.wire.id, "pool": "default"}


def tables(server):
    """Rows of every table, but for those that count requests or time."""
    skip = ("idempotency", "worker_seen", "leader", "session", "event")
    names = server.sql("SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE relkind IN ('r', 'p')"
                       " AND NOT relispartition AND nspname = 'public' ORDER BY 1")
    names = [n for n in names if n not in skip]
    rows = server.sql(" UNION ALL ".join(f"SELECT '{n}', count(*) FROM \"{n}\"" for n in names))
    # A worker's inventory is told when it changes, which it does while the tests run.
    events = server.sql("SELECT 'event ' || type, count(*) FROM event WHERE type <> 'worker.updated' GROUP BY 1")
    return dict(r.split("|") for r in rows + events)


