"""What tests against a real server need: a private PostgreSQL, a tidemill-server on a port of its own, and a small HTTP
client. Standard library only.

    with Postgres() as pg, Server(pg) as server:
        api = server.admin()
        api.post("/api/v1/projects", {"name": "p"}, expect=201)

Everything is started with a deadline and ended by its pid; when something fails to start, its log is in the exception.
The folders are below /tmp (the cluster's user must reach them) and are removed at the end.
"""
import contextlib
import hashlib
import hmac
import http.client
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.parse
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / os.environ.get("V", "debug")
SANITIZERS = {"ASAN_OPTIONS": "detect_leaks=1:exitcode=99:quarantine_size_mb=8",
              "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:exitcode=99"}


def program(name):
    return BUILD / name


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def until(what, seconds=10.0, pause=0.02, message="it did not come about"):
    """Waits until what() is true and returns its value."""
    end = time.monotonic() + seconds
    while True:
        value = what()
        if value:
            return value
        assert time.monotonic() < end, message() if callable(message) else message
        time.sleep(pause)


class Postgres:
    """A cluster of its own, and databases in it."""

    def __init__(self):
        self.dir = None
        self.count = 0

    def __enter__(self):
        self.dir = Path(tempfile.mkdtemp(prefix="tidemill-pg-", dir="/tmp"))
        self.dir.chmod(0o755)
        self.url = self._call("start").strip()
        return self

    def __exit__(self, *exc):
        self._call("stop")
        shutil.rmtree(self.dir, ignore_errors=True)

    def _call(self, verb):
        done = subprocess.run(["bash", str(ROOT / "tests/lib/postgres.sh"), verb, str(self.dir)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def stop(self):
        self._call("stop")

    def crash(self):
        self._call("crash")

    def start(self):
        self._call("start")

    def database(self, template=None):
        """The URL of a new database: empty, or a copy of the one at this URL, which nobody may be connected to."""
        self.count += 1
        name = f"t{os.getpid()}_{self.count}"
        self.sql(f"CREATE DATABASE {name}" + (f" TEMPLATE {template.rsplit('/', 1)[1]}" if template else ""))
        return self.url.rsplit("/", 1)[0] + "/" + name

    def sql(self, text, url=None):
        """Runs statements and returns the lines of their answer, columns separated by '|'."""
        done = subprocess.run(["psql", "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", url or self.url, "-c", text],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()


@contextlib.contextmanager
def held(url, statements, then):
    """A session that has run the statements waits as long as the block lasts, and then runs the others."""
    holder = subprocess.Popen(["psql", "-X", "-q", "-At", url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        holder.stdin.write(f"{statements}; SELECT 'held';\n")
        holder.stdin.flush()
        while (line := holder.stdout.readline()) != "held\n":
            assert line, "psql has ended"
        yield
    finally:
        holder.communicate(f"{then};\n", 10)


def advisory_lock(url, number):
    """Holds this lock of the database as long as the block lasts."""
    return held(url, f"SELECT pg_advisory_lock({number})", f"SELECT pg_advisory_unlock({number})")


def table_lock(server, table, mode="SHARE"):
    """Nobody writes to this table as long as the block lasts; with ACCESS EXCLUSIVE nobody reads it either."""
    return held(server.database, f"BEGIN; LOCK TABLE {table} IN {mode} MODE", "ROLLBACK")


def open_transaction(server):
    """Events of transactions that begin while the block lasts are not told before its end."""
    return held(server.database, "BEGIN; SELECT pg_current_xact_id()", "ROLLBACK")


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"<{self.status} {self.body[:600]!r}>"


def misbehaviour(reply, *right):
    """While something is away, a reply has one of the right statuses or is 503 and says when to come again. Else: what it was."""
    if reply.status in right or (reply.status == 503 and reply.headers.get("Retry-After", "").isdigit()):
        return None
    return f"{reply} Retry-After: {reply.headers.get('Retry-After')}"


class Client:
    """One keep-alive connection with a token. Paths are sent as they are given; use quote() for names."""

    def __init__(self, host, port, token=None, timeout=30.0):
        self.host, self.port, self.token, self.timeout = host, port, token, timeout
        self.conn = None

    def with_token(self, token):
        return Client(self.host, self.port, token, self.timeout)

    def request(self, method, path, body=None, headers=None, expect=None):
        """body: a dict or list goes as JSON, bytes and files as they are. expect: a status or several."""
        head = dict(headers or {})
        if self.token and "Authorization" not in head:
            head["Authorization"] = f"Bearer {self.token}"
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
            head.setdefault("Content-Type", "application/json")
        reply = self._send(method, path, body, head)
        if expect is not None:
            wanted = expect if isinstance(expect, (tuple, list, set)) else (expect,)
            assert reply.status in wanted, f"{method} {path}: {reply}"
        return reply

    def _send(self, method, path, body, head):
        fresh = self.conn is None
        if fresh:
            self.conn = http.client.HTTPConnection(self.host, self.port, timeout=self.timeout)
        try:
            self.conn.request(method, path, body, head, encode_chunked="Transfer-Encoding" in head)
            r = self.conn.getresponse()
            reply = Reply(r.status, r.headers, r.read())
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            self.close()
            if fresh:
                raise
            return self._send(method, path, body, head)  # the idle connection had been closed
        except BaseException:
            self.close()
            raise
        if r.will_close:
            self.close()
        return reply

    def close(self):
        if self.conn is not None:
            self.conn.close()
            self.conn = None

    def get(self, path, **kw):
        return self.request("GET", path, **kw)

    def post(self, path, body=None, **kw):
        return self.request("POST", path, body, **kw)

    def put(self, path, body=None, **kw):
        return self.request("PUT", path, body, **kw)

    def patch(self, path, body=None, **kw):
        return self.request("PATCH", path, body, **kw)

    def delete(self, path, **kw):
        return self.request("DELETE", path, **kw)


def query(**args):
    return urllib.parse.urlencode(args, doseq=True)


def quote(text):
    return urllib.parse.quote(text, safe="")


def end_program(it):
    """Ends it.proc in order. What has ended before was killed by the test, or ended well: nothing else is overlooked."""
    if it.proc is None:
        return
    code, wanted = it.proc.poll(), (0, -signal.SIGKILL)
    if code is None:
        wanted = (0,)
        it.proc.send_signal(signal.SIGTERM)
        try:
            code = it.proc.wait(30)
        except subprocess.TimeoutExpired:
            it.proc.kill()
            it.proc.wait(10)
            raise AssertionError(f"{it.proc.args[-1]} did not end:\n{it.log()}") from None
    assert code in wanted, f"{it.proc.args[-1]} ended with {code}:\n{it.log()}"


class Server:
    """A tidemill-server with a database and a data folder of its own. settings: like TIDEMILL_<NAME>, in lower case."""

    patience = 30  # seconds, for a start

    def __init__(self, pg, **settings):
        self.pg, self.settings = pg, settings
        self.proc = self.token = self.bootstrap = None

    def __enter__(self):
        self.dir = Path(tempfile.mkdtemp(prefix="tidemill-server-", dir="/tmp"))
        self.database = self.pg.database()
        self.log_path = self.dir / "log"
        self.port = free_port()
        self.start()
        return self

    def __exit__(self, kind, *exc):
        try:
            self.stop()
        finally:
            if kind is not None:
                print(self.log())
            self.clean()

    def clean(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    def env(self):
        env = {"PATH": os.environ["PATH"], **SANITIZERS,
               "TIDEMILL_DATABASE_URL": self.database,
               "TIDEMILL_DATA_DIR": str(self.dir / "data"),
               "TIDEMILL_LISTEN": f"127.0.0.1:{self.port}"}
        env.update({f"TIDEMILL_{k.upper()}": str(v) for k, v in self.settings.items()})
        return env

    def start(self):
        assert self.proc is None or self.proc.poll() in (0, -signal.SIGKILL), f"it had ended with {self.proc.poll()}:\n{self.log()}"
        with open(self.log_path, "ab") as log:
            self.proc = subprocess.Popen([str(program("tidemill-server"))], env=self.env(), stdout=log, stderr=log)
        until(self.ready, self.patience, message=lambda: f"the server is not ready:\n{self.log()}")

    def ready(self):
        assert self.proc.poll() is None, f"the server has ended with {self.proc.returncode}:\n{self.log()}"
        try:
            return self.client().get("/readyz").status == 200
        except OSError:
            return False

    def log(self):
        return self.log_path.read_text(errors="replace")

    def stop(self):
        """An orderly end; leaks and reports of the sanitizers fail here."""
        end_program(self)

    def kill(self):
        self.proc.kill()
        self.proc.wait(10)

    def command(self, *args):
        """A local command of tidemill-server; returns what it prints."""
        done = subprocess.run([str(program("tidemill-server")), *args], env=self.env(), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def client(self, token=None):
        return Client("127.0.0.1", self.port, token)

    def admin(self):
        """A client with the first administrator's token."""
        if self.token is None:
            self.bootstrap = self.command("bootstrap").split()[-1]
            self.token = self.client(self.bootstrap).post("/api/v1/auth/bootstrap", expect=201).json()["token"]
        return self.client(self.token)

    def person(self, name, project, role):
        """A client with the token of a new principal that is a member of the project."""
        api = self.admin()
        api.post("/api/v1/principals", {"name": name}, expect=201)
        api.put(f"/api/v1/projects/{project}/members/{name}", {"role": role}, expect=200)
        token = api.post(f"/api/v1/principals/{name}/tokens", {"name": "test"}, expect=201).json()["token"]
        return self.client(token)

    def sql(self, text):
        return self.pg.sql(text, self.database)

    def rss_kib(self):
        for line in Path(f"/proc/{self.proc.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
        raise AssertionError("no VmRSS")

    def forge_token(self, kind, **columns):
        """A token that no route would give to a test, e.g. a job's: columns are those of the table `token`."""
        digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
        body = f"tdm_{kind}_" + "".join(secrets.choice(digits) for _ in range(12)) + "_" + \
            "".join(secrets.choice(digits) for _ in range(43))
        crc, check = zlib.crc32(body.encode()), ""
        for _ in range(6):
            crc, digit = divmod(crc, 62)
            check = digits[digit] + check
        pepper = (self.dir / "data/secret.key").read_bytes()
        mac = hmac.new(pepper, body.encode(), hashlib.sha256).hexdigest()
        columns = {"id": body.split("_")[2], "kind": kind, "mac": f"\\x{mac}", "expires_at": "2999-01-01", **columns}
        values = ", ".join("'" + str(v).replace("'", "''") + "'" for v in columns.values())
        self.sql(f"INSERT INTO token ({', '.join(columns)}) VALUES ({values})")
        return body + check


class Second(Server):
    """Another server of the first one's installation."""

    def __init__(self, first):
        super().__init__(first.pg, **first.settings)
        self.first, self.dir, self.database = first, first.dir, first.database

    def admin(self):
        if self.first.token is None:
            self.first.admin()
        return self.client(self.first.token)

    def __enter__(self):
        self.log_path, self.port = self.dir / "log-2", free_port()
        self.start()
        return self

    def clean(self):
        """The folder is the first one's."""
