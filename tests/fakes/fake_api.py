"""A fake of the server's API for tests of the command line: runs whose ends are scripted, logs whose connections break,
an address that fails and recovers. Only what cannot be had at will from the real server; never a proof that the command
line fits that."""
import http.server
import json
import threading
import urllib.parse

TOKEN = "tdm_pat_fake_0"


def run(id, state, reason="", message="", model=None, ended=True):
    out = {"id": id, "project": "p", "pipeline": "train", "number": 1, "state": state, "reason": reason, "message": message,
           "inputs": {}, "labels": {}, "trigger": "api", "experiment_id": 1, "datasets": [],
           "created_at": "2026-01-01T00:00:00Z", "started_at": "2026-01-01T00:00:01Z",
           "ended_at": "2026-01-01T00:00:09Z" if ended else None, "version": 3}
    if model:
        out["model_version"] = model
    return out


RUNS = {r["id"]: r for r in [
    run("run_ok", "succeeded", model="m/1"), run("run_refused", "succeeded", model="m/2"),
    run("run_failed", "failed", "exit_code", "The command ended with exit code 3"),
    run("run_lost", "failed", "worker_lost", "The worker was not heard of for too long"),
    run("run_cancelled", "cancelled", "cancelled", "It was cancelled"), run("run_never", "running", ended=False)]}


def line(n, text, stream="stdout", **more):
    return {"line": n, "time": f"2026-01-01T00:00:{n:02d}Z", "stream": stream, "text": text, **more}


# Each connection of a follower gets the next of these, and is cut after it.
FOLLOWED = [
    [line(1, "one"), line(2, "two", open=True), line(3, "three", "stderr")],
    [line(2, "two, now whole"), line(3, "three", "stderr"), line(4, "four \x1b[31mred\x1b[0m")],
    [line(5, "five", "system"), "end"],
]
LOG = [line(1, "one"), line(2, "two, now whole"), line(3, "three", "stderr"), line(4, "four \x1b[31mred\x1b[0m"),
       line(5, "five", "system")]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def reply(self, status, body, **headers):
        data = json.dumps(body).encode() if body is not None else b""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Type" not in headers:
            self.send_header("Content-Type", "application/json" if status < 400 else "application/problem+json")
        self.send_header("X-Request-Id", "req_fake")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def problem(self, status, code, title, detail, **headers):
        self.reply(status, {"type": "about:blank", "title": title, "status": status, "code": code, "detail": detail}, **headers)

    def any(self):
        url = urllib.parse.urlsplit(self.path)
        self.query = dict(urllib.parse.parse_qsl(url.query))
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.seen.append((self.command, self.path, dict(self.headers), body))
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.problem(401, "unauthenticated", "A valid token is needed", "log in")
        parts = url.path.removeprefix("/api/v1/").split("/")
        name = "on_" + parts[0].replace("-", "_")
        if parts[0] == "projects" and len(parts) > 2:
            name, parts = "on_project_" + parts[2].replace("-", "_"), parts[2:]
        return getattr(self, name, self.not_found)(*parts[1:])

    do_GET = do_POST = do_PUT = do_DELETE = any

    def not_found(self, *_):
        self.problem(404, "not_found", "Not found", f"the fake does not know {self.path}")

    def on_auth(self, *_):
        self.reply(200, {"principal": "usr_1", "name": "ada", "kind": "pat", "admin": True, "expires_at": "2027-01-01T00:00:00Z"})

    def on_project_runs(self, *_):
        if self.command == "POST":
            with self.server.lock:
                self.server.posts += 1
                flaky = self.server.posts <= self.server.failing_posts
            if flaky:
                return self.problem(503, "unavailable", "Not ready", "Not ready", **self.server.failing_heads)
            return self.reply(201, RUNS["run_ok"])
        at = int(self.query.get("cursor", 0))
        limit = int(self.query["limit"])
        items = [dict(RUNS["run_ok"], id=f"run_{i}") for i in range(at, min(at + limit, 250))]
        return self.reply(200, {"items": items, **({"next_cursor": str(at + limit)} if at + limit < 250 else {})})

    def on_runs(self, id, what=""):
        if what == "steps":
            step = {"id": "stp_1", "run_id": id, "name": "train", "position": 0, "needs": [], "attempts": 1, "attempt_id": "at_1",
                    "state": RUNS[id]["state"], "reason": RUNS[id]["reason"], "message": RUNS[id]["message"]}
            return self.reply(200, {"items": [step]})
        if id not in RUNS:
            return self.problem(404, "not_found", "Not found", f"there is no run {id}")
        return self.reply(200, RUNS[id])

    def on_steps(self, id, what=""):
        if what == "attempts":
            first = {"id": "at_0", "number": 1, "state": "lost", "worker": "w0", "reason": "worker_lost", "evidence": None}
            last = {"id": "at_1", "number": 2, "state": "failed", "worker": "w1", "reason": "exit_code", "exit_code": 3, "signal": None,
                    "message": "the command ended with exit code 3",
                    "evidence": {"peak_memory": 88080384, "user_us": 812000, "system_us": 90000, "stdout_bytes": 412, "log_tail": ["one", "boom\x1b[2J", "\ttwo"]}}
            return self.reply(200, {"items": [first, last]})
        self.reply(200, {"id": id, "attempt_id": "at_1"})

    def on_attempts(self, id, *_):
        if "follow" not in self.query:
            first = int(self.query.get("from", 0)) or max(1, len(LOG) - int(self.query.get("tail", 1000)) + 1)
            lines = [x for x in LOG if x["line"] >= first]
            return self.reply(200, {"lines": lines, "first": first, "last": 5, "total": 5, "complete": True, "dropped": 0})
        with self.server.lock:
            batch = FOLLOWED[min(self.server.connections, len(FOLLOWED) - 1)]
            self.server.connections += 1
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        lines = [x for x in batch if x != "end"]
        self.wfile.write(f": hi\n\nevent: lines\ndata: {json.dumps({'lines': lines})}\n\n".encode())
        if "end" in batch:
            self.wfile.write(b"event: end\ndata: {}\n\n")
        self.close_connection = True

    def on_project_models(self, model, _, number):
        verdict = "promoted" if number == "1" else "refused"
        self.reply(200, {"model": "m", "number": int(number), "verdict": verdict, "verdict_reason": "Because."})

    def on_project_monitors(self, *_):
        assert not self.query, "the route takes no query"
        self.reply(200, {"items": [{"feature": f"f{i}", "metric": "psi", "value": i / 7, "drifted": i > 3} for i in range(500)]})

    def on_decisions(self, id):
        self.reply(200, {"id": id, "monitor": "m", "window_start": "2008-01-01T00:00:00Z", "window_end": "2008-04-01T00:00:00Z",
                         "cause": "drift", "action": "alert", "fired": False, "suppressed_by": "muted", "reason": "It moved.",
                         "inputs": {"score": 0.5, "window": {"rows": 91}, "most": [{"name": f"f{i}", "value": i} for i in range(12)]},
                         "outcome": {}})

    def on_project_datasets(self, *_):
        self.problem(409, "conflict", "Conflict with the current state", "the name is taken")

    def on_project_pipelines(self, name, *_):
        self.reply(200, {"name": name, "spec": {"inputs": {"n": {"type": "number"}, "text": {"type": "string"}}}})


class FakeApi:
    """with FakeApi() as api: api.url, api.seen"""

    def __init__(self, failing_posts=0, **failing_heads):
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.http.seen, self.http.lock = [], threading.Lock()
        self.http.posts = self.http.connections = 0
        self.http.failing_posts, self.http.failing_heads = failing_posts, failing_heads

    def __enter__(self):
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        self.seen = self.http.seen
        return self

    def __exit__(self, *exc):
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()
