"""Exit 137 told apart: who ended a container, on a real daemon, with and without live-restore."""
import datetime
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from docker_proxy import DockerProxy, connect  # noqa: E402
from test_docker_runtime import BUILD, DOCKERD, ROOT, root_tar  # noqa: E402,F401
from test_worker import Worker, built, running, server, sh, wait_for  # noqa: E402,F401

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="a private daemon needs root")
IMAGE = "tidemill-test:1"


class Daemon:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="tidemill-test-")
        os.chmod(self.folder, 0o755)
        self.start()
        self.docker("import", "-", IMAGE, input=root_tar())

    def start(self, live_restore=True):
        address = subprocess.run([DOCKERD, "start", self.folder], check=True, capture_output=True, text=True, timeout=180, env={
            **os.environ, "DOCKERD_ARGS": "" if live_restore else "--live-restore=false"}).stdout.strip()
        self.env, self.socket = {**os.environ, "DOCKER_HOST": address}, address[len("unix://"):]

    def end(self, signo):
        pid = int(open(os.path.join(self.folder, "dockerd.pid")).read())
        os.kill(pid, signo)
        wait_for(lambda: not os.path.exists(f"/proc/{pid}") or ") Z" in open(f"/proc/{pid}/stat").read(), 60)

    def docker(self, *args, **how):
        return subprocess.run(["docker", *args], env=self.env, check=True, capture_output=True, **how).stdout

    def pid(self, name):
        return json.loads(self.docker("inspect", name))[0]["State"]["Pid"]

    def close(self):
        subprocess.run([DOCKERD, "stop", self.folder], timeout=180)
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture(scope="module")
def daemon():
    d = Daemon()
    try:
        yield d
    finally:
        d.close()


@pytest.fixture
def worker(server, daemon):  # noqa: F811
    w = Worker(server)
    w.settings = {"TIDEMILL_RUNTIMES": "docker", "TIDEMILL_DOCKER_SOCKET": daemon.socket, "TIDEMILL_DOCKER_NETWORK": "none"}
    with running(w):
        yield w


def steps(server, scripts):  # noqa: F811
    """Started together, and all of them up."""
    ids = {name: server.assign(sh("echo up; " + script), runtimes=["docker"], image=IMAGE, step=f"stp_{name}", memory=64 << 20)
           for name, script in scripts.items()}
    for a in ids.values():
        server.wait(lambda s: b"up" in s.output(a, 1), 90)
    return ids


def told(end):
    return end["state"], end.get("reason"), end["evidence"].get("killed_by"), end.get("exit_code"), end.get("signal")


WAIT = "while :; do sleep 0.05; done"


def test_each_kill_has_its_own_reason(server, worker, daemon):  # noqa: F811
    ids = steps(server, {"cancelled": f"trap '' TERM; {WAIT}", "memory": "sleep 1; tail /dev/zero", "client": WAIT, "host": WAIT, "removed": WAIT,
                         "asked": f"trap 'exit 0' TERM; {WAIT}", "itself": "kill -9 $$", "child": "sh -c 'kill -9 $$'; exit 137"})
    server.cancel(ids["cancelled"])
    daemon.docker("kill", ids["client"])
    os.kill(daemon.pid(ids["host"]), signal.SIGKILL)
    daemon.docker("stop", "-t", "10", ids["asked"])
    daemon.docker("rm", "-f", ids["removed"])
    ends = {name: server.wait_end(a, 60) for name, a in ids.items()}
    assert told(ends["cancelled"]) == ("cancelled", "cancelled", "tidemill", None, 9), ends["cancelled"]
    assert told(ends["memory"])[:3] == ("failed", "oom_killed", "kernel"), ends["memory"]
    assert "the limit is 64 MiB" in ends["memory"]["message"] and ends["memory"]["evidence"]["oom_kills"] >= 1
    assert ends["memory"]["evidence"]["container_memory_limit"] == 64 << 20
    assert 60 << 20 < ends["memory"]["evidence"]["container_memory_peak"] <= 64 << 20
    assert told(ends["client"])[:3] == ("failed", "killed_outside", "client"), ends["client"]
    assert "asked the container daemon to end it (signal 9" in ends["client"]["message"]
    assert told(ends["asked"]) == ("failed", "killed_outside", "client", 0, None), ends["asked"]
    assert "signal 15" in ends["asked"]["message"]
    assert told(ends["host"])[:3] == ("failed", "killed_outside", "host"), ends["host"]
    # Seen on its way out or when it is gone.
    removed = ends.pop("removed")
    assert told(removed)[:3] == ("failed", "killed_outside", "client"), removed
    assert "removed it" in removed["message"] or "asked the container daemon" in removed["message"]
    assert told(ends["itself"]) == ("failed", "signal", None, None, 9), ends["itself"]
    assert "not by Tidemill, and not by the kernel" in ends["itself"]["message"]
    assert told(ends["child"]) == ("failed", "exit_code", None, 137, None), ends["child"]
    assert "not by the kernel" in ends["child"]["message"]
    assert len({e["message"] for e in ends.values()}) == len(ends)


def test_a_daemon_that_restarts_with_live_restore_ends_nothing(server, worker, daemon):  # noqa: F811
    ids = steps(server, {"client": WAIT, "itself": "while [ ! -e $TIDEMILL_OUTPUT/go ]; do sleep 0.05; done; kill -9 $$"})
    daemon.end(signal.SIGKILL)
    daemon.start()
    for a in ids.values():
        assert server.attempts[a].state == "running"
    daemon.docker("kill", ids["client"])
    open(worker.dir(ids["itself"], "out", "go"), "w").close()
    assert told(server.wait_end(ids["client"], 60))[:3] == ("failed", "killed_outside", "client")
    assert told(server.wait_end(ids["itself"], 60)) == ("failed", "signal", None, None, 9)


@pytest.mark.parametrize("signo", [signal.SIGKILL, signal.SIGTERM])
def test_a_daemon_that_restarts_without_it_takes_them_along(server, worker, daemon, signo):  # noqa: F811
    daemon.end(signal.SIGTERM)
    daemon.start(live_restore=False)
    ids = steps(server, {"plain": WAIT, "polite": f"trap 'exit 0' TERM; {WAIT}"})
    daemon.end(signo)
    daemon.start(live_restore=False)
    for a in ids.values():
        end = server.wait_end(a, 60)
        assert told(end)[:3] == ("failed", "daemon_restarted", "daemon"), (end, worker.text())
        assert "live-restore is off" in end["message"]
    daemon.end(signal.SIGTERM)
    daemon.start()


def an_hour_later(path, body):
    """When containers began and ended, as it is stored when the clock is set back after that."""
    if not re.fullmatch("/containers/att_[0-9]+/json", path):
        return body
    return re.sub(rb'"(StartedAt|FinishedAt)":"(20[^"]{17})', lambda m: b'"%s":"%s' % (m[1], (
        datetime.datetime.fromisoformat(m[2].decode()) + datetime.timedelta(hours=1)).isoformat().encode()), body)


def test_an_end_that_is_still_to_come_by_the_clock(server, worker, daemon):  # noqa: F811
    """The clock was set back by an hour after it: nobody waits for that hour, and nothing is said that is not known."""
    with DockerProxy(daemon.socket, answer=an_hour_later) as proxy:
        worker.stop()
        worker.settings["TIDEMILL_DOCKER_SOCKET"] = proxy.socket
        worker.start()
        ids = steps(server, {"client": WAIT, "itself": "kill -9 $$"})
        daemon.docker("kill", ids["client"])
        assert told(server.wait_end(ids["client"], 30))[:3] == ("failed", "killed_outside", None)
        assert told(server.wait_end(ids["itself"], 30)) == ("failed", "signal", None, None, 9)
        assert worker.stop() == 0


def test_a_history_that_was_lost_accuses_nobody(server, worker, daemon):  # noqa: F811
    """The daemon remembers 256 events: what was asked before them it does not know any more."""
    ids = steps(server, {"client": WAIT})
    worker.kill()
    daemon.docker("kill", ids["client"])
    api = connect(daemon.socket)
    for n in range(300):
        api.request("POST", f"/images/{IMAGE}/tag?repo=tidemill-test&tag=other")
        reply = api.getresponse()
        reply.read()
        assert reply.status == 201
    api.close()
    worker.start()
    end = server.wait_end(ids["client"], 30)
    assert told(end)[:3] == ("failed", "killed_outside", None) and "a process of the host" not in end["message"], end
