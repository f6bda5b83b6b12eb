"""lib/db against a private PostgreSQL: units, errors, connection loss, group commit, LISTEN, migrations."""
import os
import random
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXERCISE = os.path.join(ROOT, "build", os.environ.get("V", "debug"), "db_exercise")
SEED = int(os.environ.get("TIDEMILL_SEED", str(time.time_ns() % 1000000)))


def postgres(verb, folder):
    done = subprocess.run([os.path.join(ROOT, "tests/lib/postgres.sh"), verb, folder], capture_output=True, text=True,
                          timeout=180)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def cluster():
    folder = tempfile.mkdtemp(prefix="tidemill-db-")
    os.chmod(folder, 0o755)
    postgres("start", folder)
    yield folder
    postgres("stop", folder)
    shutil.rmtree(folder)


@pytest.fixture
def url(cluster):
    """A fresh database."""
    base = postgres("url", cluster)
    name = f"test_{time.time_ns()}"
    subprocess.run(["psql", "-X", "-q", base, "-c", f"CREATE DATABASE {name}"], check=True, timeout=60)
    return base.rsplit("/", 1)[0] + "/" + name


def exercise(url, scenario):
    done = subprocess.run([EXERCISE, url, scenario], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def schema(url):
    exercise(url, "migrate")
    return url


@pytest.mark.parametrize("scenario", ["values", "arrays", "units", "errors", "prepare", "ddl", "many", "deadline", "loss",
                                      "stall", "deadlock", "held_up", "cancel", "dynamic", "memory", "group", "listen"])
def test_scenario(schema, scenario):
    print(exercise(schema, scenario))


def test_host_names_are_looked_up(schema):
    exercise(schema.replace("@127.0.0.1:", "@localhost:"), "units")


def test_migrations_are_applied_once(url):
    assert exercise(url, "migrate") == "version 2, applied 2\n"
    assert exercise(url, "migrate") == "version 2, applied 0\n"
    exercise(url, "migrate_refusals")


def test_migrations_started_by_several_at_once(url):
    all_of_them = [subprocess.Popen([EXERCISE, url, "migrate"], stdout=subprocess.PIPE, text=True) for _ in range(6)]
    applied = [int(re.search(r"version 2, applied (\d)", p.communicate(timeout=60)[0])[1]) for p in all_of_them]
    assert sorted(applied) == [0, 0, 0, 0, 0, 2]


class Proxy:
    """Stands between the program and the server, and either cuts what passes into small pieces, or cuts the connection
    after a random number of bytes."""

    def __init__(self, url, rng, pieces=False, cut=False):
        self.rng, self.pieces, self.cut, self.cuts = rng, pieces, cut, 0
        self.server = ("127.0.0.1", int(re.search(r":(\d+)/", url)[1]))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = re.sub(r":\d+/", f":{self.listener.getsockname()[1]}/", url)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
                server = socket.create_connection(self.server)
            except OSError:
                return
            for s in (client, server):
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            left = [self.rng.randrange(5000, 60000) if self.cut else float("inf")]
            for a, b in ((client, server), (server, client)):
                threading.Thread(target=self.pump, args=(a, b, left), daemon=True).start()

    def pump(self, a, b, left):
        try:
            while data := a.recv(65536):
                while data:
                    n = self.rng.randrange(1, 400) if self.pieces else len(data)
                    n = min(n, len(data), max(left[0], 1))
                    b.sendall(data[:n])
                    data = data[n:]
                    left[0] -= n
                    if left[0] <= 0:
                        self.cuts += 1
                        return
        except OSError:
            pass
        finally:
            for s in (a, b):
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@pytest.mark.parametrize("scenario", ["values", "arrays", "units", "prepare", "group", "listen"])
def test_scenario_in_small_pieces(schema, scenario):
    proxy = Proxy(schema, random.Random(SEED), pieces=True)
    exercise(proxy.url, scenario)
    proxy.close()


def test_acknowledged_writes_survive_cut_connections(schema):
    print("seed", SEED)
    proxy = Proxy(schema, random.Random(SEED), cut=True)
    p = subprocess.Popen([EXERCISE, proxy.url, "load"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True)
    end = time.monotonic() + 30
    while proxy.cuts < 12 and time.monotonic() < end:
        time.sleep(0.05)
    proxy.cut = False  # for the connections to come
    out, err = p.communicate(timeout=120)
    assert p.returncode == 0, err
    assert proxy.cuts >= 12
    acked, unknown, _ = map(int, re.search(r"acked (\d+) unknown (\d+) losses (\d+)\n", out).groups())
    assert acked > 50 and unknown > 0
    proxy.close()


def run_under_crashes(cluster, url, scenario, times):
    """Kills the server like a power cut at random moments while the scenario writes; the program itself checks, at the
    end, that what was acknowledged is there."""
    rng = random.Random(SEED)
    print("seed", SEED)
    p = subprocess.Popen([EXERCISE, url, scenario], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True)
    for _ in range(times):
        assert p.stdout.readline() == "up\n", p.communicate()[1]
        time.sleep(rng.uniform(0.05, 0.5))  # the random moment
        postgres("crash", cluster)
        postgres("start", cluster)
    assert p.stdout.readline() == "up\n", p.communicate()[1]
    out, err = p.communicate(timeout=120)
    assert p.returncode == 0, err
    print(out)
    return out


def test_acknowledged_writes_survive_crashes(cluster, schema):
    out = run_under_crashes(cluster, schema, "load", 3)
    acked, _, losses = map(int, re.fullmatch(r"acked (\d+) unknown (\d+) losses (\d+)\n", out).groups())
    assert acked > 50 and losses >= 3


def test_acknowledged_group_items_survive_crashes(cluster, schema):
    out = run_under_crashes(cluster, schema, "group_load", 2)
    acked, total = map(int, re.match(r"acked (\d+) of (\d+)", out).groups())
    assert 50 < acked <= total
