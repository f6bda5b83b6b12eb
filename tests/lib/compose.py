"""The installation of docker-compose.yml on a private Docker daemon, with images made from nothing but Debian's packages.

    with Composed() as c:
        c.up()
        c.api().get(...)
        c.down("-v")

`with` starts the daemon, makes the base (docker/mkbase.sh) and builds the images; it raises Unavailable where no daemon can
be started. The daemon's images and the base stay in build/docker and build/mkbase for the next run, which then builds what
has changed only; everything else is ended and removed. Needs root; one run at a time in a tree, the next one waits.
"""
import fcntl
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from harness import ROOT, Client, free_port, until

KEPT = ROOT / "build" / "docker"
KEPT_MAX_MB = 6000
BASE = "tidemill/base:test"
PROJECT = "tidemill-test"
MINE = ("--filter", f"label=com.docker.compose.project={PROJECT}")
SERVICES = ("db", "server", "worker")
DOCKERD = str(ROOT / "tests/lib/dockerd.sh")


class Unavailable(Exception):
    """No Docker daemon can be started here; says why."""


def run(*command, env=None, seconds=60, check=True, stderr=subprocess.STDOUT):
    """Standard output (and error) of a command; its whole text is in the exception."""
    done = subprocess.run(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, text=True,
                          timeout=seconds)
    assert not check or done.returncode == 0, f"{' '.join(command)}: {done.returncode}\n{done.stdout[-6000:]}"
    return done.stdout


class Composed:
    def __enter__(self):
        self.token, self.folder, self.lock = None, None, None
        try:
            self.open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind, *exc):
        if kind is not None:
            print(self.compose("logs", "--no-color", "--tail", "80", check=False))
        self.close()

    def open(self):
        self.folder = Path(tempfile.mkdtemp(prefix="tidemill-compose-", dir="/tmp"))
        self.folder.chmod(0o755)
        self.work, self.secrets, self.port = self.folder / "work", self.folder / "secrets", free_port()
        # A socket's name has an end: where the tree lies too deep, nothing is kept.
        self.daemon = KEPT if len(str(KEPT)) <= 80 and len(str(KEPT).split()) == 1 else self.folder / "docker"
        self.daemon.mkdir(parents=True, exist_ok=True)
        self.lock = open(self.daemon / "user", "w")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.forget_old()
        try:
            host = run(DOCKERD, "start", str(self.daemon), seconds=180, stderr=None).strip()
        except AssertionError as e:
            raise Unavailable(str(e)) from None
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "DOCKER_HOST": host,
                    "COMPOSE_PROJECT_NAME": PROJECT, "BASE": BASE, "TIDEMILL_TAG": "test", "TIDEMILL_PORT": str(self.port),
                    "TIDEMILL_WORK_DIR": str(self.work), "TIDEMILL_SECRETS_DIR": str(self.secrets), "TIDEMILL_NETWORK": PROJECT,
                    "DOCKER_SOCKET": host.removeprefix("unix://")}
        self.compose("down", "-v", "--remove-orphans", "-t", "0")  # of a run that was killed
        run("bash", "docker/mkbase.sh", BASE, env={**self.env, "MKBASE_CACHE": str(ROOT / "build/mkbase")}, seconds=900)
        self.compose("build", seconds=1800)

    def forget_old(self):
        """Layers of earlier sources add up."""
        data = self.daemon / "data"
        if data.exists() and int(run("du", "-sxm", str(data), seconds=120).split()[0]) > KEPT_MAX_MB:
            run(DOCKERD, "stop", str(self.daemon), seconds=180)
            shutil.rmtree(data)

    def close(self):
        try:
            if self.lock is not None:
                run(DOCKERD, "stop", str(self.daemon), seconds=180)
        finally:
            if self.lock is not None:
                self.lock.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    # ---- what a test says ----
    def compose(self, *args, seconds=180, check=True):
        return run("docker-compose", *args, env=self.env, seconds=seconds, check=check)

    def docker(self, *args, check=True):
        return run("docker", *args, env=self.env, check=check, stderr=None)

    def inside(self, service, *command):
        """What a command prints that is run in the container of a service."""
        return self.docker("exec", self.container(service), *command)

    def up(self):
        """All services, healthy; the worker has none but the server's word, which is waited for in worker()."""
        self.compose("up", "-d", seconds=300)
        for service in ("db", "server"):
            until(lambda s=service: self.inspect(s)["State"]["Health"]["Status"] == "healthy", 90, 0.2,
                  lambda s=service: f"{s} is not healthy:\n{self.compose('logs', '--no-color', s)}")

    def down(self, *args):
        self.compose("down", *args, seconds=300)

    def container(self, service):
        [container] = self.docker("ps", "-aq", *MINE, "--filter", f"label=com.docker.compose.service={service}").split()
        return container

    def inspect(self, service):
        """What `docker inspect` says of the service's only container."""
        return json.loads(self.docker("inspect", self.container(service)))[0]

    def labelled(self):
        """Containers, networks and volumes that belong to the project."""
        return {kind: self.docker(*command, *MINE).split() for kind, command in {
            "containers": ("ps", "-aq"), "networks": ("network", "ls", "-q"), "volumes": ("volume", "ls", "-q")}.items()}

    def client(self, token=None):
        return Client("127.0.0.1", self.port, token)

    def api(self):
        """A client of the first administrator, who is made as the file's head says."""
        if self.token is None:
            command = re.search(r"^#   (docker-compose exec .+)$", (ROOT / "docker-compose.yml").read_text(), re.M)[1]
            self.token = run("bash", "-c", command, env=self.env).split()[-1]
        return self.client(self.token)

    def worker(self):
        """The only worker, as the server sees it, once it is there."""
        def online():
            workers = api.get("/api/v1/workers", expect=200).json()["items"]
            return workers if any(w["online"] for w in workers) else None
        api = self.api()
        [worker] = until(online, 60, 0.1, lambda: f"no worker is online:\n{self.compose('logs', '--no-color', 'worker')}")
        return worker
