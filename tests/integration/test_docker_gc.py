"""Room on the daemon's disk, and what becomes of containers whose daemon is slow or whose runtime is no longer offered. The
disk is a small one of its own (tmpfs), so that it is really full."""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_docker_runtime import DOCKERD, root_tar  # noqa: E402,F401
from test_worker import Worker, built, server, sh, wait_for  # noqa: E402,F401
from registry import OwnRegistry  # noqa: E402

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="a private daemon needs root")
DISK, MARK = 160 << 20, 12 << 20


def docker(d, *args, check=True, **how):
    return subprocess.run(["docker", *args], env=d["env"], capture_output=True, check=check, **how).stdout.decode()


def images(d):
    return set(docker(d, "images", "--no-trunc", "-q").split())


def percent(d):
    v = os.statvfs(d["folder"] + "/data")
    return 100 - 100 * v.f_bavail / v.f_blocks


def step(server, image, script, **more):  # noqa: F811
    return server.assign(sh(script), runtimes=["docker"], image=image, **more)


@pytest.fixture(scope="module")
def registries():
    """Four images, each with a large file of its own."""
    all_of = [OwnRegistry(root_tar(os.urandom(MARK // 2).hex())) for _ in range(4)]
    yield all_of
    for r in all_of:
        r.close()


@pytest.fixture(scope="module")
def small():
    """A daemon whose disk has DISK bytes."""
    folder = tempfile.mkdtemp(prefix="tidemill-test-")
    os.chmod(folder, 0o755)
    os.mkdir(folder + "/data")
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=0711", "tmpfs", folder + "/data"], check=True)
    try:
        address = subprocess.run([DOCKERD, "start", folder], check=True, capture_output=True, text=True, timeout=180).stdout.strip()
        yield {"folder": folder, "socket": address[len("unix://"):], "env": {**os.environ, "DOCKER_HOST": address}}
    finally:
        subprocess.run([DOCKERD, "stop", folder], timeout=180)
        mounts = sorted((line.split()[1] for line in open("/proc/mounts") if folder in line), reverse=True)
        subprocess.run(["umount", "-l", *mounts], capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)


def worker_on(server, d, **settings):  # noqa: F811
    w = Worker(server)
    w.settings = {"TIDEMILL_RUNTIMES": "docker", "TIDEMILL_DOCKER_SOCKET": d["socket"], "TIDEMILL_DOCKER_NETWORK": "none",
                  "TIDEMILL_IMAGE_KEEP": "0s", **{f"TIDEMILL_{k.upper()}": str(v) for k, v in settings.items()}}
    return w.start()


def done(server, a):  # noqa: F811
    end = server.wait_end(a, 90)
    assert end["state"] == "succeeded", (end, server.output(a))
    return end["evidence"]["image_id"]


def test_room_is_made(server, small, registries):  # noqa: F811
    """Least recently used first; never one that somebody else has brought, nor one in use; and it is known after a kill."""
    a, b, c, d = (f"{r.image}:1" for r in registries)
    by_hand = docker(small, "import", "-", "by-hand:1", input=root_tar("x" * MARK)).strip()
    w = worker_on(server, small, disk_high=99)
    try:
        ids = [done(server, step(server, image, "true")) for image in (a, b, a)]
        assert ids[0] == ids[2] and percent(small) < 60
        known = {i["names"][0]: i for i in json.load(open(os.path.join(w.work, "images.json")))["images"]}
        assert set(known) == {a, b} and known[a]["size"] > MARK
        running = step(server, c, "echo up; while [ ! -e $TIDEMILL_OUTPUT/go ]; do sleep 0.05; done")
        server.wait(lambda s: b"up" in s.output(running), 90)
        in_use = docker(small, "inspect", "-f", "{{.Image}}", running).strip()
        # Another worker process, which is told to want more room than there is.
        w.kill()
        high = int(percent(small)) - 1
        w.settings.update(TIDEMILL_DISK_HIGH=str(high), TIDEMILL_DISK_LOW=str(high - 4))
        w.start()
        wait_for(lambda: ids[1] not in images(small))
        server.wait(lambda s: any("was not used" in x or "no step used" in x for x in s.last_sync.get("warnings", [])), 60)
        assert {ids[0], in_use, by_hand} <= images(small), "one was enough, and it was used longest ago"
        # Nothing is left but what is in use or not ours: that is said, and all of it stays.
        w.kill()
        w.settings.update(TIDEMILL_DISK_HIGH="2", TIDEMILL_DISK_LOW="1")
        w.start()
        wait_for(lambda: ids[0] not in images(small))
        server.wait(lambda s: any("there is no image left" in x for x in s.last_sync.get("warnings", [])), 60)
        assert {in_use, by_hand} <= images(small)
        open(w.dir(running, "out", "go"), "w").close()
        done(server, running)
        wait_for(lambda: images(small) == {by_hand})
        # A step on a full disk is not kept from its image.
        done(server, step(server, d, "true"))
        assert w.stop() == 0, w.text()
    finally:
        w.close()


def test_an_image_with_another_name_stays(server, small, registries):  # noqa: F811
    """What a person has named is taken from nobody; only our own name goes."""
    image = f"{registries[0].image}:1"
    w = worker_on(server, small, disk_high=99)
    try:
        held = done(server, step(server, image, "true"))
        docker(small, "tag", image, "of-a-person:1")
        w.kill()
        w.settings.update(TIDEMILL_DISK_HIGH="2", TIDEMILL_DISK_LOW="1")
        w.start()
        wait_for(lambda: image not in docker(small, "images", "--format", "{{.Repository}}:{{.Tag}}").split())
        assert held in images(small)
        assert w.stop() == 0, w.text()
    finally:
        w.close()


def test_a_pull_that_finds_no_space(server, small, registries):  # noqa: F811
    """Below the mark, too: what no step uses goes, and the step gets its image."""
    docker(small, "rmi", "-f", *images(small), check=False)
    w = worker_on(server, small, disk_high=99)
    filler = small["folder"] + "/data/filler"
    try:
        old = done(server, step(server, f"{registries[2].image}:1", "true"))
        v = os.statvfs(small["folder"] + "/data")
        with open(filler, "wb") as f:
            f.write(bytes(v.f_bavail * v.f_bsize - (16 << 20)))
        a = step(server, f"{registries[3].image}:1", "true")
        new = done(server, a)
        assert "no space for the image: removing others" in server.output(a).decode()
        assert old not in images(small) and new in images(small)
        # With nothing to be removed it is the disk that is full.
        with open(filler, "ab") as f:
            v = os.statvfs(small["folder"] + "/data")
            f.write(bytes(max(0, v.f_bavail * v.f_bsize - (16 << 20))))
        held = step(server, f"{registries[3].image}:1", "echo up; while [ ! -e $TIDEMILL_OUTPUT/go ]; do sleep 0.05; done")
        server.wait(lambda s: b"up" in s.output(held), 60)
        full = server.wait_end(step(server, f"{registries[2].image}:1", "true"), 90)
        assert (full["state"], full["reason"]) == ("failed", "disk_full"), full
        open(w.dir(held, "out", "go"), "w").close()
        done(server, held)
        assert w.stop() == 0, w.text()
    finally:
        os.unlink(filler)
        w.close()


# ---- between worker and daemon --------------------------------------------------------------------
class Between:
    """Stands on the daemon's socket. `rule(head)` sees the start of each request: bytes that it returns are the answer."""

    def __init__(self, d, rule):
        self.folder = tempfile.mkdtemp(prefix="tidemill-between-")
        self.path, self.to, self.rule = self.folder + "/docker.sock", d["socket"], rule
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            daemon_side = socket.socket(socket.AF_UNIX)
            daemon_side.connect(self.to)
            for source, sink, rule in ((client, daemon_side, self.rule), (daemon_side, client, None)):
                threading.Thread(target=self.pump, args=(source, sink, rule), daemon=True).start()

    @staticmethod
    def pump(source, sink, rule):
        try:
            while data := source.recv(65536):
                answer = rule(data) if rule else None
                (source if answer else sink).sendall(answer or data)
        except OSError:
            pass
        for s in (source, sink):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.listener.close()
        shutil.rmtree(self.folder)


@pytest.fixture
def plain(small):
    docker(small, "import", "-", "tidemill-test:1", input=root_tar())
    return small


@pytest.fixture
def between(plain):
    made = []

    def make(rule):
        made.append(Between(plain, rule))
        return {**plain, "socket": made[-1].path}
    yield make
    for b in made:
        b.close()


def test_an_image_that_is_taken_away_is_pulled_again(server, plain, between, registries):  # noqa: F811
    """Between the look at the image and its container, as our own making of room does."""
    image, taken = f"{registries[1].image}:1", []

    def rule(head):
        if head.startswith(b"POST /containers/create") and not taken:
            taken.append(docker(plain, "rmi", image))
    w = worker_on(server, between(rule))
    try:
        a = step(server, image, "head -c 3 /mark; echo")
        done(server, a)
        assert taken and server.output(a).decode().count(f"pulling {image}") >= 2
        assert w.stop() == 0, w.text()
    finally:
        docker(plain, "rmi", image, check=False)
        w.close()


def answer(status, words):
    body = json.dumps({"message": words}).encode()
    return b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


def test_one_that_cannot_be_removed_keeps_no_other(server, plain, between, registries):  # noqa: F811
    first, second = (f"{r.image}:1" for r in registries[:2])
    w = worker_on(server, between(lambda head: answer(b"500 Internal Server Error", "layer is broken")
                                  if head.startswith(b"DELETE /images/" + first.encode()) else None), disk_high=99)
    try:
        ids = [done(server, step(server, image, "true")) for image in (first, second)]
        w.kill()
        w.settings.update(TIDEMILL_DISK_HIGH="2", TIDEMILL_DISK_LOW="1")
        w.start()
        wait_for(lambda: ids[1] not in images(plain))
        server.wait(lambda s: any(first in x and "layer is broken" in x for x in s.last_sync.get("warnings", [])), 60)
        assert ids[0] in images(plain)
        assert w.stop() == 0, w.text()
    finally:
        docker(plain, "rmi", first, check=False)
        w.close()


def test_an_image_that_is_there_and_is_not(server, plain, between):  # noqa: F811
    """The daemon finds it and cannot make a container of it: it is not asked for ever."""
    asked = []

    def rule(head):
        if head.startswith(b"POST /containers/create"):
            asked.append(head)
            return answer(b"404 Not Found", "No such image: x")
    w = worker_on(server, between(rule))
    try:
        end = server.wait_end(step(server, "tidemill-test:1", "true"), 60)
        assert end["state"] == "failed" and "No such image" in end["message"] and len(asked) == 4
        assert w.stop() == 0, w.text()
    finally:
        w.close()


@pytest.mark.parametrize("held", ["GET /images/", "POST /containers/create"])
def test_a_cancel_waits_for_no_answer(server, plain, between, held):  # noqa: F811
    """A container that the daemon makes after all never runs, and is removed."""
    asked, go = [], threading.Event()

    def rule(head):
        if head.startswith(held.encode()):
            asked.append(head)
            go.wait(100)
    w = worker_on(server, between(rule))
    try:
        a = step(server, "tidemill-test:1", "true")
        wait_for(lambda: asked)
        server.cancel(a)
        assert server.wait_end(a, 30)["state"] == "cancelled"
        wait_for(lambda: w.attempts() == [])
        if held.startswith("POST"):  # it is made only now
            mine = {"install": json.load(open(w.work + "/credential.json"))["worker_id"], "attempt": a, "step": "s", "epoch": "1", "ctl": "/x"}
            docker(plain, "create", "--name", a, *(f"--label=tidemill.{k}={v}" for k, v in mine.items()), "tidemill-test:1", "true")
        wait_for(lambda: a not in docker(plain, "ps", "-a", "--format", "{{.Names}}").split(), 60)
        go.set()
        assert w.stop() == 0, w.text()
    finally:
        go.set()
        w.close()


def test_a_removal_in_progress_is_waited_for(server, plain, between):  # noqa: F811
    """The daemon's 409 does not say that the container is gone."""
    asked = []

    def rule(head):
        if not head.startswith(b"DELETE /containers/"):
            return None
        asked.append(head)
        body = b'{"message":"removal of container x is already in progress"}'
        return b"HTTP/1.1 409 Conflict\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body) \
            if len(asked) < 4 else None
    w = worker_on(server, between(rule))
    try:
        a = step(server, "tidemill-test:1", "true")
        server.wait_end(a, 60)
        assert len(asked) >= 4 and a not in docker(plain, "ps", "-a", "--format", "{{.Names}}").split()
        assert w.stop() == 0, w.text()
    finally:
        w.close()


def test_a_runtime_that_is_not_offered_any_more(server, plain):  # noqa: F811
    """Its containers go on and come to their own end; only nothing new begins there."""
    w = worker_on(server, plain)
    try:
        a = step(server, "tidemill-test:1", "echo up; while [ ! -e $TIDEMILL_OUTPUT/go ]; do sleep 0.05; done; exit 5")
        server.wait(lambda s: b"up" in s.output(a), 60)
        w.kill()
        w.settings["TIDEMILL_RUNTIMES"] = "process"
        w.settings["TIDEMILL_REGISTRY_AUTH_FILE"] = w.folder + "/removed"  # what only a pull needs
        w.start()
        server.wait(lambda s: s.last_sync and s.last_sync["runtimes"] == ["process"] and
                    any(x["id"] == a and x["state"] == "running" for x in s.last_sync["attempts"]), 60)
        refused = server.wait_end(step(server, "tidemill-test:1", "true"), 60)
        assert refused["reason"] == "runtime_failed" and "offers none" in refused["message"]
        assert a in docker(plain, "ps", "--format", "{{.Names}}").split()
        open(w.dir(a, "out", "go"), "w").close()
        end = server.wait_end(a, 60)
        assert (end["state"], end["exit_code"]) == ("failed", 5)
        assert a not in docker(plain, "ps", "-a", "--format", "{{.Names}}").split()
        assert w.stop() == 0, w.text()
    finally:
        w.close()
