"""worker/runtime's `docker` against Podman's socket: the same calls, a share of the same tests."""
import os
import shutil
import subprocess
import tempfile
import time

import pytest

import test_docker_runtime as runtime
from test_docker_runtime import (  # noqa: F401
    attempt, registry, test_found_again_and_started_once, test_missing_image_is_pulled_once, test_out_of_memory_is_known,
    test_runs_to_its_end, test_secrets_are_nowhere_to_be_seen, test_stop_asks_and_waits, test_the_step_has_no_powers,
    test_tmp_is_bounded_and_programs_run_there)

pytestmark = [pytest.mark.skipif(os.getuid() != 0, reason="Podman's containers need root here"),
              pytest.mark.skipif(shutil.which("podman") is None, reason="there is no podman")]


BRIDGE = "/sys/class/net/cni-podman0"  # made by the first container on Podman's own network


class Podman:
    """The service of a Podman with storage of its own."""

    def __init__(self):
        self.bridged = os.path.exists(BRIDGE)
        self.folder = tempfile.mkdtemp(prefix="tidemill-podman-")
        os.chmod(self.folder, 0o755)
        self.socket = os.path.join(self.folder, "podman.sock")
        self.options = ["--root", f"{self.folder}/root", "--runroot", f"{self.folder}/run", "--cgroup-manager=cgroupfs",
                        "--storage-driver=vfs", "--events-backend=file"]
        with open(os.path.join(self.folder, "registries.conf"), "w") as f:
            f.write('[[registry]]\nprefix = "127.0.0.1"\nlocation = "127.0.0.1"\ninsecure = true\n')
        self.env = {**os.environ, "CONTAINERS_REGISTRIES_CONF": f"{self.folder}/registries.conf"}
        self.start()

    def start(self):
        self.log = open(os.path.join(self.folder, "log"), "ab")
        self.process = subprocess.Popen(["podman", *self.options, "system", "service", "--time=0", f"unix://{self.socket}"],
                                        env=self.env, stdout=self.log, stderr=self.log)
        end = time.monotonic() + 60
        while not os.path.exists(self.socket):
            assert self.process.poll() is None and time.monotonic() < end, open(self.log.name).read()
            time.sleep(0.05)

    def end(self):
        self.process.terminate()
        self.process.wait(timeout=30)
        self.log.close()
        if os.path.exists(self.socket):
            os.unlink(self.socket)

    def close(self):
        subprocess.run(["podman", *self.options, "rm", "-af", "-t", "0"], env=self.env, capture_output=True, timeout=120)
        self.end()
        for mount in sorted((line.split()[1] for line in open("/proc/mounts") if self.folder in line), reverse=True):
            subprocess.run(["umount", "-l", mount], capture_output=True)
        if not self.bridged and os.path.exists(BRIDGE):
            subprocess.run(["ip", "link", "del", os.path.basename(BRIDGE)], check=True)
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture(scope="module")
def podman():
    p = Podman()
    try:
        yield p
    finally:
        p.close()


@pytest.fixture(scope="module")
def daemon(podman):
    subprocess.run(["make", "-s"] + [f"build/{os.environ.get('V', 'debug')}/{x}" for x in ("runtime_tool", "tidemill-init")],
                   cwd=runtime.ROOT, check=True)
    env = {**os.environ, "DOCKER_HOST": f"unix://{podman.socket}"}
    subprocess.run(["docker", "import", "-", "tidemill-test:1"], input=runtime.root_tar(), env=env, check=True, capture_output=True)
    return {"folder": podman.folder, "socket": podman.socket, "env": env}


def test_it_is_known_for_what_it_is(attempt):  # noqa: F811
    about = attempt.call("probe")
    assert about["ok"] and about["version"] and about["note"] == ""
    assert about["survives_daemon"], "its containers need no service"


def test_its_service_may_go_and_come(attempt, podman):  # noqa: F811
    attempt.sh("while [ ! -e go ]; do sleep 0.02; done; exit 3")
    attempt.wait_state("running")
    podman.end()
    assert attempt.call("poll")["state"] == "running"
    open(os.path.join(attempt.folder, "work", "go"), "w").close()
    s = attempt.wait_state("ended")
    assert (s["end"], s["code"]) == ("exited", 3)
    podman.start()
    assert [f["attempt"] for f in attempt.call("list")["found"]] == [attempt.id]


def test_killed_by_somebody_else(attempt):  # noqa: F811
    attempt.sh("while :; do sleep 0.05; done")
    attempt.wait_state("running")
    attempt.docker("kill", attempt.id)
    s = attempt.wait_state("ended")
    # It keeps no history of who asked: that it was not us is all that is known.
    assert (s["end"], s["outside"], s["killer"]) == ("lost", True, ""), s


def test_gpus_are_refused_rather_than_left_out(attempt):  # noqa: F811
    answer = attempt.start("true", options=["--gpu", "GPU-1234"], check=False)
    assert answer["error"] == "unavailable" and answer["blame"] == 2 and "Podman" in answer["detail"]
