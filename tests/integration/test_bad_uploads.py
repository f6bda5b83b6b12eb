"""Raw bodies, sent wrongly to every route that takes a stream: other bytes than promised, cut off, too many, broken chunks, packed
without being asked. Never a 5xx, no row, no byte left in the store, and the server serves on."""
import gzip
import hashlib
import os
import socket

import pytest

from harness import until
from stack import Wire
from test_bad_input import DOC
from world import World, tables

DATA = b"row_id,date,x,y,y_pred\n" + b"".join(b"n%d,2001-01-07,1.5,1,2\n" % i for i in range(20000))
HEX = hashlib.sha256(DATA).hexdigest()
OTHER = hashlib.sha256(b"other").hexdigest()
STREAMS = sorted(op["operationId"] for methods in DOC["paths"].values() for op in methods.values()
                 if {"application/octet-stream", "text/csv"} & set(op.get("requestBody", {}).get("content", {})))


@pytest.fixture(scope="module")
def world(server):
    return World(server, "alpha", "model-a").work(Wire(server, "worker-1"))


def target(world, op, digest=HEX):
    """(method, address, token, media type) of a request that would be taken."""
    attempt = f"/api/v1/workers/self/attempts/{world.attempt}"
    return {
        "blobs.put": ("PUT", f"{world.base}/blobs/{digest}", world.api.token, "application/octet-stream"),
        "observations.add": ("POST", f"{world.base}/monitors/m/observations", world.api.token, "text/csv"),
        "labels.add": ("POST", f"{world.base}/monitors/m/labels", world.api.token, "text/csv"),
        "attempts.upload": ("PUT", f"{attempt}/blobs/{digest}?epoch={world.epoch}", world.wire.token, "application/octet-stream"),
        "attempts.log": ("PUT", f"{attempt}/log?epoch={world.epoch}&offset=0", world.wire.token, "application/octet-stream"),
        "mlflow.artifacts.put": ("PUT", f"{world.artifacts}/bad/{digest[:8]}", world.api.token, "application/octet-stream"),
    }[op]


def held(server):
    return sorted(str(p) for p in (server.dir / "data/blobs").rglob("*") if p.is_file())


def status_of(answer):
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0


def raw(server, world, op, head, body, then_close=True, digest=HEX):
    """Sends bytes as they are; the first answer, b"" when the connection ends without one."""
    method, url, token, kind = target(world, op, digest)
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as s:
        lines = [f"{method} {url} HTTP/1.1", f"Host: 127.0.0.1:{server.port}", f"Authorization: Bearer {token}",
                 f"Content-Type: {kind}", *head, "", ""]
        try:
            s.sendall("\r\n".join(lines).encode() + body)
            if then_close:
                s.shutdown(socket.SHUT_WR)
            answer = b""
            while piece := s.recv(65536):
                answer += piece
                if not then_close and b"\r\n\r\n" in answer:
                    break
        except (ConnectionResetError, BrokenPipeError):
            answer = answer if "answer" in locals() else b""
    return answer


PACKED = gzip.compress(DATA)
BROKEN = [  # what, head, body, statuses (0: the connection just ends)
    ("cut off", [f"Content-Length: {len(DATA)}"], DATA[:-7], (0, 400, 408)),
    ("nothing of it", [f"Content-Length: {len(DATA)}"], b"", (0, 400, 408)),
    ("a cut chunk", ["Transfer-Encoding: chunked"], b"%x\r\n" % len(DATA) + DATA[:1000], (0, 400, 408)),
    ("no last chunk", ["Transfer-Encoding: chunked"], b"%x\r\n" % len(DATA) + DATA + b"\r\n", (0, 400, 408)),
    ("no chunk size", ["Transfer-Encoding: chunked"], b"zz\r\n" + DATA, (400,)),
    ("a negative chunk", ["Transfer-Encoding: chunked"], b"-5\r\nabcde\r\n0\r\n\r\n", (400,)),
    ("a chunk beyond all numbers", ["Transfer-Encoding: chunked"], b"ffffffffffffffffff\r\nx", (400, 413)),
    ("a chunk without its end", ["Transfer-Encoding: chunked"], b"5\r\nabcdeXX0\r\n\r\n", (400,)),
    ("two lengths", ["Content-Length: 5", "Content-Length: 6"], b"abcdef", (400,)),
    ("length and chunks", ["Content-Length: 5", "Transfer-Encoding: chunked"], b"5\r\nabcde\r\n0\r\n\r\n", (400,)),
    ("a negative length", ["Content-Length: -1"], b"", (400,)),
    ("a length beyond all numbers", ["Content-Length: 99999999999999999999"], b"x", (400, 413)),
    ("packed, as it says", ["Content-Encoding: gzip", f"Content-Length: {len(PACKED)}"], PACKED, (415,)),
    ("garbage that says it is packed", ["Content-Encoding: gzip", "Content-Length: 100"], os.urandom(100), (415,)),
    ("packed twice", ["Content-Encoding: gzip, gzip", "Content-Length: 5"], b"abcde", (415,)),
    ("packed by nobody knows what", ["Content-Encoding: br", "Content-Length: 5"], b"abcde", (415,)),
    ("neither length nor chunks", [], b"", (400, 411, 422)),
]


def test_every_stream_is_known():
    assert STREAMS == ["attempts.log", "attempts.upload", "blobs.put", "labels.add", "mlflow.artifacts.put", "observations.add"]


@pytest.mark.parametrize("op", STREAMS)
def test_broken_bodies(server, world, op):
    before, files, wrong = tables(server), held(server), []
    for what, head, body, statuses in BROKEN:
        if what == "neither length nor chunks" and op in ("attempts.log", "mlflow.artifacts.put"):
            continue  # no bytes are a body, too
        status = status_of(raw(server, world, op, head, body))
        if op.startswith("mlflow.") and 415 in statuses:
            statuses = (400,)  # MLflow has no such status
        if status not in statuses:
            wrong.append(f"{what}: {status}")
    assert not wrong, wrong
    until(lambda: tables(server) == before, 20, message=lambda: f"written: {set(tables(server).items()) ^ set(before.items())}")
    until(lambda: held(server) == files, 20, message="bytes were left")


@pytest.mark.parametrize("op", ["blobs.put", "attempts.upload"])
def test_other_bytes_than_the_digest_says(server, world, op):
    before, files, wrong = tables(server), held(server), []
    for what, body in (("others", DATA), ("fewer", b"othe"), ("more", b"other\n"), ("none", b""), ("packed", gzip.compress(b"other"))):
        method, url, token, kind = target(world, op, OTHER)
        reply = server.client(token).request(method, url, body, headers={"Content-Type": kind})
        if reply.status != 422 or reply.json()["errors"][0]["pointer"] != "/digest":
            wrong.append(f"{what}: {reply}")
    assert not wrong, wrong
    assert tables(server) == before and held(server) == files


def test_a_length_that_is_too_short_ends_the_body_there(server, world):
    """What comes after is no part of it, and nothing that is answered well."""
    answer = raw(server, world, "blobs.put", ["Content-Length: 5"], b"other" + b"\x00garbage\r\n\r\n", digest=OTHER)
    assert status_of(answer) == 201
    rest = answer.split(b"\r\n\r\n", 1)[1]
    assert b"HTTP/1.1 2" not in rest
    assert hashlib.sha256(b"other").hexdigest() in "".join(held(server))


def test_the_server_is_well(server, world):
    assert server.proc.poll() is None
    assert "code=internal" not in server.log() and "request failed" not in server.log()
    method, url, token, kind = target(world, "blobs.put")
    server.client(token).request(method, url, DATA, headers={"Content-Type": kind}, expect=201)
