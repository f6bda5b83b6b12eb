"""Beyond the server: workers, a whole installation, and the wire protocol of a worker spoken by hand.

    with Postgres() as pg, Server(pg) as server, Worker(server, "w1") as worker:
        ...

`Worker` is the real program; `Wire` is a test that speaks the worker's protocol itself, for what no real worker would do.
"""
import hashlib
import json
import os
import shutil
import signal
import struct
import subprocess
import tempfile
from pathlib import Path

import harness
from harness import SANITIZERS, program, until

ENDED = ("succeeded", "failed", "cancelled")


def pipeline(name, steps, **spec):
    """The text of a Pipeline: steps by name, each with `run` and whatever else; process runtime unless said otherwise."""
    defaults = {"runtimes": ["process"]}
    return json.dumps({"apiVersion": "tidemill/v1", "kind": "Pipeline", "metadata": {"name": name},
                       "spec": {"defaults": {**defaults, **spec.pop("defaults", {})}, "steps": steps, **spec}})


def submit(api, project, source, **kw):
    return api.post(f"/api/v1/projects/{project}/runs", {"source": source, **kw}, expect=201).json()


def steps_of(api, run_id):
    return api.get(f"/api/v1/runs/{run_id}/steps?limit=500", expect=200).json()["items"]


def attempts_of(api, step_id):
    return api.get(f"/api/v1/steps/{step_id}/attempts", expect=200).json()["items"]


def wait_for_run(api, run_id, seconds=60.0):
    def ended():
        run = api.get(f"/api/v1/runs/{run_id}", expect=200).json()
        return run if run["state"] in ENDED else None
    return until(ended, seconds, 0.1, lambda: f"{run_id} has not ended: {api.get(f'/api/v1/runs/{run_id}')}")


def raw_log(api, step_id, stream=None):
    extra = f"&stream={stream}" if stream else ""
    return api.get(f"/api/v1/steps/{step_id}/log?raw=true{extra}", expect=200).body


def join_token(api, **kw):
    return api.post("/api/v1/workers/join-tokens", kw, expect=201).json()["token"]


def frame(data, stream=1, time_us=1_000_000):
    """One frame of a log's spool, as api/frame.h says."""
    return struct.pack("<IBBHQ", len(data), stream, 0, 0, time_us) + data


def whereabouts(entry):
    """What /proc/PID tells of where a process stands, and its command line. Of some it tells only root where they stand."""
    out = ""
    for what in (lambda: os.readlink(entry / "cwd"), lambda: (entry / "cmdline").read_bytes().decode(errors="replace")):
        try:
            out += what() + "\0"
        except OSError:
            pass
    return out


class Worker:
    """A tidemill-worker with a work folder of its own. url: where it reaches the server, if not directly. prefix: of its
    command line, e.g. a namespace's. settings: like TIDEMILL_<NAME>, in lower case; more: other variables."""

    def __init__(self, server, name, url=None, prefix=(), more=None, **settings):
        self.server, self.name, self.settings, self.more = server, name, settings, more or {}
        self.prefix = list(prefix)
        self.url = url or f"http://127.0.0.1:{server.port}"
        self.proc = None

    def __enter__(self):
        self.dir = Path(tempfile.mkdtemp(prefix="tidemill-worker-", dir="/tmp"))
        self.dir.chmod(0o755)
        self.log_path = self.dir / "log"
        self.settings.setdefault("join_token", join_token(self.server.admin()))
        self.start()
        until(self.is_online, 30, message=lambda: f"the worker is not online:\n{self.log()}")
        return self

    def __exit__(self, kind, *exc):
        try:
            self.stop()
        finally:
            if kind is not None:
                print(self.log()[-20000:])
            self.end_steps()
            shutil.rmtree(self.dir, ignore_errors=True)

    def env(self):
        env = {"PATH": os.environ["PATH"], **SANITIZERS, "TIDEMILL_SERVER": self.url,
               "TIDEMILL_NAME": self.name, "TIDEMILL_WORK_DIR": str(self.dir / "work"),
               "TIDEMILL_RUNTIMES": "process", "TIDEMILL_ALLOW_LOCAL_GIT": "1"}
        env.update({f"TIDEMILL_{k.upper()}": str(v) for k, v in self.settings.items()})
        return {**env, **self.more}

    def start(self):
        assert self.proc is None or self.proc.poll() in (0, -signal.SIGKILL), f"it had ended with {self.proc.poll()}:\n{self.log()}"
        with open(self.log_path, "ab") as log:
            self.proc = subprocess.Popen([*self.prefix, str(program("tidemill-worker"))], env=self.env(), stdout=log, stderr=log)

    def is_online(self):
        assert self.proc.poll() is None, f"the worker has ended with {self.proc.returncode}:\n{self.log()}"
        return any(w["name"] == self.name and w["online"] for w in
                   self.server.admin().get("/api/v1/workers", expect=200).json()["items"])

    def id(self):
        return next(w["id"] for w in self.server.admin().get("/api/v1/workers", expect=200).json()["items"]
                    if w["name"] == self.name)

    def log(self):
        return self.log_path.read_text(errors="replace")

    def stop(self):
        harness.end_program(self)

    def kill(self):
        self.proc.kill()
        self.proc.wait(10)

    def end_steps(self):
        """What steps have left running stands in our work folder: end it by pid."""
        own = str(self.dir)
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            if own in whereabouts(entry):
                try:
                    os.kill(int(entry.name), signal.SIGKILL)
                except OSError:
                    pass

    rss_kib = harness.Server.rss_kib


class Wire:
    """The worker's side of the protocol, spoken by the test."""

    def __init__(self, server, name, cpus=64.0, runtimes=("process",), **join):
        self.server, self.name = server, name
        self.join_token = join_token(server.admin(), **join)
        joining = server.client(self.join_token)
        made = joining.post("/api/v1/workers/enroll", {"name": name}, expect=201).json()
        joining.close()
        self.id, self.token = made["worker_id"], made["token"]
        self.api = server.client(self.token)
        self.cpus, self.runtimes = cpus, list(runtimes)
        self.assigned = {}
        self.states = {}

    def message(self, wait=False):
        return {"boot_id": "boot-1", "release": "0.1.0", "runtimes": self.runtimes, "cpus": self.cpus,
                "memory": 1 << 36, "disk_free": 1 << 40, "attempts": list(self.states.values()), "wait": wait}

    def sync(self, wait=False):
        reply = self.api.post("/api/v1/workers/self/sync", self.message(wait), expect=200).json()
        for a in reply.get("assign", []):
            self.assigned[a["attempt"]] = a
            self.states[a["attempt"]] = {"id": a["attempt"], "epoch": a["epoch"], "state": "assigned"}
        for gone in reply.get("forget", []):
            self.states.pop(gone, None)
        return reply

    def take(self, run_id, seconds=20.0):
        """The first assignment of the run; reported as running."""
        def one():
            self.sync()
            return next((a for a in self.assigned.values() if a["run"] == run_id), None)
        a = until(one, seconds, 0.05, f"nothing of {run_id} was assigned")
        self.report(a["attempt"], "running", runtime="process", started_at="2026-01-01T00:00:00Z")
        return a

    def report(self, attempt, state, **kw):
        self.states[attempt] = {**self.states[attempt], "state": state, **kw}
        return self.sync()

    def outputs(self, job, outputs):
        """Uploads and commits outputs: {name: [(path, bytes), …]}."""
        base, epoch = f"/api/v1/workers/self/attempts/{job['attempt']}", job["epoch"]
        listed = []
        for name, files in outputs.items():
            entries = []
            for path, data in files:
                digest = hashlib.sha256(data).hexdigest()
                self.api.put(f"{base}/blobs/{digest}?epoch={epoch}", data, expect=201)
                entries.append({"path": path, "digest": digest, "size": len(data)})
            listed.append({"name": name, "files": entries})
        self.api.post(f"{base}/outputs", {"epoch": epoch, "outputs": listed}, expect=204)

    def finish(self, attempt, exit_code=0):
        """Ends the attempt as the real worker does: its log is agreed on first."""
        self.api.post(f"/api/v1/workers/self/attempts/{attempt}/log/final", {
            "epoch": self.assigned[attempt]["epoch"], "length": 0, "digest": hashlib.sha256(b"").hexdigest()}, expect=200)
        state = {"state": "succeeded"} if exit_code == 0 else {"state": "failed", "reason": "exit_code"}
        return self.report(attempt, **state, exit_code=exit_code, ended_at="2026-01-01T00:00:10Z")
