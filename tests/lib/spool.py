"""Frames of a log spool (api/frame.h), and attempts that stand in the database without a scheduler having made them."""
import hashlib
import itertools
import json
import struct
import time

STDOUT, STDERR, SYSTEM = 1, 2, 3
_number = itertools.count(1)
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def frame(data, stream=STDOUT, at=1_700_000_000_000_000, rank=0):
    return struct.pack("<IBBHQ", len(data), stream, 0, rank, at) + data


def frames(*texts, stream=STDOUT):
    return b"".join(frame(t if isinstance(t, bytes) else t.encode(), stream) for t in texts)


def sha(data):
    return hashlib.sha256(data).hexdigest()


def new_id(prefix):
    n = int(time.time() * 1000) << 80 | next(_number)
    text = ""
    for _ in range(26):
        text = _ALPHABET[n & 31] + text
        n >>= 5
    return f"{prefix}_{text}"


class Attempt:
    """A running attempt of its own run and step, held by a worker."""

    def __init__(self, server, worker, project_id, state="running"):
        self.server, self.worker = server, worker
        self.run, self.step, self.id = new_id("run"), new_id("st"), new_id("at")
        self.epoch = next(_number)
        server.sql(f"""
            INSERT INTO run (id, project_id, pipeline, number, spec, trigger, state)
            VALUES ('{self.run}', '{project_id}', 'p', 1, '{{}}', 'api', 'running');
            INSERT INTO step (id, run_id, project_id, name, position, spec, state, attempts)
            VALUES ('{self.step}', '{self.run}', '{project_id}', 's', 0, '{{}}', 'running', 1);
            INSERT INTO attempt (id, step_id, run_id, project_id, number, epoch, worker_id, state, lost_after, delivered)
            VALUES ('{self.id}', '{self.step}', '{self.run}', '{project_id}', 1, {self.epoch}, '{worker.id}', '{state}',
                3600000000000, true)""")
        self.path = f"/api/v1/workers/self/attempts/{self.id}/log"

    def put(self, data, offset=0, epoch=None, api=None, **kw):
        """Answers the length that the server holds."""
        reply = (api or self.worker.api).put(f"{self.path}?epoch={self.epoch if epoch is None else epoch}&offset={offset}", data, **kw)
        return reply.json()["length"] if reply.status == 200 else reply

    def final(self, data, epoch=None, dropped=0, digest=None, length=None, **kw):
        reply = self.worker.api.post(f"{self.path}/final", {"epoch": self.epoch if epoch is None else epoch,
                                     "length": len(data) if length is None else length, "dropped": dropped,
                                     "digest": digest or sha(data)}, **kw)
        return reply.json()["length"] if reply.status == 200 else reply


class Worker:
    def __init__(self, server, name):
        join = server.command("join-token", "default").split()[-1]
        reply = server.client(join).post("/api/v1/workers/enroll", {"name": name}, expect=201).json()
        self.id, self.api = reply["worker_id"], server.client(reply["token"])


def sse(client, path, last_id=None, timeout=10.0):
    """The events of a stream, as (id, event, data), until it ends or nothing comes for `timeout` seconds."""
    import http.client
    conn = http.client.HTTPConnection(client.host, client.port, timeout=timeout)
    head = {"Authorization": f"Bearer {client.token}"}
    if last_id is not None:
        head["Last-Event-ID"] = str(last_id)
    conn.request("GET", path, headers=head)
    reply = conn.getresponse()
    assert reply.status == 200, (reply.status, reply.read())
    event = {"id": "", "event": "message", "data": []}
    try:
        while True:
            line = reply.readline()
            if not line:
                return
            line = line.decode().rstrip("\n")
            if line == "":
                if event["data"]:
                    yield event["id"], event["event"], json.loads("\n".join(event["data"]))
                event = {"id": "", "event": "message", "data": []}
                continue
            name, _, value = line.partition(": ")
            if name == "data":
                event["data"].append(value)
            elif name in ("id", "event"):
                event[name] = value
    finally:
        conn.close()
