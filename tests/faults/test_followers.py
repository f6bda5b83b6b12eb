"""A hundred clients that follow the log of one step and read nothing: the log goes in as fast as without them, the server
stays as small, and whoever reads on, or comes back after being cut, has every line once. The figures are printed; in the
long form they read nothing until the server has cut them all."""
import http.client
import json
import os
import socket
import threading
import time

import pytest

from harness import Postgres, Server, until
from spool import Attempt, Worker, frame, sse

SOAK = bool(os.environ.get("SOAK"))
STALLED, LINES, PARTS = 100, 4000, 30 if SOAK else 8
READERS = 10 if SOAK else 2  # of them, which read on in the end
WRITE_DEADLINE = 30  # seconds without a byte that the client takes


@pytest.fixture(scope="module")
def server():
    with Postgres() as pg, Server(pg) as s:
        yield s


class Stalled:
    """Has sent its request and read the head of the reply, with as little room in its socket as there may be."""

    def __init__(self, server, attempt):
        self.attempt, self.token = attempt, server.admin().token
        self.sock = socket.socket()
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.sock.connect(("127.0.0.1", server.port))
        self.sock.settimeout(30)
        self.sock.sendall(f"GET /api/v1/steps/{attempt.step}/log?follow=true HTTP/1.1\r\nHost: x\r\n"
                          f"Authorization: Bearer {self.token}\r\n\r\n".encode())
        self.reply = http.client.HTTPResponse(self.sock)
        self.reply.begin()
        assert self.reply.status == 200
        self.lines, self.last_id, self.over = {}, None, False

    def take(self, event_id, data):
        self.last_id = event_id or self.last_id
        self.over = self.over or "complete" in data
        for line in data.get("lines", []):
            if not line.get("open", False):
                assert self.lines.get(line["line"], line["text"]) == line["text"]
                self.lines[line["line"]] = line["text"]

    def read_on(self, server):
        """All that is there for it; after a cut from where it was, as a browser does."""
        event_id, data = None, b""
        try:
            for raw in self.reply:
                name, _, value = raw.rstrip(b"\r\n").partition(b": ")
                if name == b"id":
                    event_id = value.decode()
                elif name == b"data":
                    data = value
                elif not raw.strip() and data:
                    self.take(event_id, json.loads(data))
                    event_id, data = None, b""
        except (OSError, http.client.HTTPException):
            pass
        self.sock.close()
        cut = not self.over
        while not self.over:
            for event_id, _, data in sse(server.admin(), f"/api/v1/steps/{self.attempt.step}/log?follow=true", self.last_id, timeout=20):
                self.take(event_id, data)
        return cut

    def is_cut(self):
        """The server has closed or reset it; looks behind what waits in the socket."""
        states = open("/proc/net/tcp").read().splitlines()[1:]
        port = self.sock.getsockname()[1]
        return not any(int(line.split()[2].split(":")[1], 16) == port and line.split()[3] in ("01", "04", "05") for line in states)


def part(k):
    return b"".join(frame(b"%d.%d %s\n" % (k, i, b"z" * 100)) for i in range(LINES))


def write(attempt):
    """Seconds that the log path takes for all parts."""
    spool, held, began = b"", 0, time.monotonic()
    for k in range(PARTS):
        spool += part(k)
        held = attempt.put(part(k), held)
        assert held == len(spool)
    return time.monotonic() - began, spool


def test_followers_that_read_nothing(server):
    api = server.admin()
    project = api.post("/api/v1/projects", {"name": "stalled"}, expect=201).json()["id"]
    worker = Worker(server, "stalled-worker")
    write(Attempt(server, worker, project))  # the first one warms up
    alone, _ = write(Attempt(server, worker, project))
    attempt = Attempt(server, worker, project)
    stalled = [Stalled(server, attempt) for _ in range(STALLED)]
    before, peak, stop = server.rss_kib(), [0], threading.Event()

    def watch():
        while not stop.wait(0.02):
            peak[0] = max(peak[0], server.rss_kib())
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    last_byte = time.monotonic()
    among, spool = write(attempt)
    assert attempt.final(spool) == len(spool)
    if SOAK:
        until(lambda: all(s.is_cut() for s in stalled), WRITE_DEADLINE + 30)
    waited = time.monotonic() - last_byte
    stop.set()
    thread.join()
    kib = (peak[0] - before) / STALLED
    print(f"\n{len(spool) >> 20} MiB of log: {alone:.2f} s alone, {among:.2f} s with {STALLED} stalled followers; "
          f"the server grew by {kib:.0f} KiB for each of them; {sum(s.is_cut() for s in stalled)} cut after {waited:.0f} s")
    assert among < 10 * alone + 5, (alone, among)
    assert kib < 1024, kib
    cut = 0
    expected = {k * LINES + i + 1: "%d.%d %s" % (k, i, "z" * 100) for k in range(PARTS) for i in range(LINES)}
    for s in stalled[:READERS]:
        cut += s.read_on(server)
        assert s.lines == expected
    assert cut == (READERS if SOAK else 0)
    for s in stalled:
        s.sock.close()
