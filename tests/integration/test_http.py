"""lib/http over real sockets, through build/<variant>/http_echo: what the unit tests of the parser
and the router cannot see. Deadlines are set short, so that the tests wait for them in full."""
import contextlib
import hashlib
import json
import os
import re
import select
import signal
import socket
import ssl
import statistics
import subprocess
import time
import warnings
from pathlib import Path
from random import Random

import pytest

ROOT = Path(__file__).resolve().parents[2]
ECHO = ROOT / "build" / os.environ.get("V", "debug") / "http_echo"
pytestmark = pytest.mark.skipif(not ECHO.exists(), reason=f"{ECHO} is not built (make extras)")


class Server:
    def __init__(self, *args, descriptors=4096):
        env = dict(os.environ, ASAN_OPTIONS="detect_leaks=1:exitcode=99:quarantine_size_mb=1")
        self.proc = subprocess.Popen(["prlimit", f"--nofile={descriptors}", str(ECHO),
                                      *map(str, args)], stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, env=env, text=True)
        self.port = int(self.proc.stdout.readline().split("=")[1])
        self.tls = None
        if "--tls" in args:
            self.tls = ssl.create_default_context(cafile=args[args.index("--tls") + 1])

    def connect(self, timeout=10.0):
        s = self.connect_plain(timeout)
        return self.tls.wrap_socket(s, server_hostname="localhost") if self.tls else s

    def connect_plain(self, timeout=10.0):
        s = socket.create_connection(("127.0.0.1", self.port), timeout=timeout)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return s

    def get(self, path):
        with self.connect() as s:
            s.sendall(request("GET", path, "Connection: close"))
            return Reply.read(s)

    def stats(self):
        return json.loads(self.get("/stats").body)

    def until(self, what, seconds=10.0):
        """Waits until what(stats) holds."""
        end = time.monotonic() + seconds
        while True:
            now = self.stats()
            if what(now):
                return now
            assert time.monotonic() < end, now
            select.select([], [], [], 0.01)

    def rss_kib(self):
        text = Path(f"/proc/{self.proc.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", text)[1])

    def only_its_own_files(self):
        """Waits until the one socket is the listener's, and no file but the standard ones is open."""
        end, at, links = time.monotonic() + 5, f"/proc/{self.proc.pid}/fd", []
        while time.monotonic() < end:
            with contextlib.suppress(FileNotFoundError):
                links = [os.readlink(f"{at}/{n}") for n in os.listdir(at)]
                kinds = [link for link in links if link.startswith(("socket:", "/"))]
                if len([k for k in kinds if k != "/dev/null"]) == 1:
                    return
            select.select([], [], [], 0.01)
        raise AssertionError(links)

    def stop(self):
        """An orderly end; leaks and sanitizer reports fail the test here."""
        self.proc.send_signal(signal.SIGTERM)
        out, err = self.proc.communicate(timeout=20)
        assert self.proc.returncode == 0, err
        assert "ERROR" not in err and "runtime error" not in err, err


@contextlib.contextmanager
def serving(*args, **options):
    s = Server(*args, **options)
    try:
        yield s
        s.stop()
    finally:
        if s.proc.poll() is None:
            s.proc.kill()
            s.proc.wait()


@pytest.fixture(scope="module")
def server():
    with serving() as s:
        yield s


def request(method, path, *headers, body=b""):
    lines = [f"{method} {path} HTTP/1.1", "Host: a", *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @staticmethod
    def read(s, head_only=False):
        """One answer from the socket; None when it ends first."""
        return Reader(s).next(head_only)


class Reader:
    """Answers one after the other from one socket."""

    def __init__(self, s):
        self.s, self.data = s, bytearray()

    def more(self):
        try:
            got = self.s.recv(1 << 16)
        except ConnectionResetError:
            got = b""
        self.data += got
        return bool(got)

    def take(self, n):
        while len(self.data) < n:
            if not self.more():
                raise EOFError
        out = bytes(self.data[:n])
        del self.data[:n]
        return out

    def line(self):
        while b"\r\n" not in self.data:
            if not self.more():
                raise EOFError
        out = self.take(self.data.index(b"\r\n"))
        del self.data[:2]
        return out

    def next(self, head_only=False):
        try:
            first = self.line().decode()
        except EOFError:
            return None
        assert first.startswith("HTTP/1.1 "), first
        status, headers = int(first.split()[1]), {}
        while line := self.line():
            k, v = line.decode().split(": ", 1)
            assert k.lower() not in headers, f"{k} twice"
            headers[k.lower()] = v
        if head_only or status in (100, 204, 304):
            return Reply(status, headers, b"")
        if headers.get("transfer-encoding") == "chunked":
            body = bytearray()
            while n := int(self.line(), 16):
                body += self.take(n)
                assert self.take(2) == b"\r\n"
            assert self.line() == b""
        else:
            body = self.take(int(headers["content-length"]))
        return Reply(status, headers, bytes(body))

    def at_end(self):
        """True when nothing but the end follows."""
        try:
            return not self.data and self.s.recv(1) == b""
        except (ConnectionResetError, ssl.SSLError):
            return True


def exchange(server, raw):
    """Sends raw, returns all answers until the server closes, or two seconds of silence."""
    with server.connect(timeout=2) as s:
        s.sendall(raw)
        s.shutdown(socket.SHUT_WR)
        reader, answers = Reader(s), []
        while (r := reader.next()) is not None:
            answers.append(r)
        return answers


POST = "POST /echo HTTP/1.1\r\nHost: a\r\n"
TE = POST + "Transfer-Encoding: chunked\r\n\r\n"
NEXT = "GET /ping HTTP/1.1\r\nHost: a\r\n\r\n"
REFUSED = {
    "cl_and_te": (400, POST + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc"),
    "te_gzip": (501, POST + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
    "te_x_and_cl": (400, POST + "Transfer-Encoding: xchunked\r\nContent-Length: 3\r\n\r\nabc"),
    "two_lengths": (400, POST + "Content-Length: 3\r\nContent-Length: 30\r\n\r\nabc"),
    "length_plus": (400, POST + "Content-Length: +3\r\n\r\nabc"),
    "length_list": (400, POST + "Content-Length: 3,3\r\n\r\nabc"),
    "length_2_63": (400, POST + "Content-Length: 9223372036854775808\r\n\r\nabc"),
    "chunk_0x": (400, TE + "0x5\r\nhello\r\n0\r\n\r\n"),
    "chunk_plus": (400, TE + "+5\r\nhello\r\n0\r\n\r\n"),
    "chunk_space": (400, TE + " 5\r\nhello\r\n0\r\n\r\n"),
    "chunk_no_crlf": (400, TE + "5\r\nhello0\r\n\r\n"),
    "chunk_ext_long": (400, TE + "5;" + "e" * 257 + "\r\nhello\r\n0\r\n\r\n"),
    "bare_lf": (400, "GET /ping HTTP/1.1\nHost: a\n\n"),
    "obs_fold": (400, "GET /ping HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n"),
    "space_colon": (400, POST + "Content-Length : 3\r\n\r\nabc" + NEXT),
    "nul_value": (400, "GET /ping HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n"),
    "cr_value": (400, "GET /ping HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n"),
    "nul_target": (400, "GET /pi\0ng HTTP/1.1\r\nHost: a\r\n\r\n"),
    "no_host": (400, "GET /ping HTTP/1.1\r\n\r\n"),
    "two_hosts": (400, "GET /ping HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"),
    "other_authority": (400, "GET http://evil/ping HTTP/1.1\r\nHost: a\r\n\r\n"),
    "double_slash": (400, "GET //evil/x HTTP/1.1\r\nHost: a\r\n\r\n"),
    "lower_method": (400, "get /ping HTTP/1.1\r\nHost: a\r\n\r\n"),
    "http_0_9": (400, "GET /ping HTTP/0.9\r\nHost: a\r\n\r\n"),
    "http_9_9": (400, "GET /ping HTTP/9.9\r\nHost: a\r\n\r\n"),
    "body_not_taken": (400, "GET /ping HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"),
    "trailers_long": (400, TE + "0\r\nT: " + "t" * 9000 + "\r\n\r\n"),
    "dot_segments": (400, "GET /a/../ping HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
    "unknown_host": (421, "GET /ping HTTP/1.1\r\nHost: evil\r\nConnection: close\r\n\r\n"),
    "tls_hello": (400, "\x16\x03\x01\x00\xa5\x01\x00\x00\xa1"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_framing_corpus_is_refused_and_nothing_after_it_is_read(server, name):
    status, raw = REFUSED[name]
    before = server.stats()["handled"]
    answers = exchange(server, (raw + NEXT).encode("latin-1"))
    assert [r.status for r in answers] == [status], name
    assert answers[0].headers["connection"] == "close"
    problem = json.loads(answers[0].body)
    assert problem["status"] == status and problem["detail"]
    assert server.stats()["handled"] == before


def test_what_we_accept_another_parser_accepts_too():
    program = ECHO.parent / "h1_diff"
    if not program.exists():
        pytest.skip("libhttp-parser-dev is missing")
    out = subprocess.run([program, "50000"], capture_output=True, text=True, timeout=120)
    assert out.returncode == 0, out.stderr
    assert json.loads(out.stdout)["accepted"] > 10000


def test_what_the_corpus_lets_pass(server):
    raw = TE + "5;x=\"y\"\r\nhello\r\n0;z\r\nTrailer: t\r\n\r\n" + NEXT
    first, second = exchange(server, raw.encode())
    assert (first.status, first.body, second.status) == (200, b"hello", 200)
    tiny = b"1\r\nx\r\n" * 60000
    first, second = exchange(server, TE.encode() + tiny + b"0\r\n\r\n" + NEXT.encode())
    assert (first.status, len(first.body), second.status) == (200, 60000, 200)


def test_every_answer_carries_the_safe_headers(server):
    for path, status in (("/ping", 200), ("/", 200), ("/api/x", 404), ("/faults", 422)):
        r = server.get(path)
        assert r.status == status
        assert r.headers["x-content-type-options"] == "nosniff"
        assert r.headers["x-request-id"].startswith("req_")
        if path != "/":
            assert r.headers["cache-control"] == "no-store"
    assert "x-bad" not in r.headers and "set-cookie" not in r.headers
    faults = json.loads(r.body)
    assert [e["pointer"] for e in faults["errors"]] == ["/name", "/count"]
    assert faults["request_id"] == r.headers["x-request-id"]


def test_request_id_is_taken_over_only_when_well_formed(server):
    with server.connect() as s:
        reader = Reader(s)
        s.sendall(request("GET", "/ping", "X-Request-Id: abc-1.2_Z"))
        assert reader.next().headers["x-request-id"] == "abc-1.2_Z"
        for bad in ("a b", "x" * 65, '"><script>'):
            s.sendall(request("GET", "/ping", f"X-Request-Id: {bad}"))
            assert reader.next().headers["x-request-id"].startswith("req_")


def test_head_and_methods(server):
    with server.connect() as s:
        reader = Reader(s)
        s.sendall(request("HEAD", "/ping") + request("HEAD", "/big?bytes=1000")
                  + request("DELETE", "/ping") + request("GET", "/ping"))
        a, b = reader.next(head_only=True), reader.next(head_only=True)
        assert (a.headers["content-length"], b.headers["content-length"]) == ("11", "1000")
        c = reader.next()
        assert (c.status, c.headers["allow"]) == (405, "GET, HEAD")
        assert reader.next().body == b'{"ok":true}'


def test_paths_and_queries_are_decoded_once(server):
    r = server.get("/params/a%2Fb/c%2541/d%20e?x=1+2%26%253&x=3&y")
    assert r.body.decode().startswith("a=a/b rest=c%41/d e x=1 2&%3 peer=127.0.0.1 tls=0")
    assert server.get("/params/a/b?x=%zz").status == 400


def test_a_proxy_is_believed_only_when_told_so(server):
    def peer(s, *headers):
        with s.connect() as c:
            c.sendall(request("GET", "/params/a/b", *headers))
            return Reply.read(c).body.decode().split("peer=")[1]

    said = ("X-Forwarded-For: 10.9.9.9, 203.0.113.7", "X-Forwarded-Proto: https")
    assert peer(server, *said) == "127.0.0.1 tls=0"
    with serving("--behind", "10.0.0.0/8") as s:
        assert peer(s, *said) == "127.0.0.1 tls=0"
    with serving("--behind", "127.0.0.0/8") as s:
        assert peer(s, *said) == "203.0.113.7 tls=1"
        assert peer(s, "X-Forwarded-For: 1.2.3.4", "X-Forwarded-For: 5.6.7.8") == "5.6.7.8 tls=0"
        assert peer(s, "X-Forwarded-For: nonsense") == "127.0.0.1 tls=0"


def test_the_clients_of_a_proxy_do_not_share_the_limit_of_one_address():
    for behind, status in (("10.0.0.0/8", 503), ("127.0.0.0/8", 200)):
        with serving("--behind", behind, "--set", "per_ip=2") as s, contextlib.ExitStack() as held:
            for _ in range(2):
                conn = held.enter_context(s.connect())
                conn.sendall(request("GET", "/ping"))
                assert Reply.read(conn).status == 200
            with s.connect() as third:
                third.sendall(request("GET", "/ping"))
                assert Reply.read(third).status == status


def test_http_1_0(server):
    def talk(text):
        with server.connect() as s:
            s.sendall(text)
            said = b""
            while got := s.recv(65536):
                said += got
            return said.split(b"\r\n\r\n", 1)

    head, body = talk(b"GET /big?bytes=100000&chunked=1 HTTP/1.0\r\nHost: a\r\n\r\n")
    assert b"Transfer-Encoding" not in head and b"Connection: close" in head
    assert body == b"x" * 100000
    with server.connect() as s:
        reader = Reader(s)
        for _ in range(2):
            s.sendall(b"GET /ping HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n")
            assert reader.next().headers["connection"] == "keep-alive"


def test_static_files(server):
    def get(path, *headers):
        with server.connect() as s:
            s.sendall(request("GET", path, *headers))
            return Reader(s).next()

    browser = "Accept: text/html,application/xhtml+xml,*/*;q=0.8"
    page = get("/page/of/part", browser)
    assert page.status == 200 and page.body.startswith(b"<!doctype html>") and page.headers["vary"] == "Accept"
    for path in ("/", "/index.html"):
        assert get(path).body == page.body
    assert get("/page/of/part/", browser).body == page.body
    for path in ("/page/of/part", "/page/of", "/page//part", "/page/of/part/more", "/pages/of/part", "/openapi.json", "/assets/"):
        for headers in (["Accept: application/json"], ["Accept: */*"], []):
            refused = get(path, *headers)
            assert refused.status == 404 and refused.headers["content-type"] == "application/problem+json", path
    for path in ("/page/of", "/page//part", "/page/of/part/more", "/xyz", "/openapi.json"):
        none = get(path, browser)  # a page that says so
        assert none.status == 404 and none.body == page.body and "etag" not in none.headers, path
        assert none.headers["vary"] == "Accept" and none.headers["content-security-policy"] == page.headers["content-security-policy"]
    for path in ("/assets/", "/assets/none.js", "/api/v1/xyz"):
        assert get(path, browser).headers["content-type"] == "application/problem+json", path
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert page.headers["cache-control"] == "no-cache"
    with server.connect() as s:
        reader = Reader(s)
        s.sendall(request("GET", "/", f"If-None-Match: {page.headers['etag']}"))
        assert reader.next().status == 304
        s.sendall(request("GET", "/assets/app.1234.js"))
        assert "immutable" in reader.next().headers["cache-control"]
        s.sendall(request("GET", "/assets/none.js"))
        assert reader.next().status == 404


def test_pipelined_requests_are_answered_in_order(server):
    n = 500
    raw = b"".join(request("POST", "/echo", f"Content-Length: {len(str(i))}", body=str(i).encode())
                   for i in range(n))
    with server.connect() as s:
        s.sendall(raw)
        reader = Reader(s)
        assert [int(reader.next().body) for _ in range(n)] == list(range(n))


def test_one_pipelining_client_does_not_keep_others_waiting():
    """One has 20,000 requests in flight; another gets its answers in between."""
    with serving("--set", "requests=100000") as server:
        with server.connect(timeout=60) as s, server.connect() as other:
            s.setblocking(False)
            raw, sent, seen, took, rest = request("GET", "/ping") * 20000, 0, 0, [], b""
            reader = Reader(other)
            while seen < 20000:
                with contextlib.suppress(BlockingIOError):
                    sent += s.send(raw[sent:sent + 65536]) if sent < len(raw) else 0
                with contextlib.suppress(BlockingIOError):
                    parts = (rest + s.recv(1 << 20)).split(b"HTTP/1.1 200")
                    seen, rest = seen + len(parts) - 1, parts[-1][-16:]
                if len(took) < 50:
                    t = time.monotonic()
                    other.sendall(request("GET", "/ping"))
                    assert reader.next().status == 200
                    took.append(time.monotonic() - t)
            assert statistics.median(took) < 0.1


# ---- limits at N - 1, N, N + 1 ----


@pytest.mark.parametrize("d", (-1, 0, 1))
def test_limits_of_the_head(server, d):
    def status(raw):
        return exchange(server, raw)[0].status

    line = 8192 + d - len("GET /?") - len(" HTTP/1.1")
    assert status(request("GET", "/?" + "a" * line)) == (200 if d <= 0 else 414)
    assert status(request("GET", "/ping", "X: " + "a" * (8192 + d - 3))) == (200 if d <= 0 else 431)
    many = ["X: y"] * (63 + d)
    assert status(request("GET", "/ping", *many)) == (200 if d <= 0 else 431)
    # "Host: a", four of 8000, the rest, and the empty line are 32 KiB together.
    rest = 32768 - 9 - 4 * 8005 - 2 - 5 + d
    fields = ["X: " + "a" * 8000] * 4 + ["X: " + "a" * rest]
    assert status(request("GET", "/ping", *fields)) == (200 if d <= 0 else 431)


@pytest.mark.parametrize("d", (-1, 0, 1))
@pytest.mark.parametrize("chunked", (False, True))
def test_limits_of_bodies(server, d, chunked):
    for path, limit, method in (("/echo", 65536, "POST"), ("/upload-small", 1000, "PUT")):
        body = b"b" * (limit + d)
        if chunked:
            raw = request(method, path, "Transfer-Encoding: chunked",
                          body=b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
        else:
            raw = request(method, path, f"Content-Length: {len(body)}", body=body)
        assert exchange(server, raw)[0].status == (200 if d <= 0 else 413)


def test_limit_of_requests_on_one_connection():
    with serving("--set", "requests=3") as server, server.connect() as s:
        reader = Reader(s)
        for i in range(3):
            s.sendall(request("GET", "/ping"))
            assert ("connection" in reader.next().headers) == (i == 2)
        assert reader.at_end()


def test_limit_of_connections_per_address():
    with serving("--set", "per_ip=3") as server:
        with contextlib.ExitStack() as stack:
            kept = [stack.enter_context(server.connect()) for _ in range(3)]
            for s in kept:
                s.sendall(request("GET", "/ping"))
                assert Reply.read(s).status == 200
            with server.connect() as s:
                assert Reply.read(s).status == 503
        end = time.monotonic() + 5
        while server.get("/ping").status != 200:
            assert time.monotonic() < end


def test_limit_of_connections_in_total():
    with serving("--set", "connections=2") as server:
        with server.connect() as a, server.connect() as b:
            for s in (a, b):
                s.sendall(request("GET", "/ping"))
                assert Reply.read(s).status == 200
            with server.connect() as c:
                r = Reply.read(c)
                assert (r.status, r.headers["retry-after"]) == (503, "1")
            a.sendall(request("GET", "/ping"))
            assert Reply.read(a).status == 200


def test_running_out_of_descriptors_is_survived():
    with serving(descriptors=24) as server:
        with contextlib.ExitStack() as stack:
            some = [stack.enter_context(server.connect(timeout=1)) for _ in range(40)]
            answers = []
            for s in some:
                with contextlib.suppress(OSError):
                    s.sendall(request("GET", "/ping"))
                    answers.append(Reply.read(s).status)
            assert answers.count(200) >= 10 and 503 in answers, answers
        assert server.until(lambda now: now["connections"] == 1)


def test_waiting_costs_no_cpu(server):
    """Held, half-closed, unread and idle connections: none makes the loop spin."""
    def cpu():
        fields = Path(f"/proc/{server.proc.pid}/stat").read_text().split()
        return int(fields[13]) + int(fields[14])

    with contextlib.ExitStack() as stack:
        for raw, half in ((request("GET", "/wait"), False), (request("GET", "/events"), False),
                          (request("GET", "/big?bytes=90000000"), True), (b"", False),
                          (request("GET", "/ping"), False), (request("PUT", "/upload"), False),
                          (request("PUT", "/upload", "Content-Length: 9"), False),
                          (request("GET", "/wait") + b"y" * 9000, False)):
            s = stack.enter_context(server.connect())
            s.sendall(raw)
            if half:
                s.shutdown(socket.SHUT_WR)
        server.until(lambda now: now["waiting"] == 2 and now["streams"] == 1)
        before = cpu()
        select.select([], [], [], 1.0)
        assert cpu() - before < 20, "clock ticks of 10 ms in a second"
    server.until(lambda now: now["connections"] == 1)


# ---- deadlines ----


def closed_after(s, feed=b"", every=0.05, limit=10.0):
    """Seconds until the server ends the connection, while `feed` is sent byte by byte; and what it
    said."""
    start, said, at = time.monotonic(), b"", 0
    while time.monotonic() - start < limit:
        if select.select([s], [], [], every)[0]:
            try:
                got = s.recv(65536)
            except ConnectionResetError:
                got = b""
            if not got:
                return time.monotonic() - start, said
            said += got
        elif feed:
            with contextlib.suppress(OSError):
                s.send(feed[at % len(feed):at % len(feed) + 1])
            at += 1
    raise AssertionError("still open")


def test_slow_heads_end_at_an_absolute_deadline():
    with serving("--set", "head_ms=600", "--set", "linger=100") as server:
        with server.connect() as s:
            took, said = closed_after(s, b"GET /ping HTTP/1.1\r\n" + b"X: y\r\n" * 1000)
            assert 0.5 < took < 3 and b" 408 " in said
        with server.connect() as s:
            took, said = closed_after(s)
            assert 0.5 < took < 3 and said == b""


def test_idle_connections_are_closed():
    with serving("--set", "idle=500") as server, server.connect() as s:
        s.sendall(request("GET", "/ping"))
        assert Reply.read(s).status == 200
        took, said = closed_after(s)
        assert 0.4 < took < 3 and said == b""


@pytest.mark.parametrize("path,method", (("/echo", "POST"), ("/upload", "PUT")))
def test_slow_bodies_end(path, method):
    with serving("--set", "body=500", "--set", "body_rate=1000", "--set", "linger=100") as server:
        with server.connect() as s:
            s.sendall(request(method, path, "Content-Length: 50000"))
            took, said = closed_after(s, b"b")
            assert 0.4 < took < 3 and b" 408 " in said
        if method == "PUT":
            assert server.stats()["aborted"] == 1


def test_a_body_fast_enough_may_take_longer_than_the_window():
    with serving("--set", "body=200", "--set", "body_rate=1000") as server:
        with server.connect() as s:
            s.sendall(request("POST", "/echo", "Content-Length: 8000"))
            for _ in range(7):
                s.sendall(b"b" * 1000)
                assert not select.select([s], [], [], 0.08)[0]  # the pace, and no early answer
            s.sendall(b"b" * 1000)
            assert Reply.read(s).status == 200


def test_a_client_that_takes_nothing_is_cut():
    with serving("--set", "write=500") as server:
        with server.connect() as s:
            s.sendall(request("GET", "/big?bytes=100000000"))
            server.until(lambda now: now["gone"] == 1, 5)


def test_silent_tls_handshake_ends(tmp_path):
    with serving("--tls", *certificate(tmp_path), "--set", "handshake=400") as server:
        with server.connect_plain() as s:
            took, said = closed_after(s, b"\x16", every=0.1)
            assert 0.3 < took < 3


# ---- bodies ----


def test_upload_of_200_mib_in_flat_memory(server):
    total, piece = 200 << 20, b"\x01" * (1 << 20)
    for how in ("length", "chunked"):
        with server.connect(timeout=60) as s:
            header = f"Content-Length: {total}" if how == "length" else "Transfer-Encoding: chunked"
            s.sendall(request("PUT", "/upload", header))
            s.sendall(piece if how == "length" else b"100000\r\n" + piece + b"\r\n")
            base, peak = server.rss_kib(), 0
            for i in range(1, 200):
                s.sendall(piece if how == "length" else b"100000\r\n" + piece + b"\r\n")
                peak = max(peak, server.rss_kib()) if i % 10 == 0 else peak
            if how == "chunked":
                s.sendall(b"0\r\n\r\n")
            assert json.loads(Reply.read(s).body)["bytes"] == total
            assert peak - base < 4096, (base, peak)


def test_a_paused_body_holds_the_client_back(server):
    total = 24 << 20
    with server.connect(timeout=60) as s:
        s.sendall(request("PUT", "/upload?pause=15", f"Content-Length: {total}"))
        start, base = time.monotonic(), server.rss_kib()
        s.sendall(b"\x02" * total)
        sent, peak = time.monotonic() - start, server.rss_kib()
        assert json.loads(Reply.read(s).body)["bytes"] == total
    assert sent > 0.15, "the client was not held back"
    assert peak - base < 4096


def test_the_bytes_of_a_body_are_the_same_in_any_pieces(server):
    body = bytes(i * 7 % 251 for i in range(60000))
    for size in (1, 7, 4096, 60000):
        with server.connect() as s:
            raw = request("POST", "/echo", f"Content-Length: {len(body)}", body=body)
            if size == 1:
                raw = request("POST", "/echo", "Content-Length: 300", body=body[:300])
            for i in range(0, len(raw), size):
                s.sendall(raw[i:i + size])
            assert Reply.read(s).body == (body[:300] if size == 1 else body)


def test_an_early_answer_ends_the_upload_and_arrives(server):
    with server.connect() as s:
        s.sendall(request("PUT", "/upload?early=1000", "Content-Length: 50000000"))
        s.sendall(b"b" * 100000)
        r = Reply.read(s)
        assert (r.status, r.headers["connection"]) == (200, "close")


def test_a_client_that_leaves_during_its_upload_is_noticed(server):
    before = server.stats()["aborted"]
    with server.connect() as s:
        s.sendall(request("PUT", "/upload", "Content-Length: 1000", body=b"abc"))
    server.until(lambda now: now["aborted"] == before + 1)


# ---- 100-continue and authentication ----


def test_expect_is_refused_before_the_body(server):
    for path, method in (("/private-upload", "PUT"), ("/private-echo", "POST")):
        with server.connect() as s:
            s.sendall(request(method, path, "Content-Length: 1000", "Expect: 100-continue"))
            reader = Reader(s)
            r = reader.next()
            assert (r.status, r.headers["connection"]) == (401, "close")
            assert r.headers["www-authenticate"] == "Bearer"
            assert reader.at_end()


def test_expect_is_answered_after_authentication(server):
    for path, method in (("/private-upload", "PUT"), ("/private-echo", "POST")):
        with server.connect() as s:
            s.sendall(request(method, path, "Content-Length: 3", "Expect: 100-continue",
                              "Authorization: Bearer ok"))
            reader = Reader(s)
            assert reader.next().status == 100
            s.sendall(b"abc")
            assert reader.next().status == 200


def test_expect_with_a_body_too_large_is_refused(server):
    with server.connect() as s:
        s.sendall(request("POST", "/private-echo", "Content-Length: 65537", "Expect: 100-continue",
                          "Authorization: Bearer ok"))
        assert Reply.read(s).status == 413


def test_a_refused_small_body_does_not_cost_the_connection(server):
    with server.connect() as s:
        reader = Reader(s)
        s.sendall(request("POST", "/private-echo", "Content-Length: 3", body=b"abc"))
        assert reader.next().status == 401
        s.sendall(request("GET", "/ping"))
        assert reader.next().status == 200


# ---- answers in pieces ----


@pytest.mark.parametrize("chunked", (0, 1))
def test_large_answers_arrive_whole_with_flat_memory(server, chunked):
    total = 50 << 20
    with server.connect(timeout=60) as s:
        s.sendall(request("GET", f"/big?bytes={total}&chunked={chunked}"))
        base = server.rss_kib()
        r = Reply.read(s)
        assert len(r.body) == total and r.body.count(b"x") == total
        assert server.rss_kib() - base < 8192


def test_file_with_ranges(tmp_path):
    data = os.urandom(3 << 20)
    path = tmp_path / "f"
    path.write_bytes(data)
    with serving("--file", path) as server, server.connect() as s:
        reader = Reader(s)

        def get(*headers):
            s.sendall(request("GET", "/file", *headers))
            return reader.next()

        r = get()
        assert r.status == 200 and hashlib.sha256(r.body).digest() == hashlib.sha256(data).digest()
        assert r.headers["content-disposition"] == "attachment; filename*=UTF-8''a%20%22file%22.bin"
        n = len(data)
        for given, a, b in (("0-0", 0, 1), ("5-9", 5, 10), (f"{n - 1}-", n - 1, n),
                            ("-1", n - 1, n), (f"-{n + 9}", 0, n), (f"100-{n + 9}", 100, n),
                            ("262143-262145", 262143, 262146)):
            r = get(f"Range: bytes={given}")
            assert (r.status, r.body) == (206, data[a:b]), given
            assert r.headers["content-range"] == f"bytes {a}-{b - 1}/{n}"
        r = get(f"Range: bytes={n}-")
        assert (r.status, r.headers["content-range"]) == (416, f"bytes */{n}")
        for given in ("bytes=5-4", "bytes=a-b", "bytes=0-1,3-4", "lines=1-2", "bytes=-"):
            assert get(f"Range: {given}").status == 200
        assert get("Range: bytes=0-0", 'If-Range: "v1"').status == 206
        assert get("Range: bytes=0-0", 'If-Range: "v0"').status == 200
        assert get('If-None-Match: W/"v0", "v1"').status == 304
        s.sendall(request("HEAD", "/file"))
        assert reader.next(head_only=True).headers["content-length"] == str(n)


def test_a_client_that_leaves_a_download_leaks_nothing(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"f" * (30 << 20))
    with serving("--file", path) as server:
        for _ in range(20):
            with server.connect() as s:
                s.sendall(request("GET", "/file"))
                s.recv(1000)
        server.only_its_own_files()


# ---- long polls and events ----


@pytest.mark.parametrize("how", ("close", "reset"))
def test_a_client_that_leaves_a_long_poll_is_noticed(server, how):
    before = server.stats()["gone"]
    s = server.connect()
    s.sendall(request("GET", "/wait"))
    server.until(lambda now: now["waiting"] == 1)
    if how == "reset":
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    s.close()
    now = server.until(lambda now: now["waiting"] == 0, 5)
    assert now["gone"] == before + 1


def test_a_long_poll_is_answered_later_and_the_connection_goes_on(server):
    with server.connect() as s:
        reader = Reader(s)
        s.sendall(request("GET", "/wait") + request("GET", "/ping"))
        server.until(lambda now: now["waiting"] == 1)
        with server.connect() as w:
            w.sendall(request("POST", "/wake"))
            assert Reply.read(w).status == 204
        assert json.loads(reader.next().body) == {"woken": True}
        assert reader.next().body == b'{"ok":true}'


def events(server):
    s = server.connect()
    s.sendall(request("GET", "/events"))
    reader = Reader(s)
    head = reader.next(head_only=True)
    assert head.headers["content-type"].startswith("text/event-stream")
    assert head.headers["x-accel-buffering"] == "no"
    return s, reader


def chunk(reader):
    data = reader.take(int(reader.line(), 16))
    assert reader.take(2) == b"\r\n"
    return data


def publish(server, n, size):
    with server.connect() as w:
        w.sendall(request("POST", f"/publish?n={n}&size={size}"))
        assert Reply.read(w).status == 204


def test_events_reach_all_and_heartbeats_come():
    with serving("--set", "heartbeat=200") as server:
        pairs = [events(server) for _ in range(3)]
        publish(server, 2, 5)
        with server.connect() as s:
            s.sendall(request("HEAD", "/events"))
            reader = Reader(s)
            assert reader.next(head_only=True).status == 200 and reader.at_end()
        for s, reader in pairs:
            assert chunk(reader).startswith(b"retry:")
            got = [chunk(reader), chunk(reader), chunk(reader)]
            got = [c for c in got if c != b": hb\n\n"][:2]
            assert got == [b"id: 1\nevent: tick\ndata: eeeee\n\n",
                           b"id: 2\nevent: tick\ndata: eeeee\n\n"]
            assert chunk(reader) == b": hb\n\n"
            s.close()
        server.until(lambda now: now["streams"] == 0)


def test_a_client_that_reads_no_events_is_cut_and_others_are_not():
    with serving("--set", "sse_backlog=65536") as server:
        (slow, _), (quick, reader) = events(server), events(server)
        chunk(reader)
        for _ in range(200):
            publish(server, 1, 60000)
            assert len(chunk(reader)) > 60000
        now = server.until(lambda now: now["streams"] == 1)
        assert now["gone"] == 1
        quick.close()
        slow.close()


# ---- all of it at once ----


@pytest.mark.parametrize("tls", (False, True))
def test_clients_that_come_and_go_at_random_leave_nothing_behind(tmp_path, tls):
    """Clients send whole, half and broken requests of all kinds, read little or nothing, and leave
    in every way. At the end the server holds one connection (ours), no descriptor, no memory."""
    path = tmp_path / "f"
    path.write_bytes(b"f" * 700000)
    seed = int(os.environ.get("SEED", time.time_ns() % 1000000))
    print("SEED =", seed)
    random = Random(seed)
    kinds = [request("GET", "/ping"), request("GET", "/wait"), request("GET", "/events"),
             request("GET", "/file"), request("GET", "/file", "Range: bytes=300000-600000"),
             request("GET", "/big?bytes=3000000"), request("GET", "/big?bytes=3000000&chunked=1"),
             request("PUT", "/upload", "Content-Length: 100000", body=b"u" * 100000),
             request("PUT", "/upload?pause=2", "Content-Length: 2500000", body=b"u" * 2500000),
             request("PUT", "/upload?early=500", "Content-Length: 90000", body=b"u" * 90000),
             request("PUT", "/private-upload", "Content-Length: 5", "Authorization: Bearer ok",
                     "Expect: 100-continue", body=b"abcde"),
             request("POST", "/private-echo", "Content-Length: 5", body=b"abcde"),
             request("POST", "/publish?n=3&size=30000"), request("POST", "/wake"),
             request("HEAD", "/events"), request("GET", "/nope", "X: " + "y" * 9000),
             (TE + "5\r\nhello\r\n0\r\n\r\n").encode(), (TE + "x\r\n").encode()]
    with serving(*(("--tls", *certificate(tmp_path)) if tls else ()),
                 "--file", path, "--set", "linger=100", "--set", "idle=1000", "--set",
                 "head_ms=1000", "--set", "body=1000", "--set", "write=1000") as server:
        open_now = []
        for _ in range(200 if tls else 600):
            s = server.connect()
            s.setblocking(False)
            raw = b"".join(random.choice(kinds) for _ in range(random.randint(1, 4)))
            raw = raw[:random.randint(1, len(raw))] if random.random() < 0.5 else raw
            with contextlib.suppress(OSError):
                s.send(raw)
            open_now.append(s)
            while len(open_now) > random.randint(0, 40):
                s = open_now.pop(random.randrange(len(open_now)))
                how = random.randrange(4)
                with contextlib.suppress(OSError):
                    if how == 0:
                        s.shutdown(socket.SHUT_WR)
                    if how < 2:
                        s.recv(random.randint(1, 300000))
                    if how == 2:
                        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                s.close()
        for s in open_now:
            s.close()
        # A handler hears of it at the end of the turn in which its client has left.
        server.until(lambda now: (now["connections"], now["waiting"], now["streams"]) == (1, 0, 0))
        server.only_its_own_files()


# ---- ends ----


def test_drain_lets_a_running_answer_end_and_closes_the_rest():
    server = Server()
    try:
        idle, stream = server.connect(), events(server)[0]
        busy = server.connect(timeout=20)
        busy.sendall(request("PUT", "/upload", "Content-Length: 6", body=b"abc"))
        idle.sendall(request("GET", "/ping"))
        assert Reply.read(idle).status == 200
        server.proc.send_signal(signal.SIGTERM)
        assert Reader(idle).at_end()
        with pytest.raises(OSError):
            server.connect(timeout=2).recv(1)
            raise ConnectionRefusedError  # accepted by the backlog, and closed
        busy.sendall(b"def")
        r = Reply.read(busy)
        assert (json.loads(r.body)["bytes"], r.headers["connection"]) == (6, "close")
        busy.close()
        stream.close()
        assert server.proc.wait(10) == 0
    finally:
        if server.proc.poll() is None:
            server.proc.kill()
        server.proc.communicate()


def test_drain_does_not_wait_for_clients_that_keep_idle_connections():
    """A lease of 2 s for what a client still sends is for those that were refused."""
    server = Server()
    try:
        idle = server.connect()
        idle.sendall(request("GET", "/ping"))
        assert Reply.read(idle).status == 200
        start = time.monotonic()
        server.proc.send_signal(signal.SIGTERM)
        assert Reader(idle).at_end()
        assert server.proc.wait(10) == 0
        assert time.monotonic() - start < 1.5
        idle.close()
    finally:
        if server.proc.poll() is None:
            server.proc.kill()
        server.proc.communicate()


def test_drain_ends_in_time_when_a_client_does_not():
    server = Server()
    try:
        s = server.connect()
        s.sendall(request("GET", "/wait"))
        server.until(lambda now: now["waiting"] == 1)
        start = time.monotonic()
        server.proc.send_signal(signal.SIGTERM)
        assert server.proc.wait(60) == 0
        assert time.monotonic() - start > 2.5
        s.close()
    finally:
        if server.proc.poll() is None:
            server.proc.kill()
        server.proc.communicate()


# ---- TLS ----


def certificate(folder, name="localhost"):
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                    "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", f"/CN={name}",
                    "-addext", f"subjectAltName=DNS:{name},IP:127.0.0.1"], check=True,
                   capture_output=True)
    return cert, key


def test_tls(tmp_path):
    cert, key = certificate(tmp_path)
    with serving("--tls", cert, key) as server:
        # One round trip carries head and body: no wait for a delayed acknowledgement (40 ms).
        with server.connect(timeout=20) as s:
            reader, took = Reader(s), []
            for _ in range(50):
                t = time.monotonic()
                s.sendall(request("GET", "/ping"))
                assert reader.next().status == 200
                took.append(time.monotonic() - t)
            assert statistics.median(took) < 0.02
        body = os.urandom(60000)
        with server.connect(timeout=20) as s:
            reader = Reader(s)
            s.sendall(request("POST", "/echo", f"Content-Length: {len(body)}", body=body) * 3)
            assert [reader.next().body == body for _ in range(3)] == [True] * 3
            total = 20 << 20
            s.sendall(request("PUT", "/upload?pause=1", f"Content-Length: {total}"))
            s.sendall(b"\x03" * total)
            assert json.loads(reader.next().body)["bytes"] == total
            s.sendall(request("GET", "/big?bytes=5000000"))
            assert len(reader.next().body) == 5000000
            s.sendall(request("GET", "/"))
            assert "max-age" in reader.next().headers["strict-transport-security"]
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        old.set_ciphers("ALL:@SECLEVEL=0")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises((ssl.SSLError, ConnectionResetError)):
            old.wrap_socket(server.connect_plain())
        # A new certificate is used after SIGHUP, without a break.
        before = ssl.get_server_certificate(("127.0.0.1", server.port))
        certificate(tmp_path)
        server.proc.send_signal(signal.SIGHUP)
        end = time.monotonic() + 10
        while ssl.get_server_certificate(("127.0.0.1", server.port)) == before:
            assert time.monotonic() < end
