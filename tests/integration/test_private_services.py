"""tests/lib: the private PostgreSQL cluster and the private Docker daemon that the other tests rest on."""
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

LIB = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib")


def call(script, *args, ok=True, **env):
    done = subprocess.run([os.path.join(LIB, script), *map(str, args)], env={**os.environ, **env}, capture_output=True,
                          text=True, timeout=180)
    assert (done.returncode == 0) == ok, done.stdout + done.stderr
    return done.stdout.strip() if ok else done.stderr


def sql(url, statement, ok=True):
    done = subprocess.run(["psql", "-X", "-At", url, "-c", statement], capture_output=True, text=True, timeout=60)
    assert (done.returncode == 0) == ok, done.stderr
    return done.stdout.strip() if ok else done.stderr


@pytest.fixture
def folder():
    """A folder that PostgreSQL's user can reach, which pytest's own are not."""
    path = tempfile.mkdtemp(prefix="tidemill-test-")
    os.chmod(path, 0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def cluster(folder):
    yield folder
    call("postgres.sh", "stop", folder)


def test_postgres_starts_once_and_keeps_its_address(cluster):
    url = call("postgres.sh", "start", cluster)
    assert re.fullmatch(r"postgresql://tidemill:[0-9a-f]{48}@127\.0\.0\.1:\d+/tidemill", url)
    assert call("postgres.sh", "start", cluster) == url == call("postgres.sh", "url", cluster)
    settings = "current_setting('data_checksums'), current_setting('fsync'), current_setting('TimeZone')"
    assert sql(url, f"SELECT current_user, {settings}") == "tidemill|on|on|UTC"
    assert os.stat(os.path.join(cluster, "password")).st_mode & 0o777 == 0o600
    if os.getuid() == 0:
        assert os.stat(os.path.join(cluster, "data")).st_uid != 0
    call("postgres.sh", "stop", cluster)
    call("postgres.sh", "stop", cluster)
    sql(url, "SELECT 1", ok=False)
    assert call("postgres.sh", "start", cluster) == url


def test_postgres_asks_for_the_password(cluster):
    url = call("postgres.sh", "start", cluster)
    assert "password authentication failed" in sql(re.sub(r":[0-9a-f]{48}@", ":wrong@", url), "SELECT 1", ok=False)


def test_postgres_keeps_what_was_committed_before_a_crash(cluster):
    url = call("postgres.sh", "start", cluster)
    sql(url, "CREATE TABLE t AS SELECT generate_series(1, 1000) AS n")
    call("postgres.sh", "crash", cluster)
    sql(url, "SELECT 1", ok=False)
    assert call("postgres.sh", "start", cluster) == url
    assert sql(url, "SELECT sum(n) FROM t") == "500500"


def test_postgres_started_by_two_at_once_is_one(cluster):
    script = os.path.join(LIB, "postgres.sh")
    both = [subprocess.Popen([script, "start", cluster], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    urls = {p.communicate(timeout=120)[0] for p in both}
    assert len(urls) == 1 and all(p.returncode == 0 for p in both)


def test_postgres_refuses_what_it_cannot_do(folder):
    assert "PORT must be a number" in call("postgres.sh", "start", folder, "80", ok=False)
    assert "there is no cluster" in call("postgres.sh", "url", folder, ok=False)
    assert "usage" in call("postgres.sh", "restart", folder, ok=False)
    if os.getuid() == 0:
        os.chmod(folder, 0o700)
        assert "cannot reach" in call("postgres.sh", "start", f"{folder}/inner", ok=False)


def links(net):
    out = subprocess.run(["ip", "-4", "-o", "addr"], capture_output=True, text=True, check=True).stdout
    return [line for line in out.splitlines() if f" {net}." in line]


def rules(net):
    out = ""
    for table in ("nat", "filter"):
        out += subprocess.run(["iptables", "-t", table, "-S"], capture_output=True, text=True, check=True).stdout
    return [line for line in out.splitlines() if f" {net}." in line]


def docker(host, *args):
    return subprocess.run(["docker", "-H", host, *args], capture_output=True, text=True, check=True, timeout=60).stdout


def wait_until_dead(pid):
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            with open(f"/proc/{pid}/stat") as f:
                if f.read().rsplit(")", 1)[1].split()[0] in "ZX":
                    return
        except FileNotFoundError:
            return
        time.sleep(0.02)
    raise AssertionError(f"process {pid} lives on")


@pytest.mark.skipif(os.getuid() != 0, reason="a Docker daemon needs root")
def test_dockerd_comes_back_after_a_kill_and_leaves_nothing(folder):
    try:
        host = call("dockerd.sh", "start", folder)
        assert host == f"unix://{folder}/docker.sock" == call("dockerd.sh", "start", folder)
        assert docker(host, "info", "--format", "{{.LiveRestoreEnabled}} {{.DockerRootDir}}") == f"true {folder}/data\n"
        with open(os.path.join(folder, "bridge")) as f:
            net = f"10.213.{f.read().split()[1]}"
        docker(host, "network", "create", "made-by-compose")
        assert len(links(net)) == 2 and len(rules(net)) == 3

        with open(os.path.join(folder, "dockerd.pid")) as f:
            pid = int(f.read())
        os.kill(pid, signal.SIGKILL)
        wait_until_dead(pid)
        assert call("dockerd.sh", "start", folder) == host
        assert "made-by-compose" in docker(host, "network", "ls")
    finally:
        call("dockerd.sh", "stop", folder)
    call("dockerd.sh", "stop", folder)
    assert links(net) == [] and rules(net) == []
    with open("/proc/self/mounts") as f:
        assert folder not in f.read()
