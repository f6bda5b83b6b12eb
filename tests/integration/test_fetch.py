"""lib/fetch against servers that are slow, huge, silent, broken or hostile."""
import email.utils
import http.server
import json
import os
import socket
import ssl
import subprocess
import threading
import time

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, "build", os.environ.get("V", "debug"))
TOOL = os.path.join(BUILD, "fetch_tool")
MIB = 1 << 20


@pytest.fixture(scope="session", autouse=True)
def built():
    subprocess.run(["make", "-s", os.path.relpath(TOOL, ROOT)], cwd=ROOT, check=True)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 60

    def log_message(self, *args):
        pass

    def setup(self):
        super().setup()
        self.server.connections += 1

    def reply(self, status=200, body=b"", length=True, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if length:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def body(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def serve(self):
        server, path = self.server, self.path.partition("?")[0]
        if server.early and path == "/early":
            self.reply(413, b"no", Connection="close")
            self.close_connection = True
            return
        data = self.body()
        server.seen.append((self.command, self.path, dict(self.headers), data))
        getattr(self, "on_" + path.strip("/").split("/")[0], self.on_other)()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = serve

    def on_other(self):
        self.reply(200, b"hello", Content_Type="text/plain", ETag='"e1"', X_Test="  spaced value ")

    def on_echo(self):
        self.reply(200, self.server.seen[-1][3])

    def on_status(self):
        self.reply(int(self.path.split("/")[2]), b"x" * 100)

    def on_problem(self):
        body = {"type": "about:blank", "title": "Not valid", "status": 422, "code": "invalid", "detail": "too many GPUs",
                "errors": [{"pointer": "/spec/gpus", "code": "invalid", "detail": "too many GPUs"}]}
        self.reply(422, json.dumps(body).encode(), Content_Type="application/problem+json")

    def on_broken_problem(self):
        self.reply(503, b"{not json", Content_Type="application/problem+json", Retry_After="7")

    def on_date(self):
        self.reply(503, b"", Retry_After=email.utils.formatdate(time.time() + 100, usegmt=True))

    def on_redirect(self):
        self.reply(302, b"", Location="http://127.0.0.1:%d/target" % self.server.server_address[1])

    def on_big(self):
        size = int(self.path.split("/")[2])
        self.send_response(200)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        self.pour(size)

    def on_endless(self):
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        self.pour(1 << 40)

    def on_error_flood(self):
        self.send_response(500)
        self.send_header("Content-Length", str(5 * MIB))
        self.end_headers()
        self.pour(5 * MIB)

    def pour(self, size):
        chunk = bytes(range(256)) * 256
        try:
            while size > 0:
                self.wfile.write(chunk[:size])
                size -= len(chunk)
                self.server.poured += len(chunk)
        except OSError:
            self.close_connection = True

    def on_drip(self):
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            for _ in range(40):
                self.wfile.write(b".")
                self.server.stop.wait(0.1)
        except OSError:
            pass

    def on_hang(self):
        self.server.stop.wait(30)
        self.close_connection = True

    def on_poll(self):
        self.server.stop.wait(1.5)
        self.reply(200, b"news")

    def on_cut(self):
        self.send_response(200)
        self.send_header("Content-Length", "100")
        self.end_headers()
        self.wfile.write(b"half")
        self.close_connection = True

    def on_heads(self):
        self.send_response(200)
        for i in range(90):
            self.send_header(f"X-{i}", "v" * 1000)
        self.end_headers()

    def on_drop(self):
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request, client_address):
        pass


def run_server(httpd):
    httpd.seen, httpd.connections, httpd.poured, httpd.early, httpd.stop = [], 0, 0, False, threading.Event()
    threading.Thread(target=httpd.serve_forever, args=(0.02,), daemon=True).start()
    yield httpd
    httpd.stop.set()
    httpd.shutdown()
    httpd.server_close()


@pytest.fixture
def server():
    httpd = Server(("127.0.0.1", 0), Handler)
    httpd.url = f"http://127.0.0.1:{httpd.server_address[1]}"
    yield from run_server(httpd)


class UnixHandler(Handler):
    disable_nagle_algorithm = False


class UnixServer(Server):
    address_family = socket.AF_UNIX

    def server_bind(self):
        self.socket.bind(self.server_address)
        self.server_name, self.server_port = "unix", 0

    def get_request(self):
        request, _ = self.socket.accept()
        return request, ("unix", 0)


@pytest.fixture
def unix_server(tmp_path):
    yield from run_server(UnixServer(str(tmp_path / "s"), UnixHandler))


def call_all(*args, timeout=60, env=None):
    done = subprocess.run([TOOL, *map(str, args)], capture_output=True, timeout=timeout, env=env)
    assert done.returncode == 0, done.stderr.decode()
    replies = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(reply.get("calls", 1) == 1 for reply in replies)
    return replies


def call(*args, **more):
    reply, = call_all(*args, **more)
    return reply


def test_a_get(server):
    reply = call("--base", server.url + "/", "--path", "/a?b=c%20d")
    assert (reply["status"], reply["error"], reply["body"], reply["heads"]) == (200, "ok", "hello", 1)
    assert (reply["content_type"], reply["etag"], reply["x_test"]) == ("text/plain", '"e1"', "spaced value")
    method, path, headers, _ = server.seen[0]
    assert (method, path) == ("GET", "/a?b=c%20d")
    assert headers["User-Agent"].startswith("tidemill/") and "Authorization" not in headers
    assert call("--base", server.url + "/prefix", "--path", "/a/../b")["status"] == 200
    assert server.seen[1][1] == "/prefix/a/../b"


def test_methods_bodies_and_headers(server):
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        reply = call("--base", server.url, "--path", "/echo", "--method", method, "--body", "{}", "--header",
                     "Content-Type: application/json", "--header", "X-A: 1")
        assert reply["body"] == "{}"
        seen = server.seen[-1]
        assert (seen[0], seen[2]["Content-Type"], seen[2]["X-A"]) == (method, "application/json", "1")
    call("--base", server.url, "--path", "/echo", "--method", "POST")
    assert server.seen[-1][2]["Content-Length"] == "0" and "Content-Type" not in server.seen[-1][2]
    call("--base", server.url, "--path", "/x", "--method", "DELETE")
    assert server.seen[-1][0] == "DELETE"
    reply = call("--base", server.url, "--path", "/big/9999999", "--method", "HEAD")
    assert (reply["status"], reply["error"], reply["received"]) == (200, "ok", 0)


def test_what_cannot_be_sent_is_refused(server):
    bad = [["--path", "/a b"], ["--path", "/a\nb"], ["--path", "/a\\b"], ["--path", "/a#b"], ["--path", ""], ["--path", "a"],
           ["--path", "ftp://127.0.0.1/x"], ["--path", "file:///etc/passwd"], ["--path", "gopher://127.0.0.1:70/_x"],
           ["--path", "http://u:p@127.0.0.1/"], ["--path", "/" + "a" * 40000],
           ["--path", "/x", "--header", "X: a\r\nY: b"], ["--path", "/x", "--header", "no colon"],
           ["--path", "/x", "--header", "a b: c"], ["--path", "/x", "--header", ": c"]]
    for args in bad:
        reply = call("--base", server.url, *args)
        assert (reply["error"], reply["status"]) == ("invalid", 0), args
    assert call("--path", "/x")["error"] == "invalid"
    assert call("--https-only", "--path", server.url + "/x")["error"] == "invalid"
    assert call("--base", "ftp://x", "--path", "/x")["error"] == "invalid"
    assert server.seen == []


def test_tokens_stay_with_their_server(server, tmp_path):
    token = tmp_path / "token"
    token.write_text("tdm_first\n")
    assert call("--base", server.url, "--token-file", token, "--path", "/x")["status"] == 200
    assert server.seen[-1][2]["Authorization"] == "Bearer tdm_first"
    call("--base", server.url, "--token", "t2", "--path", "/x")
    assert server.seen[-1][2]["Authorization"] == "Bearer t2"
    count = len(server.seen)
    assert call("--base", server.url, "--token", "t", "--path", server.url + "/x")["error"] == "invalid"
    for text in ("", "a\nb", "a b", "x" * 5000):
        token.write_text(text)
        reply = call("--base", server.url, "--token-file", token, "--path", "/x")
        assert reply["error"] in ("invalid", "too_large")
    token.unlink()
    assert call("--base", server.url, "--token-file", token, "--path", "/x")["error"] == "not_found"
    assert call("--token", "t", "--path", server.url)["error"] == "invalid"
    assert len(server.seen) == count


def test_statuses_are_not_errors_but_can_be_made_ones(server):
    assert call("--base", server.url, "--path", "/status/404")["error"] == "ok"
    reply = call("--base", server.url, "--path", "/problem", "--problem")
    assert (reply["error"], reply["message"], reply["field"]) == ("invalid", "too many GPUs", "/spec/gpus")
    reply = call("--base", server.url, "--path", "/broken_problem", "--problem")
    assert (reply["status"], reply["error"], reply["retry_after_us"]) == (503, "unavailable", 7000000)
    assert "503" in reply["message"]
    for status, error in ((404, "not_found"), (409, "conflict"), (418, "invalid"), (599, "internal"), (429, "rate_limited")):
        assert call("--base", server.url, "--path", f"/status/{status}", "--problem")["error"] == error
    assert 90e6 < call("--base", server.url, "--path", "/date")["retry_after_us"] <= 101e6
    assert call("--base", server.url, "--path", "/x", "--problem")["error"] == "ok"


def test_redirects_are_not_followed(server):
    reply = call("--base", server.url, "--path", "/redirect")
    assert reply["status"] == 302 and reply["location"].endswith("/target")
    assert [seen[1] for seen in server.seen] == ["/redirect"]


def test_proxy_variables_are_not_obeyed(server):
    env = {**os.environ, "http_proxy": "http://127.0.0.1:1", "HTTP_PROXY": "http://127.0.0.1:1", "all_proxy": "socks5://127.0.0.1:1"}
    assert call("--base", server.url, "--path", "/x", env=env)["status"] == 200


def test_replies_have_limits(server, tmp_path):
    out = tmp_path / "out"
    assert call("--base", server.url, "--path", f"/big/{MIB}")["received"] == MIB
    assert call("--base", server.url, "--path", f"/big/{MIB + 1}")["error"] == "too_large"
    assert call("--base", server.url, "--path", "/big/1000", "--max-body", 1000)["error"] == "ok"
    assert call("--base", server.url, "--path", "/big/1001", "--max-body", 1000)["error"] == "too_large"
    reply = call("--base", server.url, "--path", "/endless", "--max-body", 100000)  # no length told
    assert reply["error"] == "too_large" and "100000" in reply["message"]
    for sink in (["--push"], ["--out", out]):
        assert call("--base", server.url, "--path", "/endless", "--max-bytes", 3 * MIB, *sink)["error"] == "too_large"
        assert call("--base", server.url, "--path", "/big/5000", "--max-bytes", 5000, *sink)["received"] == 5000
    assert call("--base", server.url, "--path", "/heads")["error"] == "too_large"
    reply = call("--base", server.url, "--path", "/error_flood", "--push")
    assert (reply["error"], reply["status"], reply["kept"], reply["pushes"]) == ("ok", 500, 65536, 0)


def test_large_bodies_stream_in_flat_memory(server, tmp_path):
    out, source = tmp_path / "out", tmp_path / "source"
    small = call("--base", server.url, "--path", "/x")["rss_kb"]
    reply = call("--base", server.url, "--path", f"/big/{200 * MIB}", "--out", out)
    assert reply["error"] == "ok" and os.path.getsize(out) == 200 * MIB
    assert reply["rss_kb"] < small + 20000
    with open(out, "rb") as f:
        assert f.read(MIB) == bytes(range(256)) * 4096
    os.truncate(out, 0)
    source.write_bytes(b"s" * (30 * MIB))
    reply = call("--base", server.url, "--path", "/echo", "--body-file", source, "--out", out, "--method", "PUT")
    assert reply["error"] == "ok" and out.read_bytes() == source.read_bytes()
    assert reply["rss_kb"] < small + 20000
    assert server.seen[-1][2]["Content-Length"] == str(30 * MIB)


def test_bodies_from_callbacks(server):
    reply = call("--base", server.url, "--path", "/echo", "--pull", 100000, "--push")
    assert reply["received"] == 100000 and server.seen[-1][2]["Content-Length"] == "100000"
    reply = call("--base", server.url, "--path", "/echo", "--pull", 100000, "--chunked", "--push")
    assert reply["received"] == 100000 and server.seen[-1][2]["Transfer-Encoding"] == "chunked"
    assert server.seen[-1][3] == b"p" * 100000
    reply = call("--base", server.url, "--path", "/echo", "--pull", 5000, "--pull-pause-ms", 20, "--chunked")
    assert reply["received"] == 5000 and reply["pauses"] >= 5


def test_a_body_that_ends_early_is_told(server, tmp_path):
    source = tmp_path / "source"
    source.write_bytes(b"s" * 10)
    reply = call("--base", server.url, "--path", "/echo", "--body-file", source, "--length", 20, "--timeout-ms", 5000)
    assert reply["error"] == "io" and "10 of 20" in reply["message"]


def test_a_paused_reader_holds_the_sender(server):
    reply = call("--base", server.url, "--path", f"/big/{MIB}", "--push", "--pause-ms", 2)
    assert reply["received"] == MIB and reply["pauses"] == reply["pushes"] > 10
    poured = server.poured
    reply = call("--base", server.url, "--path", "/endless", "--push", "--pause-ms", 5000, "--timeout-ms", 1500)
    assert reply["error"] == "timeout" and reply["pushes"] <= 2
    assert server.poured - poured < 16 * MIB  # what the kernel's buffers hold
    assert reply["rss_kb"] < 60000


def test_a_callback_may_end_the_request(server):
    reply = call("--base", server.url, "--path", "/endless", "--push", "--push-limit", 5)
    assert (reply["error"], reply["message"], reply["pushes"]) == ("conflict", "the tool has had enough", 5)
    reply = call("--base", server.url, "--path", "/endless", "--push", "--pause-ms", 1, "--push-limit", 3)
    assert (reply["error"], reply["pushes"]) == ("conflict", 3)


def test_callbacks_may_start_requests(server):
    replies = call_all("--base", server.url, "--path", "/big/100000", "--push", "--chain", "--repeat", 20)
    assert [reply["received"] for reply in replies] == [100000] * 20
    replies = call_all("--base", server.url, "--path", "/big/100000", "--push", "--chain", "--repeat", 5, "--push-limit", 2)
    assert [reply["error"] for reply in replies] == ["conflict"] * 5


def elapsed(*args):
    start = time.monotonic()
    return call(*args), time.monotonic() - start


def test_time_limits(server):
    reply, took = elapsed("--base", server.url, "--path", "/hang", "--timeout-ms", 400)
    assert reply["error"] == "timeout" and 0.3 < took < 8
    reply, took = elapsed("--base", server.url, "--path", "/hang", "--client-ms", 400)
    assert reply["error"] == "timeout" and took < 8
    reply, took = elapsed("--base", server.url, "--path", "/drip", "--timeout-ms", 700, "--push")
    assert reply["error"] == "timeout" and took < 8 and 0 < reply["received"] < 40
    reply, took = elapsed("--base", server.url, "--path", "/hang", "--no-timeout", "--idle-s", 1)
    assert reply["error"] == "timeout" and 0.9 < took < 10
    reply, took = elapsed("--base", server.url, "--path", "/drip", "--no-timeout", "--idle-s", 1, "--min-rate", 1000)
    assert reply["error"] == "timeout" and took < 10


def test_long_answers_outlive_the_clients_own_limit(server):
    reply = call("--base", server.url, "--path", "/poll", "--client-ms", 300, "--timeout-ms", 10000)
    assert (reply["status"], reply["body"]) == (200, "news")
    reply = call("--base", server.url, "--path", "/drip", "--client-ms", 300, "--no-timeout", "--idle-s", 3, "--push")
    assert reply["received"] == 40


def test_connections_that_fail(server, tmp_path):
    assert call("--base", "http://127.0.0.1:1", "--path", "/x")["error"] == "network"
    assert call("--base", "http://nope.invalid", "--path", "/x")["error"] == "network"
    assert call("--base", "http://x", "--unix", tmp_path / "none", "--path", "/x")["error"] == "network"
    assert call("--base", server.url, "--path", "/cut")["error"] == "network"
    assert call("--base", server.url, "--path", "/drop")["error"] == "network"
    full = socket.create_server(("127.0.0.1", 0), backlog=0)
    held = []
    for _ in range(4):  # fill the backlog, so that the next one waits
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(full.getsockname())
        held.append(s)
    reply, took = elapsed("--base", "http://127.0.0.1:%d" % full.getsockname()[1], "--path", "/x", "--connect-ms", 400)
    assert reply["error"] == "timeout" and took < 8
    for s in (full, *held):
        s.close()


def test_garbage_is_not_a_reply():
    for answer in (b"garbage\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
                   b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b""):
        sock = socket.create_server(("127.0.0.1", 0))

        def serve():
            peer, _ = sock.accept()
            peer.recv(4096)
            peer.sendall(answer)
            peer.close()
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        reply = call("--base", "http://127.0.0.1:%d" % sock.getsockname()[1], "--path", "/x", "--timeout-ms", 3000)
        assert reply["error"] == "network", answer
        thread.join(5)
        sock.close()


def test_cancelling(server):
    for after in (1, 100):  # 1: at once, inside the same turn
        reply, took = elapsed("--base", server.url, "--path", "/hang", "--cancel-ms", after)
        assert reply["error"] == "cancelled" and took < 8
    assert call("--base", server.url, "--path", "/endless", "--push", "--pause-ms", 5000, "--cancel-ms", 100)["error"] == "cancelled"
    assert call("--base", server.url, "--path", "bad", "--cancel-ms", 1)["error"] == "cancelled"
    replies = call_all("--base", server.url, "--path", "/hang", "--repeat", 5, "--parallel", 5, "--free-early")
    assert [reply["error"] for reply in replies] == ["cancelled"] * 5
    replies = call_all("--base", server.url, "--path", "bad path", "--repeat", 2, "--parallel", 2, "--cancel-ms", 1)
    assert [reply["error"] for reply in replies] == ["cancelled"] * 2


def test_connections_are_reused(server):
    replies = call_all("--base", server.url, "--path", "/x", "--repeat", 200)
    assert len(replies) == 200 and all(reply["status"] == 200 for reply in replies)
    assert server.connections == 1
    replies = call_all("--base", server.url, "--path", "/x", "--repeat", 400, "--parallel", 16)
    assert len(replies) == 400 and server.connections <= 1 + 16  # one per request in flight, never more


def test_a_connection_that_went_stale_is_replaced(server, tmp_path):
    """The server closes after each reply without saying so; the next request must not fail for it."""
    sock = socket.create_server(("127.0.0.1", 0))
    bodies = []

    def serve():
        for _ in range(5):
            peer, _ = sock.accept()
            data = b""
            while not data.endswith(b"0123456789"):
                data += peer.recv(65536)
            bodies.append(data)
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            peer.close()
    threading.Thread(target=serve, daemon=True).start()
    source = tmp_path / "source"
    source.write_bytes(b"0123456789")
    replies = call_all("--base", "http://127.0.0.1:%d" % sock.getsockname()[1], "--path", "/x", "--body-file", source,
                       "--repeat", 5, "--timeout-ms", 10000)
    assert [reply["error"] for reply in replies] == ["ok"] * 5 and len(bodies) == 5
    sock.close()


def test_only_large_bodies_wait_for_a_go_ahead(server):
    for length, expect in ((10, None), (MIB, None), (MIB + 1, "100-continue")):
        assert call("--base", server.url, "--path", "/echo", "--pull", length, "--push")["received"] == length
        assert server.seen[-1][2].get("Expect") == expect


def test_unix_socket(unix_server, tmp_path):
    reply = call("--base", "http://docker", "--unix", tmp_path / "s", "--path", "/v1.41/info", "--guard")
    assert (reply["status"], reply["body"]) == (200, "hello")
    assert unix_server.seen[0][1] == "/v1.41/info" and unix_server.seen[0][2]["Host"] == "docker"


INNER = ["127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0.0.0.0", "localhost", "localhost.", "[::1]", "[::]",
         "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "[fe80::1%25lo]", "169.254.169.254", "[fd00:ec2::254]",
         "10.0.0.1", "100.64.0.1", socket.gethostname(), "[2002:7f00:1::]"]


@pytest.mark.parametrize("host", INNER)
def test_inner_addresses_are_out_of_reach(server, host):
    url = f"http://{host}:{server.server_address[1]}/x"
    reply = call("--guard", "--path", url, "--connect-ms", 2000)
    assert reply["error"] in ("forbidden", "network", "invalid") and server.connections == 0, reply


def test_allowed_networks_can_be_reached(server):
    assert call("--guard", "--path", server.url + "/x")["error"] == "forbidden"
    assert call("--guard", "--allow", "10.0.0.0/8", "--path", server.url + "/x")["error"] == "forbidden"
    reply = call("--guard", "--allow", "10.0.0.0/8", "--allow", "127.0.0.0/8", "--path", server.url + "/x")
    assert reply["status"] == 200


def test_early_answers_to_large_bodies(server):
    server.early = True
    reply = call("--base", server.url, "--path", "/early", "--pull", 50 * MIB, "--timeout-ms", 10000)
    assert reply["status"] == 413 or reply["error"] == "network"


def test_synchronous_calls(server):
    reply = call("--base", server.url, "--path", "/x", "--sync")
    assert (reply["status"], reply["body"], reply["etag"], reply["x_test"]) == (200, "hello", '"e1"', "spaced value")
    assert call("--base", "http://127.0.0.1:1", "--path", "/x", "--sync")["error"] == "network"
    assert call("--base", server.url, "--path", f"/big/{MIB}", "--sync")["error"] == "too_large"


def test_certificates_are_checked(tmp_path):
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                    key, "-out", cert, "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"],
                   check=True, capture_output=True)
    httpd = Server(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    httpd.socket = context.wrap_socket(httpd.socket, server_side=True)
    for _ in run_server(httpd):
        port = httpd.server_address[1]
        assert call("--base", f"https://127.0.0.1:{port}", "--path", "/x")["error"] == "network"
        assert call("--base", f"https://127.0.0.1:{port}", "--path", "/x", "--ca", cert)["status"] == 200
        assert call("--base", f"https://localhost:{port}", "--path", "/x", "--ca", cert)["error"] == "network"
        assert call("--base", f"https://127.0.0.1:{port}", "--path", "/x", "--ca", cert, "--https-only")["status"] == 200
