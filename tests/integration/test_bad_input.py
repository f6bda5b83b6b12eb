"""Every field of every JSON request of the contract, sent wrongly: refused by name, never a 500, and nothing written.

Bodies that decode are made from the contract's own schemas, so that a new operation is swept without being listed here. The
decoder runs before anything else looks at a body, so the field that is wrong must be the one that is named."""
import json

import pytest

from harness import ROOT
from stack import Wire
from world import World, tables

DOC = json.loads((ROOT / "api/openapi.json").read_text())
# Where what is required depends on other fields.
BASE = {"runs.create": {"source": "apiVersion: tidemill/v1\nkind: Pipeline\nmetadata: {name: p}\nspec: {steps: {a: {run: [x]}}}\n"}}
# Another shape of error (MLflow's), or bodies that are not one JSON object.
OTHERS = ("track_read", "track_write")


def resolve(schema):
    while "$ref" in schema:
        at = DOC
        for part in schema["$ref"].lstrip("#/").split("/"):
            at = at[part]
        schema = at
    return schema


def operations():
    for path, methods in DOC["paths"].items():
        for method, op in methods.items():
            body = op.get("requestBody", {}).get("content", {}).get("application/json") if isinstance(op, dict) else None
            if body and op["x-permission"] not in OTHERS:
                schema = resolve(body["schema"])
                if schema.get("properties"):
                    yield pytest.param(op["operationId"], method.upper(), path, op["x-permission"], schema, id=op["operationId"])


def valid(schema, depth=0):
    """A value that decodes."""
    schema = resolve(schema)
    if "enum" in schema:
        return schema["enum"][0]
    if "oneOf" in schema or "anyOf" in schema:
        return valid((schema.get("oneOf") or schema["anyOf"])[0], depth + 1)
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object" or "properties" in schema:
        required = schema.get("required", []) if depth < 4 else []
        return {k: valid(v, depth + 1) for k, v in schema.get("properties", {}).items() if k in required}
    if kind == "array":
        return [valid(schema["items"], depth + 1) for _ in range(schema.get("minItems", 0))]
    if kind in ("integer", "number"):
        return max(schema.get("minimum", 1), 1) if schema.get("maximum", 1) >= 1 else schema["maximum"]
    if kind == "boolean":
        return True
    if schema.get("format") == "date-time":
        return "2026-01-01T00:00:00Z"
    if schema.get("format") == "date":
        return "2026-01-01"
    return "a" * max(schema.get("minLength", 1), 1)


def bad_values(schema):
    """(what, text of a JSON value) that no field of this schema takes."""
    schema = resolve(schema)
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    if kind is None:
        return  # any JSON
    if "null" not in kinds:
        yield "null", "null"
    if "string" in kinds:
        yield "NUL", '"a\\u0000b"'
        yield "half a surrogate", '"\\ud800"'
        yield "an object", '{"a": 1}'
        if schema.get("maxLength", 1 << 20) < 1 << 16:
            yield "too long", json.dumps("a" * (schema["maxLength"] + 1))
    else:
        yield "a string", '"x y"'
    if "array" not in kinds:
        yield "a list", "[[]]"
    if "integer" in kinds:
        yield "a fraction", "1.5"
        yield "too great", "9" * 30
    if "boolean" in kinds:
        yield "a number", "2"


def whole(base, name, text):
    """The body with one field replaced by raw text."""
    parts = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in base.items() if k != name]
    return "{" + ", ".join(parts + [f"{json.dumps(name)}: {text}"]) + "}"


@pytest.fixture(scope="module")
def world(server):
    wire = Wire(server, "worker-1")
    own = World(server, "alpha", "model-a").work(wire)
    clients = {"worker": wire.api, "join": server.client(server.admin().post("/api/v1/workers/join-tokens", {}, expect=201).json()["token"])}
    return {"own": own, "clients": clients, "admin": server.admin()}


def names(world):
    return {"token": "aaaaaaaaaaaa", "principal": "admin", **world["own"].names()}


def refused(reply, what, pointer=None):
    assert 400 <= reply.status < 500, (what, reply.status, reply.body[:500])
    assert reply.headers["Content-Type"].startswith("application/problem+json"), what
    if pointer is not None:
        assert reply.status == (400 if "surrogate" in what else 422), (what, reply.status, reply.body[:500])
        said = [e["pointer"] for e in reply.json().get("errors", [])]
        assert any(p == pointer or p.startswith(pointer + "/") for p in said), (what, reply.body[:500])


@pytest.mark.parametrize("op,method,path,permission,schema", operations())
def test_every_field_sent_wrongly_is_refused_by_name(server, world, op, method, path, permission, schema):
    api = world["clients"].get(permission, world["admin"])
    for name, value in names(world).items():
        path = path.replace("{" + name + "}", value)
    assert "{" not in path, path
    base, head = BASE.get(op) or valid(schema), {"Content-Type": "application/json", "If-Match": "*"}

    def ask(body):
        return api.request(method, path, body=body if isinstance(body, bytes) else body.encode(), headers=head)

    if permission == "bootstrap" or permission == "public":
        pytest.skip("has no caller left, or takes a secret: tested with its own file")
    before = tables(server)
    for name, field in schema["properties"].items():
        for what, text in bad_values(field):
            refused(ask(whole(base, name, text)), f"{name}: {what}", f"/{name}")
        bad_utf8 = whole(base, name, '"@"').encode().replace(b"@", b"\xff\xfe")
        assert ask(bad_utf8).status in (400, 422), f"{name}: bad UTF-8"
        twice = whole({**base, name: "a"}, "zz", "1").replace('"zz": 1', f'{json.dumps(name)}: "a"') if name in base else \
            whole(base, name, '"a"')[:-1] + f', {json.dumps(name)}: "a"}}'
        assert ask(twice).status in (400, 422), f"{name}: twice"
    for name in schema.get("required", []):
        refused(ask(json.dumps({k: v for k, v in base.items() if k != name})), f"{name}: missing", f"/{name}")
    refused(ask(whole(base, "no_such_field", "1")), "unknown", "/no_such_field")
    for what, body in (("no JSON", "{"), ("nothing", ""), ("a list", "[]"), ("deep", "[" * 5000 + "]" * 5000), ("two", "{} {}")):
        refused(ask(body), what)
    assert tables(server) == before
