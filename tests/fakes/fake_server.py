"""A fake of the server, for tests of the worker alone: the worker's side of the API (api/worker.h), in memory, in threads of
the test's own process. It is strict about epochs, offsets, frames and digests, and can be told to be away, slow, forgetful
or hostile. It places nothing: tests say what is assigned."""
import hashlib
import http.server
import json
import re
import socket
import struct
import threading
import time
import urllib.parse

TERMINAL = ("succeeded", "failed", "cancelled")
SELF = r"/api/v1/workers/self/attempts/([a-z0-9_-]+)"


class Problem(Exception):
    def __init__(self, status, code, detail, retry_after=None):
        super().__init__(detail)
        self.status, self.code, self.detail, self.retry_after = status, code, detail, retry_after


class Attempt:
    def __init__(self, assignment):
        self.assignment = assignment
        self.epoch = assignment["epoch"]
        self.reported = None      # the last sync_attempt
        self.states = []          # every state that was seen, in order
        self.cancel = None        # reason
        self.told = 0             # how often that was said
        self.ranks = None         # of its gang, once it may begin: address and port of each
        self.log = bytearray()
        self.final = None
        self.outputs = None
        self.checkpoints = []      # the files of each that was brought
        self.uploads = {}
        self.forgotten = False
        self.blobs = set()        # what it may read

    @property
    def state(self):
        return self.reported["state"] if self.reported else "assigned"


def frames(spool):
    """(stream, payload) of each frame; the spool must end on an edge."""
    at, out = 0, []
    while at < len(spool):
        length, stream, zero, _rank, _time = struct.unpack_from("<IBBHQ", spool, at)
        assert 1 <= length <= 65536 and 1 <= stream <= 3 and zero == 0, f"no frame at {at}"
        assert at + 16 + length <= len(spool), f"the frame at {at} is cut"
        out.append((stream, spool[at + 16:at + 16 + length]))
        at += 16 + length
    return out


class FakeServer:
    def __init__(self, join_token="tdm_join_x", park_s=5.0):
        self.join_token, self.park_s = join_token, park_s
        self.lock = threading.Condition()
        self.attempts, self.blobs = {}, {}
        self.down = False
        self.keep = False          # say "forget" to nobody
        self.nag = set()           # attempts that are told 20 times to end, though they know
        self.mute = False          # no exchange is answered; all else is
        self.hold_blobs = False    # no blob is given out yet
        self.slow_log = 0.0        # seconds per piece of log
        self.refuse_uploads = 0    # so many uploads fail with 503
        self.metrics = ""          # "busy": 503, to be asked again in an hour; "hang": no answer
        self.counts = {}           # requests by operation
        self.syncs, self.last_sync = 0, None
        self.holds = None  # as they were told last
        self.enrolled = {}         # token → worker id
        self.live = set()          # sockets
        self.busy = 0
        handler = type("Handler", (Handler,), {"fake": self})
        self.http = Listener(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def close(self):
        self.go_away()
        self.http.shutdown()
        self.http.server_close()

    # ---- what tests say ----
    def go_away(self):
        """Every connection breaks and none is answered."""
        with self.lock:
            self.down = True
            self.lock.notify_all()
            for s in list(self.live):
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def come_back(self):
        with self.lock:
            self.down = False

    def add_blob(self, data):
        digest = hashlib.sha256(data).hexdigest()
        self.blobs[digest] = data
        return digest

    def assign(self, argv, attempt=None, **more):
        with self.lock:
            attempt = attempt or f"att_{len(self.attempts) + 1:026d}"
            a = {"attempt": attempt, "step": "stp_1", "run": "run_1", "project": "demo", "pipeline": "p", "step_name": "train",
                 "number": 1, "epoch": 1, "runtimes": ["process"], "argv": argv, "cpus": 1.0, "memory": 0,
                 "token": "tdm_job_01kb9zv1f0m3s8q2x7w4t6y5zr_secretsecret", "tracking_run": "0" * 32, "experiment_id": "1", **more}
            self.attempts[attempt] = Attempt(a)
            self.attempts[attempt].blobs = {f["digest"] for kind in ("datasets", "models", "inputs")
                                            for item in a.get(kind, []) for f in item["files"]}
            self.lock.notify_all()
            return attempt

    def cancel(self, attempt, reason="cancelled"):
        with self.lock:
            self.attempts[attempt].cancel = reason
            self.lock.notify_all()

    def begin(self, attempt, ranks):
        """All ranks of its gang are ready."""
        with self.lock:
            self.attempts[attempt].ranks = ranks
            self.lock.notify_all()

    def supersede(self, attempt):
        """Another attempt has taken over: what this one still sends is refused."""
        with self.lock:
            self.attempts[attempt].epoch += 1
            self.attempts[attempt].cancel = "superseded"
            self.lock.notify_all()

    def release(self):
        with self.lock:
            self.keep = False
            self.lock.notify_all()

    def wait(self, what, seconds=30):
        """Until what(self) is true; its value."""
        end = time.monotonic() + seconds
        with self.lock:
            while True:
                value = what(self)
                if value:
                    return value
                left = end - time.monotonic()
                assert left > 0, f"not so after {seconds} s: {[(a, x.state, x.reported) for a, x in self.attempts.items()][:5]}"
                self.lock.wait(min(left, 0.5))

    def wait_state(self, attempt, *states, seconds=30):
        self.wait(lambda s: s.attempts[attempt].state in states, seconds)
        return self.attempts[attempt].reported

    def wait_end(self, attempt, seconds=30):
        self.wait_state(attempt, *TERMINAL, seconds=seconds)
        return self.attempts[attempt].reported

    def output(self, attempt, stream=None):
        """What the command wrote, as the log has it."""
        return b"".join(p for s, p in frames(self.attempts[attempt].log) if stream in (None, s))

    # ---- what the worker asks ----
    def enroll(self, token, body):
        if token != self.join_token:
            raise Problem(401, "unauthenticated", "no such join token")
        worker = f"wrk_{len(self.enrolled) + 1:026d}"
        secret = f"tdm_worker_{len(self.enrolled) + 1}_{'s' * 30}"
        self.enrolled[secret] = worker
        return 201, {"worker_id": worker, "pool": "default", "token": secret, "expires_at": "2099-01-01T00:00:00Z"}

    def wanted(self, has):
        ids = {a["id"] for a in has}
        reply = {"assign": [], "cancel": [], "release": [], "forget": [], "drain": False}
        for name, x in self.attempts.items():
            if x.forgotten:
                if name in ids:
                    reply["forget"].append(name)
                continue
            if x.reported is None and name not in ids:  # whoever has reported it has it on disk
                reply["assign"].append(x.assignment)
            mine = next((a for a in has if a["id"] == name), None)
            if mine is None:
                continue
            if mine["state"] in TERMINAL:
                if not self.keep:
                    reply["forget"].append(name)
            elif x.cancel and (not mine.get("cancelling") or (name in self.nag and x.told < 20)):
                x.told += 1
                reply["cancel"].append({"attempt": name, "epoch": x.epoch, "reason": x.cancel})
            elif x.ranks and mine.get("ready") and not mine.get("released"):
                self.counts["release"] = self.counts.get("release", 0) + 1
                reply["release"].append({"attempt": name, "epoch": x.epoch, "ranks": x.ranks})
        return reply

    def take(self, has):
        for a in has:
            x = self.attempts.get(a["id"])
            if x is None:
                continue
            if x.state in TERMINAL and a["state"] not in TERMINAL:
                continue  # an older message
            if a["state"] != x.state or x.reported is None:
                x.states.append(a["state"])
            x.reported = a
        self.lock.notify_all()

    def sync(self, body):
        with self.lock:
            self.syncs += 1
            self.last_sync = body
            self.holds = body["holds"]["items"] if "holds" in body else self.holds
            has = body.get("attempts", [])
            self.take(has)
            end = time.monotonic() + (self.park_s if body.get("wait") else 0)
            while True:
                reply = self.wanted(has)
                if self.down:
                    raise ConnectionError
                if self.mute:
                    self.lock.wait(0.1)
                    continue
                if any(reply.values()) or time.monotonic() >= end:
                    break
                self.lock.wait(end - time.monotonic())
            return 200, reply

    def set(self, **what):
        with self.lock:
            for name, value in what.items():
                setattr(self, name, value)
            self.lock.notify_all()

    def attempt(self, name, epoch):
        x = self.attempts.get(name)
        if x is None:
            raise Problem(404, "not_found", "no such attempt")
        if int(epoch) != x.epoch:
            raise Problem(409, "superseded", "A newer attempt has taken over")
        return x

    def put_log(self, name, query, data):
        time.sleep(self.slow_log)
        with self.lock:
            x, offset = self.attempt(name, query["epoch"]), int(query["offset"])
            frames(data)
            if offset <= len(x.log) < offset + len(data):
                assert x.log[offset:] == data[:len(x.log) - offset], "the log was rewritten"
                x.log += data[len(x.log) - offset:]
            self.lock.notify_all()
            return 200, {"length": len(x.log)}

    def log_final(self, name, body):
        with self.lock:
            x = self.attempt(name, body["epoch"])
            if body["length"] == len(x.log):
                if body["digest"] != hashlib.sha256(x.log).hexdigest():
                    raise Problem(409, "conflict", "the digest differs")
                x.final = body
            self.lock.notify_all()
            return 200, {"length": len(x.log)}

    def put_outputs(self, name, body):
        with self.lock:
            x = self.attempt(name, body["epoch"])
            assert x.final is not None, "outputs before the log was agreed on"
            for output in body["outputs"]:
                for f in output["files"]:
                    if len(self.blobs.get(f["digest"], b"\0" * (f["size"] + 1))) != f["size"]:
                        raise Problem(422, "invalid", f"{f['path']} was not uploaded")
            x.outputs = {o["name"]: {f["path"]: self.blobs[f["digest"]] for f in o["files"]} for o in body["outputs"]}
            return 200, None

    def put_checkpoint(self, name, body):
        with self.lock:
            x = self.attempt(name, body["epoch"])
            x.checkpoints.append({f["path"]: self.blobs[f["digest"]] for f in body["files"]})
            self.lock.notify_all()
            return 200, None

    def put_metrics(self, name, body):
        with self.lock:
            self.attempt(name, body["epoch"])
            if self.metrics == "busy":
                raise Problem(503, "unavailable", "not now", retry_after=3600)
            while self.metrics == "hang" and not self.down:
                self.lock.wait(0.1)
            return 200, None

    def put_blob(self, name, digest, query, data):
        with self.lock:
            self.attempt(name, query["epoch"])
            if self.refuse_uploads > 0:
                self.refuse_uploads -= 1
                raise Problem(503, "unavailable", "not now")
            if hashlib.sha256(data).hexdigest() != digest:
                raise Problem(422, "invalid", "the digest differs")
            self.blobs[digest] = data
            return 201, {"digest": digest, "size": len(data)}

    def get_blob(self, name, digest, query):
        with self.lock:
            x = self.attempt(name, query["epoch"])
            while self.hold_blobs:
                self.lock.wait(0.1)
            if digest not in x.blobs or digest not in self.blobs:
                raise Problem(404, "not_found", "no such blob of the attempt")
            return self.blobs[digest]


class Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    fake = None

    def log_message(self, *args):
        pass

    def setup(self):
        super().setup()
        self.fake.live.add(self.connection)

    def finish(self):
        self.fake.live.discard(self.connection)
        try:
            super().finish()
        except OSError:
            pass

    def handle(self):
        try:
            super().handle()
        except (ConnectionError, TimeoutError):
            pass

    def answer(self, status, value, kind="application/json", retry_after=None):
        body = value if isinstance(value, bytes) else b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if retry_after is not None:
            self.send_header("Retry-After", str(retry_after))
        self.end_headers()
        self.wfile.write(body)

    def serve(self):
        if self.fake.down:
            raise ConnectionError
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        kind, retry_after = "application/json", None
        try:
            status, value = self.route(url.path, query, data, token)
        except Problem as p:
            status, value = p.status, {"type": "about:blank", "title": p.detail, "status": p.status, "code": p.code, "detail": p.detail}
            kind, retry_after = "application/problem+json", p.retry_after
        self.answer(status, value, "application/octet-stream" if isinstance(value, bytes) else kind, retry_after)

    do_GET = do_PUT = do_POST = serve

    def route(self, path, query, data, token):
        f, m = self.fake, self.command
        if (m, path) == ("POST", "/api/v1/workers/enroll"):
            return f.enroll(token, json.loads(data))
        if token not in f.enrolled:
            raise Problem(401, "unauthenticated", "A valid token is needed")
        routes = [("GET", "/api/v1/workers/(wrk_[0-9]+)", lambda w: (200, {"id": w})),
                  ("POST", "/api/v1/workers/self/sync", lambda: f.sync(json.loads(data))),
                  ("PUT", SELF + "/log", lambda a: f.put_log(a, query, data)),
                  ("POST", SELF + "/log/final", lambda a: f.log_final(a, json.loads(data))),
                  ("POST", SELF + "/outputs", lambda a: f.put_outputs(a, json.loads(data))),
                  ("POST", SELF + "/checkpoint", lambda a: f.put_checkpoint(a, json.loads(data))),
                  ("POST", SELF + "/metrics", lambda a: f.put_metrics(a, json.loads(data))),
                  ("PUT", SELF + "/blobs/([0-9a-f]{64})", lambda a, d: f.put_blob(a, d, query, data)),
                  ("GET", SELF + "/blobs/([0-9a-f]{64})", lambda a, d: (200, f.get_blob(a, d, query)))]
        for method, pattern, call in routes:
            found = re.fullmatch(pattern, path)
            if found and method == m:
                with f.lock:
                    f.counts[f"{m} {pattern}"] = f.counts.get(f"{m} {pattern}", 0) + 1
                return call(*found.groups())
        raise Problem(404, "not_found", "no such route")
