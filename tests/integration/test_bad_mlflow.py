"""Bad input for MLflow's routes: each field of each request of another type, with a NUL, too long, missing, unreadable. The
answer is in MLflow's form, names the parameter and leaves no row; never a 5xx.

The contract has no schema of these requests: the fields are those of the permission sweep's valid ones, and an operation
without an entry there fails."""
import json

import pytest

from harness import query
from stack import Wire
from test_permissions import BY_HEADER, MLFLOW, OPERATIONS, flow_requests
from world import World, tables

OPS = [o[:3] for o in OPERATIONS if o[3] in MLFLOW and "{path}" not in o[2]]
REQUIRED = ("run_id", "key", "name", "timestamp", "metric_key")
CUT = ("mlflow.runs.log_parameter", "mlflow.runs.set_tag")  # their long values are cut, as MLflow does
NOT_AN_OBJECT = (b"{", b"[]", b"null", b"1", b"{} {}", b"\x00", b"[" * 5000, b'{"a":' * 5000 + b"1" + b"}" * 5000)


@pytest.fixture(scope="module")
def world(server):
    return World(server, "alpha", "model-a").work(Wire(server, "worker-1"))


def bad_values(op, name):
    """(what, JSON, whether the parameter must be named)"""
    yield "an object", b'{"a": {}}', True
    yield "a list", b"[[]]", True
    yield "a NUL", b'"a\\u0000b"', True
    yield "bad UTF-8", b'"\xff\xfe"', False
    yield "half a surrogate", b'"\\ud800"', False
    if not (op in CUT and name == "value"):
        yield "too long", b'"' + b"a" * 70000 + b'"', False


def complaint(reply, name, statuses=(400,)):
    if reply.status not in statuses:
        return f"not {statuses}: {reply}"
    body = reply.json()
    if set(body) - {"request_id"} != {"error_code", "message"} or not body["message"]:
        return f"not in MLflow's form: {reply}"
    if reply.status == 400 and (body["error_code"] != "INVALID_PARAMETER_VALUE" or (name and name not in body["message"])):
        return f"does not name {name}: {reply}"
    return None


@pytest.mark.parametrize("op,method,path", OPS, ids=[o[0] for o in OPS])
def test_every_field_sent_wrongly(server, world, op, method, path):
    fields = flow_requests({"run": world.tracking, "experiment": world.experiment})[op]
    head = {"X-Tidemill-Project": world.project} if op in BY_HEADER else {}
    before, wrong = tables(server), []

    def send(what, args, name, statuses=(400,)):
        if method == "GET":
            reply = world.api.get(f"{path}?{args}", headers=head)
        else:
            reply = world.api.request(method, path, args, headers={"Content-Type": "application/json", **head})
        said = complaint(reply, name, statuses)
        if said:
            wrong.append(f"{what}: {said}"[:400])
    for name in fields:
        others = {k: v for k, v in fields.items() if k != name}
        if method == "GET":
            send(f"{name}: a NUL", f"{query(**others)}&{name}=a%00b", None)
            for what, text in (("bad UTF-8", "%ff%fe"), ("too long", "a" * 5000)):  # or such a thing is not there
                if (op, name) != ("mlflow.metrics.get_history", "metric_key"):  # which has no points then
                    send(f"{name}: {what}", f"{query(**others)}&{name}={text}", None, (400, 404))
        else:
            for what, text, named in bad_values(op, name):
                parts = [json.dumps(k).encode() + b": " + json.dumps(v).encode() for k, v in others.items()]
                body = b"{" + b", ".join([*parts, json.dumps(name).encode() + b": " + text]) + b"}"
                send(f"{name}: {what}", body, name if named else None, (400, 404) if what == "too long" else (400,))
        if name in REQUIRED:
            send(f"{name}: missing", query(**others) if method == "GET" else json.dumps(others).encode(), name)
    if method != "GET":
        for body in NOT_AN_OBJECT:
            send(f"{body[:10]!r}", body, None)
    assert tables(server) == before, "something was written"
    assert not wrong, f"{len(wrong)}:\n" + "\n".join(wrong[:12])


# As they stand in an address. What leads out, what no name can hold, what no file system takes, and folders where files are meant.
BAD_PATHS = ["..", "../x", "a/../b", "a/../../b", "%2e%2e/x", "..%2fx", "a%2f..%2f..%2fx", "%252e%252e/x", "%25252e%25252e/x", ".", "./x",
             "a/./b", "/etc/passwd", "%2fetc%2fpasswd", "//x", "a//b", "a/", "", "%00", "a%00b", "x/%00", "a%2500b", "..%252f..%252fx%25", "a%25/..%252f..%252fx", "%252e%252e%252fx%25zz", "%ff", "a%ffb", "%c0%af",
             "%ed%a0%80", "%", "%zz", "%0a", "a%0d%0aX:%20y", "%7f", "%01", "a%5cb", "..%5cx", "%5c%5chost%5cshare", "C:x", "C:%5cx", "c:/x",
             "a%23b", "x" * 256, "x" * 6000, "/".join(["x" * 200] * 6), "%e2%82" + "x"]


def test_artifact_paths(server, world):
    """However a path is wrong: refused in MLflow's form, or not there; no row, and no byte in the store."""
    blobs = server.dir / "data/blobs"
    before, held, wrong = tables(server), sorted(p for p in blobs.rglob("*") if p.is_file()), []
    for n, path in enumerate(BAD_PATHS):
        listed = f"/api/2.0/mlflow/artifacts/list?run_id={world.tracking}&path={path}"
        proxied = f"/api/2.0/mlflow-artifacts/artifacts?path={world.artifacts.removeprefix('/api/2.0/mlflow-artifacts/artifacts/')}/{path}"
        for method, url, body in (("PUT", f"{world.artifacts}/{path}", b"bad path %d" % n), ("GET", f"{world.artifacts}/{path}", None),
                                  ("HEAD", f"{world.artifacts}/{path}", None), ("GET", listed, None), ("GET", proxied, None)):
            if path == "" and url in (listed, proxied):
                continue  # the root
            reply = world.api.request(method, url, body)
            said = None
            if method == "HEAD":
                said = None if reply.status in (400, 404, 414, 431) else f"{reply}"
            elif reply.status in (414, 431):
                pass
            else:
                said = complaint(reply, None, (400,) if method == "PUT" and path != "" else (400, 404))
            if said:
                wrong.append(f"{method} {url[-90:]}: {said}"[:300])
    assert not wrong, f"{len(wrong)}:\n" + "\n".join(wrong[:12])
    assert tables(server) == before, "something was written"
    assert sorted(p for p in blobs.rglob("*") if p.is_file()) == held
