"""Cancel at every phase of an attempt that holds a GPU, with the real worker and both runtimes: the GPU (a fake library plays
it) is free within the grace and 10 s. Witness is a second attempt on the same GPU, which must begin, and finds nothing of
the first one running then. The figures are printed as a table."""
import json
import os
import subprocess
import sys
import threading
import time

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
for folder in ("integration", "lib", "fakes"):
    sys.path.insert(0, os.path.join(ROOT, "tests", folder))
from docker_proxy import DockerProxy  # noqa: E402
from registry import OwnRegistry  # noqa: E402
from test_docker_killed import Daemon, IMAGE  # noqa: E402
from test_docker_runtime import root_tar  # noqa: E402
from test_worker import BUILD, Worker, built, server, sh, wait_for  # noqa: E402,F401

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="a private daemon needs root")
GRACE, ALLOWED, GPUS = 10, 10, 12
WAIT = "while :; do sleep 0.05; done"
OUT = [{"name": "o", "path": "o", "kind": "files"}]


class Gpus:
    """The daemon as if it could give GPUs to containers: says so, and is not asked for them. Holds back starts on request."""

    def __init__(self, target):
        self.hold, self.held, self.go = set(), set(), threading.Event()
        self.proxy = DockerProxy(target, self.ask, self.answer)

    def ask(self, method, path, body):
        if path.startswith("/containers/create"):
            wanted = json.loads(body)
            assert wanted["HostConfig"].pop("DeviceRequests"), "no GPU was asked for"
            return json.dumps(wanted).encode()
        if path.endswith("/start") and path.split("/")[2] in self.hold:
            self.held.add(path.split("/")[2])
            self.go.wait(60)
        return body

    def answer(self, path, body):
        if path == "/info":
            info = json.loads(body)
            info["Runtimes"]["nvidia"] = {"path": "runc"}
            return json.dumps(info).encode()
        return body


@pytest.fixture
def worker(server):  # noqa: F811
    subprocess.run(["make", "-s", os.path.relpath(os.path.join(BUILD, "libfake_nvml.so"), ROOT)], cwd=ROOT, check=True)
    w = Worker(server)
    w.settings = {"TIDEMILL_NVML_LIBRARY": os.path.join(BUILD, "libfake_nvml.so"), "FAKE_NVML_GPUS": str(GPUS)}
    try:
        yield w
        assert w.stop() == 0, w.text()
        assert "ERROR: AddressSanitizer" not in w.text() and "runtime error" not in w.text(), w.text()
    finally:
        if os.environ.get("KEEP_LOG"):
            print(w.text()[-8000:])
        w.close()


class Phase:
    """One attempt on a GPU of its own, brought to a phase; `ready` says when it is there."""

    def __init__(self, world, name, script=WAIT, ready=None, gpu=None, **more):
        self.world, self.name = world, name
        self.gpu = gpu or world.gpus.pop()
        self.id = world.server.assign(sh(f"echo up; {script}"), step=f"stp_{len(world.phases)}", devices=[self.gpu], **{**world.more, **more})
        self.ready = ready or (lambda s: b"up" in s.output(self.id, 1))

    def state_is(self, *states):
        return lambda s: s.attempts[self.id].state in states

    def cancel(self):
        self.at = time.monotonic()
        self.world.server.cancel(self.id)


class World:
    def __init__(self, server, worker, runtime, daemon=None):  # noqa: F811
        self.server, self.worker, self.daemon, self.phases = server, worker, daemon, []
        self.more = {"runtimes": [runtime], **({"image": IMAGE} if daemon else {})}
        worker.start()
        self.gpus = [d["uuid"] for d in server.wait(lambda s: (s.last_sync or {}).get("devices"), 60)]

    def add(self, name, *args, **kw):
        self.phases.append(Phase(self, name, *args, **kw))
        return self.phases[-1]

    def add_common(self):
        s = self.server
        digest = s.add_blob(b"data")
        s.hold_blobs, s.refuse_uploads = True, 10**9
        p = self.add("staging", datasets=[{"name": "d", "version_id": "v", "files": [{"path": "f", "digest": digest, "size": 4}]}])
        p.ready = p.state_is("preparing")
        holder = self.add("running")
        s.wait(holder.ready, 90)
        waiter = self.add("waiting for its GPU", gpu=holder.gpu)
        waiter.ready = lambda s: s.attempts[waiter.id].reported
        self.add("running, ignores TERM", f"trap '' TERM; {WAIT}")
        self.add("running, with a child in a session of its own that ignores TERM",
                 f"setsid sh -c \"trap '' TERM; {WAIT}\" & {WAIT}")
        s.nag.add(self.add("running, ignores TERM, cancelled again and again", f"trap '' TERM; {WAIT}").id)
        p = self.add("uploading", "echo x > $TIDEMILL_OUTPUT/o; exit 0", outputs=OUT)
        p.ready = lambda s: s.attempts[p.id].state == "finishing" and s.refuse_uploads < 10**9
        return self

    def leftovers(self, phase):
        """What of the first attempt runs still."""
        if self.daemon:
            return self.daemon.docker("ps", "-q", "--filter", f"name={phase.id}").split()
        mark = os.path.join(self.worker.work, "attempts", phase.id)
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if mark in open(f"/proc/{pid}/environ").read():
                    found.append(pid)
            except OSError:
                continue
        return found

    def measure(self, runtime):
        """All are brought to their phase, then cancelled at once: what one needs does not hold up another."""
        for p in self.phases:
            self.server.wait(p.ready, 90)
        for p in self.phases:
            p.cancel()
        ended = {}
        end = time.monotonic() + 60
        with self.server.lock:
            while len(ended) < len(self.phases) and time.monotonic() < end:
                for p in self.phases:
                    if p.name not in ended and self.server.attempts[p.id].state in ("cancelled", "failed", "succeeded"):
                        ended[p.name] = time.monotonic() - p.at
                self.server.lock.wait(0.05)
        print(f"\n{'runtime':8} {'phase when it was cancelled':62} {'ended':>7} {'cancels':>8}")
        for p in self.phases:
            x = self.server.attempts[p.id]
            print(f"{runtime:8} {p.name:62} {ended.get(p.name, float('nan')):5.1f} s {x.told:8}")
        for p in self.phases:
            assert ended.get(p.name, 1e9) < GRACE + ALLOWED, (p.name, ended, self.server.attempts[p.id].reported)
            assert self.server.attempts[p.id].reported["reason"] == "cancelled", self.server.attempts[p.id].reported
            assert not self.leftovers(p), p.name
        seconds = [self.server.assign(sh("echo up"), step=f"stp_second{n}", devices=[gpu], **self.more)
                   for n, gpu in enumerate({p.gpu for p in self.phases})]
        for a in seconds:
            assert self.server.wait_end(a, 60)["state"] == "succeeded", self.server.attempts[a].reported


def test_process(server, worker):  # noqa: F811
    world = World(server, worker, "process").add_common()
    p = world.add("starting: at the barrier of its gang", rank=0, ranks=2)
    p.ready = lambda s: (s.attempts[p.id].reported or {}).get("ready")
    world.measure("process")


@pytest.mark.skipif(not os.environ.get("SOAK"), reason="n/a: a part of the long form")
def test_docker(server, worker):  # noqa: F811
    daemon, registry = Daemon(), OwnRegistry(root_tar("cancel"))
    gpus = Gpus(daemon.socket)
    registry.held.clear()
    try:
        with gpus.proxy as proxy:
            worker.settings.update({"TIDEMILL_RUNTIMES": "docker", "TIDEMILL_DOCKER_SOCKET": proxy.socket, "TIDEMILL_DOCKER_NETWORK": "none"})
            world = World(server, worker, "docker", daemon).add_common()
            world.add("pulling", ready=lambda s: registry.asked, image=f"{registry.image}:1")
            gpus.hold.add(f"att_{len(server.attempts) + 1:026d}")
            q = world.add("starting: the daemon does not answer", ready=lambda s: q.id in gpus.held)
            world.measure("docker")
            gpus.go.set()
            wait_for(lambda: not daemon.docker("ps", "-aq").split(), 60)
            assert worker.stop() == 0
    finally:
        gpus.go.set()
        registry.close()
        daemon.close()
