"""Bad input, generated from the contract: every field of every JSON body missing, null, of another type, too long, too large,
with a NUL, twice, and members that nobody knows; every query parameter and every segment of every path. The answer is 422
(400 when it does not parse) as problem+json with the JSON pointer of the culprit, never a 5xx, and no row of any table is
made, however far a request got.

BODIES has one valid body for each operation; an operation without one fails."""
import copy
import json

import pytest
import yaml

from bodies import BODIES, FILE, STEPS
from harness import ROOT, quote, until
from stack import Wire, pipeline
from world import World, csv, tables

DOC = json.loads((ROOT / "api/openapi.json").read_text())
LONGEST = 300_000  # of a text that is sent; the body limits have their own test
HUGE = 1 << 62


def operations(kind):
    for path, methods in DOC["paths"].items():
        for method, op in methods.items():
            if "operationId" in op and kind(op) and not op["operationId"].startswith("mlflow."):
                yield op["operationId"], method.upper(), path, op


def json_schema(op):
    return op.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})


@pytest.fixture(scope="module")
def world(server):
    wire = Wire(server, "worker-1")
    w = World(server, "alpha", "model-a").work(wire)
    w.joining = server.client(server.admin().post("/api/v1/workers/join-tokens", {}, expect=201).json()["token"])
    yield w


def fill(world, url, **instead):
    names = {**world.names(), "token": "aaaaaaaaaaaa", "principal": "admin", **instead}
    for name, value in names.items():
        url = url.replace("{" + name + "}", value)
    return url


def client_of(world, op):
    return {"worker": world.wire.api, "join": world.joining}.get(op["x-permission"], world.api)


# ---- what can be wrong with a value -----------------------------------------------------------------------------------

class Raw:
    """Text that stands in the JSON as it is."""

    def __init__(self, data):
        self.data = data


def types_of(schema):
    t = schema.get("type", [])
    return [t] if isinstance(t, str) else t


def of_other_types(schema):
    types = types_of(schema)
    if not types or "oneOf" in schema or "anyOf" in schema:
        return
    for name, value in (("string", "x"), ("integer", 1.5), ("boolean", True), ("array", []), ("object", {})):
        if name not in types and not (name == "integer" and "number" in types):
            yield f"a {name}" if name != "integer" else "a fraction", value
    if "null" not in types:
        yield "null", None


def bad_strings(schema):
    if "maxLength" in schema and schema["maxLength"] <= LONGEST:
        yield "too long", "a" * (schema["maxLength"] + 1)
        yield "too long in characters", "\u00e9" * (schema["maxLength"] + 1)
    if schema.get("minLength"):
        yield "empty", ""
    if "pattern" in schema:
        for name, value in (("no name", "Not A Name"), ("too long a name", "a" * 64), ("an empty name", ""), ("a path", "../x")):
            yield name, value
    if "enum" in schema:
        yield "no such word", "no-such-word"
        yield "a word in capitals", str(schema["enum"][0]).upper() + "X"
    if schema.get("format") in ("date-time", "date"):
        for value in ("yesterday", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-01-01 00:00:00", "9" * 40):
            yield "no time", value
    yield "a NUL", Raw(b'"a\\u0000b"')
    yield "half a surrogate", Raw(b'"a\\ud800b"')
    yield "bad UTF-8", Raw(b'"a\xff\xfeb"')
    yield "overlong UTF-8", Raw(b'"\xc0\xaf"')
    yield "a control character", Raw(b'"a\\u0001b"')


def bad_values(schema, base):
    yield from of_other_types(schema)
    types = types_of(schema)
    if "string" in types:
        yield from bad_strings(schema)
    if "integer" in types or "number" in types:
        if "maximum" in schema and schema["maximum"] < HUGE:
            yield "too large", schema["maximum"] + 1
        if "minimum" in schema:
            yield "too small", schema["minimum"] - 1
        yield "beyond all numbers", Raw(b"1e999")
        yield "beyond 64 bits", Raw(b"123456789012345678901234567890")
        yield "NaN", Raw(b"NaN")
    if "array" in types and base:
        most = schema.get("maxItems", 1 << 30)
        if most * len(json.dumps(base[0])) < LONGEST:
            yield "too many items", base[:1] * (most + 1)
        if schema.get("minItems"):
            yield "no items", []
    if "object" in types and isinstance(schema.get("additionalProperties"), dict):
        if schema.get("maxProperties", 1 << 30) < 2000:
            yield "too many members", {f"k{i}": "v" for i in range(schema["maxProperties"] + 1)}
        longest = schema.get("propertyNames", {}).get("maxLength", 255)
        yield "too long a key", {"k" * (longest + 1): "v"}
        yield "an empty key", {"": "v"}
        value = schema["additionalProperties"]
        if "string" in types_of(value):
            yield "a number as value", {"k": 1}
            if value.get("maxLength", LONGEST) < LONGEST:
                yield "too long a value", {"k": "v" * (value["maxLength"] + 1)}
            yield "a NUL in a value", Raw(b'{"k": "a\\u0000b"}')
            yield "the same key twice", Raw(b'{"k": "v", "k": "w"}')


def encode(value):
    """JSON in which Raw stands as it is."""
    if isinstance(value, Raw):
        return value.data
    if isinstance(value, dict):
        return b"{" + b", ".join(json.dumps(k).encode() + b": " + encode(v) for k, v in value.items()) + b"}"
    if isinstance(value, list):
        return b"[" + b", ".join(encode(v) for v in value) + b"]"
    return json.dumps(value).encode()


def put(body, path, value):
    changed = copy.deepcopy(body)
    at = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return changed


def drop(body, path):
    changed = copy.deepcopy(body)
    at = changed
    for key in path[:-1]:
        at = at[key]
    del at[path[-1]]
    return changed


def cases(schema, body, whole=None, path=()):
    """(what, path of the culprit, body) for everything that is wrong somewhere at or below path."""
    whole = body if whole is None else whole
    properties = schema.get("properties", {})
    if schema.get("additionalProperties") is False and isinstance(body, dict):
        yield "an unknown member", path + ("no_such_member",), put(whole, path + ("no_such_member",), 1)
        once = ", ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in body.items())
        if body:
            first = next(iter(body))
            twice = Raw(f"{{{once}, {json.dumps(first)}: {json.dumps(body[first])}}}".encode())
            yield "a member twice", path + (first,), put(whole, path, twice) if path else twice
    for name, sub in properties.items():
        here = path + (name,)
        if sub.get("readOnly"):
            continue
        if name in schema.get("required", ()):
            yield "missing", here, drop(whole, here)
        base = body.get(name)
        for what, value in bad_values(sub, base):
            yield what, here, put(whole, here, value)
        if "properties" in sub and isinstance(base, dict):
            yield from cases(sub, base, whole, here)
        items = sub.get("items")
        if items and base:
            first = here + (0,)
            if "properties" in items:
                yield from cases(items, base[0], whole, first)
            else:
                for what, value in bad_values(items, base[0]):
                    yield what, first, put(whole, first, value)


def pointer(path):
    return "".join("/" + str(p).replace("~", "~0").replace("/", "~1") for p in path)


# Of these the parser knows no more than where it stopped.
UNPARSABLE = ("bad UTF-8", "overlong UTF-8", "half a surrogate", "NaN", "beyond 64 bits", "beyond all numbers", "a NUL",
              "a NUL in a value", "a member twice", "the same key twice", "an empty key")


def stands(document, place):
    """Whether a pointer names something in the document, or a member that is missing there."""
    keys = [k.replace("~1", "/").replace("~0", "~") for k in place.split("/")[1:]]
    for i, key in enumerate(keys):
        if isinstance(document, str):
            try:
                document = yaml.safe_load(document)  # a file that was sent as text
            except yaml.YAMLError:
                return True
        if isinstance(document, list) and key.isdigit() and int(key) < len(document):
            document = document[int(key)]
        elif isinstance(document, dict) and key in document:
            document = document[key]
        elif not isinstance(document, dict) or i != len(keys) - 1:
            return False
    return True


def misplaced(reply, document=None, parameters=()):
    """A 422 says where the culprit stands: in the body by a pointer that leads there, or in a parameter that exists."""
    problems = reply.json().get("errors", [])
    for e in problems:
        if e.get("in") == "body":
            if document is not None and not stands(document, e["pointer"]):
                return f"{e['pointer']} is not in the body: {reply}"
        elif e.get("in") not in ("path", "query", "header") or e["pointer"].split("/")[1] != e.get("parameter"):
            return f"no place: {reply}"
        elif parameters and e["parameter"] not in parameters:
            return f"no such parameter as {e['parameter']}: {reply}"
    return None if problems else f"names nothing: {reply}"


def complaint(reply, what, path, body=None):
    """What is not right with the refusal, or None."""
    text = f"{what} at {pointer(path) or '/'}: {reply}"
    if reply.status not in (400, 422) or (reply.status == 400 and what not in UNPARSABLE):
        return f"not 422: {text}"
    if reply.headers.get_content_type() != "application/problem+json":
        return f"not problem+json: {text}"
    problem = reply.json()
    if problem["status"] != reply.status or not problem.get("detail"):
        return f"says nothing: {text}"
    if reply.status == 400:
        return None
    named = [e["pointer"] for e in problem.get("errors", [])]
    want = pointer(path)
    if not any(n == want or n.startswith(want + "/") for n in named):
        return f"names {named} instead of {want}: {text}"
    return misplaced(reply, body if what not in UNPARSABLE else None)


BODY_OPS = [o for o in operations(lambda op: json_schema(op).get("properties"))]


@pytest.mark.parametrize("op,method,path,doc", BODY_OPS, ids=[o[0] for o in BODY_OPS])
def test_bodies(server, world, op, method, path, doc):
    assert op in BODIES, f"{op} has no valid body in BODIES"
    client, url = client_of(world, doc), fill(world, path)
    head = {"Content-Type": "application/json", "If-Match": '"1"'}
    before, wrong, n = tables(server), [], 0
    for what, culprit, body in cases(json_schema(doc), BODIES[op]):
        n += 1
        said = complaint(client.request(method, url, encode(body), headers=head), what, culprit, body)
        if said:
            wrong.append(said[:400])
    assert n >= 5
    assert tables(server) == before, "something was written"
    assert not wrong, f"{len(wrong)} of {n}:\n" + "\n".join(wrong[:15])


NOT_AN_OBJECT = [b"", b" ", b"{", b"[]", b"null", b"1", b'"x"', b"{}{}", b"{'a': 1}", b"{\"a\": 1,}", b"\xef\xbb\xbf{}", b"\x00",
                 b"{\"a\": \x00}", b"[" * 5000, b"{\"a\":" * 2000, b"{" + b",".join(b'"k%d":1' % i for i in range(60000)) + b"}"]


@pytest.mark.parametrize("op,method,path,doc", BODY_OPS, ids=[o[0] for o in BODY_OPS])
def test_what_is_no_object(server, world, op, method, path, doc):
    client, url = client_of(world, doc), fill(world, path)
    head = {"Content-Type": "application/json", "If-Match": '"1"'}
    before, wrong = tables(server), []
    for body in NOT_AN_OBJECT:
        reply = client.request(method, url, body, headers=head)
        if reply.status not in (400, 413, 422) or reply.headers.get_content_type() != "application/problem+json":
            wrong.append(f"{body[:30]!r}: {reply}")
    for kind in ("text/plain", "application/xml", "application/jsonx", ""):
        reply = client.request(method, url, b"{}", headers={**head, "Content-Type": kind})
        if reply.status != 415:
            wrong.append(f"{kind}: {reply}")
    limit = (4 << 20) + 1
    reply = client.request(method, url, None, headers={**head, "Content-Length": str(limit)})
    client.close()
    if reply.status != 413:
        wrong.append(f"{limit} bytes: {reply}")
    assert tables(server) == before, "something was written"
    assert not wrong, "\n".join(wrong)


SENT = [o for o in operations(lambda op: "requestBody" in op)]


@pytest.mark.parametrize("op,method,path,doc", SENT, ids=[o[0] for o in SENT])
def test_media_types(server, world, op, method, path, doc):
    """Those that the contract names are taken and no others; where it names bytes, all are."""
    client = client_of(world, doc)
    named = list(doc["requestBody"]["content"])
    others = ["application/octet-stream", "text/csv", "application/x-ndjson", "application/json", "application/yaml", "image/png"]
    head = {"If-Match": '"999999"'}
    url = fill(world, path)
    needed = [p["name"] for p in doc["parameters"] if p["in"] == "query" and p.get("required")]
    url += "?" + "&".join(f"{n}=1" for n in needed) if needed else ""
    before = tables(server)
    for kind in {*named, *others}:
        # Not to be read as anything, whatever it is taken for.
        reply = client.request(method, url, b"\x00[", headers={**head, "Content-Type": kind})
        taken = kind in named or named == ["application/octet-stream"]
        assert (reply.status != 415) == taken, f"{kind}: {reply}"
    assert tables(server) == before


# ---- files that users write -------------------------------------------------------------------------------------------

YAML = ["", "x", "[]", "- a", "a: [", "a: b: c", "\t a: 1", "a: &x [*x]", "a: *nowhere", "a: 1\na: 2", "--- {}\n--- {}", "!!python/object:os.system {}",
        "a: !!binary xx", "%YAML 9.9\n--- {}", "{" * 300, "a: \"\\x00\"", "? [a, b]\n: c", "1: 2", "<<: {a: 1}", "a: '\ud83d"]
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12))


@pytest.mark.parametrize("op", ["pipelines.put", "monitors.put", "runs.create"])
def test_yaml(server, world, op):
    base = world.base
    before, wrong = tables(server), []
    for text in YAML + [BOMB, "x: " + "y" * 3_000_000]:
        text = text.encode("utf-8", "surrogatepass")
        if op == "monitors.put":
            reply = world.api.put(f"{base}/monitors/m", text, headers={"Content-Type": "application/yaml"})
        else:
            method, path = ("PUT", f"{base}/pipelines/p") if op == "pipelines.put" else ("POST", f"{base}/runs")
            reply = world.api.request(method, path, encode({"source": Raw(json.dumps(text.decode("utf-8", "replace")).encode())}),
                                      headers={"Content-Type": "application/json"})
        if reply.status not in (400, 413, 422) or reply.headers.get_content_type() != "application/problem+json":
            wrong.append(f"{text[:40]!r}: {reply}")
    assert tables(server) == before and not wrong, "\n".join(wrong)


def test_pipeline_files(server, world):
    """The same for every key of a pipeline's file, inside `source`."""
    schema = world.api.get("/api/v1/schemas/pipeline.json", expect=200).json()
    body = json.loads(pipeline("p", STEPS, inputs={"n": {"type": "integer", "default": 1}}))
    before, wrong, n = tables(server), [], 0
    for what, culprit, changed in cases(schema, body):
        n += 1
        text = encode(changed)
        try:
            source = text.decode()
        except UnicodeDecodeError:
            continue
        reply = world.api.put(f"{world.base}/pipelines/p", {"source": source})
        said = complaint(reply, what if reply.status == 422 else UNPARSABLE[0], culprit if reply.status != 422 else ())
        if said is None and reply.status == 422 and what not in UNPARSABLE:
            key = str([c for c in culprit if not isinstance(c, int)][-1])
            said = misplaced(reply, {"source": source})
            if key not in reply.body.decode():
                said = f"does not name {key}: {what}: {reply}"
        if said:
            wrong.append(said[:400])
    assert n > 50
    assert tables(server) == before, "something was written"
    assert not wrong, f"{len(wrong)} of {n}:\n" + "\n".join(wrong[:15])


# ---- rows -------------------------------------------------------------------------------------------------------------

ROW = {"row_id": "new", "date": "2001-01-07", "x": "1.5", "y": "1", "y_pred": "2"}
LABEL = {"row_id": "r6-0", "date": "2001-01-06", "y": "1"}
BAD_CELLS = {"row_id": ["", "a" * 256], "date": ["", "yesterday", "2001-02-30", "10000-01-01", "9999-12-31T23:59:59-01:00", "1" * 400],
             "x": ["warm", "1e999", "é" * 300], "y": ["warm", "inf"], "y_pred": ["", "warm", "inf", "-Infinity"]}
BAD_LINES = ["a,b", '"', 'x"y', "a\x00b", "\udcff\udcfe", "," * 5000, "x" * (5 << 20)]
BAD_JSON_LINES = ["{", "[]", "1", '{"row_id": "\x00"}', '{"row_id": "\udcff"}', '{"row_id": 1, "row_id": 2}', '{"x": {}}', "[" * 5000,
                  '{"row_id": ' + '"y"' * 2 + "}", '{"x": "' + "x" * (5 << 20) + '"}']


def rows_sent_wrongly(row):
    """(what, media type, body, pointer): one line of good rows is wrong."""
    good = [{**row, "row_id": row["row_id"] + str(i)} for i in range(2)]
    head, names = ",".join(row), list(row)
    csv = [",".join(r.values()) for r in good]
    ndjson = [json.dumps(r) for r in good]
    for name in names:
        for bad in BAD_CELLS[name]:
            if bad == "" and name not in ("row_id", "date" if "y_pred" in row else "y", "y_pred"):
                continue
            changed = {**row, name: bad}
            yield f"{name}={bad[:20]}", "text/csv", [head, *csv, ",".join(changed.values())], f"/4/{name}"
            yield f"{name}={bad[:20]}", "application/x-ndjson", [*ndjson, json.dumps(changed)], f"/3/{name}"
        for bad in ([], {}):
            yield f"{name}={bad}", "application/x-ndjson", [*ndjson, json.dumps({**row, name: bad})], f"/3/{name}"
        if name not in ("x", "y" if "y_pred" in row else "date"):
            rest = [n for n in names if n != name]
            yield f"no {name}", "text/csv", [",".join(rest), ",".join(row[n] for n in rest)], f"/1/{name}"
            yield f"no {name}", "application/x-ndjson", [*ndjson, json.dumps({n: row[n] for n in rest})], f"/3/{name}"
        yield f"{name} twice", "text/csv", [f"{head},{name}", *csv], f"/1/{name}"
    for bad in BAD_LINES:
        yield bad[:20], "text/csv", [head, *csv, bad], "/4"
    for bad in BAD_JSON_LINES:
        yield bad[:20], "application/x-ndjson", [*ndjson, bad], "/3"


@pytest.mark.parametrize("op,row", [("observations", ROW), ("labels", LABEL)])
def test_rows(server, world, op, row):
    before, wrong = tables(server), []
    for what, kind, lines, place in rows_sent_wrongly(row):
        reply = world.api.post(f"{world.base}/monitors/m/{op}", "\n".join(lines).encode("utf-8", "surrogateescape"),
                               headers={"Content-Type": kind})
        if reply.status != 422 or reply.headers.get_content_type() != "application/problem+json":
            wrong.append(f"{what} as {kind}: {reply}"[:400])
        elif not (reply.json().get("errors", [{}])[0].get("pointer", "") + "/").startswith(place + "/"):
            wrong.append(f"{what} as {kind}, not {place}: {reply}"[:400])
    until(lambda: tables(server) == before, 20, message="something was written")  # the stage is emptied after the answer
    assert not wrong, f"{len(wrong)}:\n" + "\n".join(wrong[:12])


# ---- addresses --------------------------------------------------------------------------------------------------------

BAD_SEGMENTS = ["..", ".", "%2e%2e", "%2E%2E%2Fx", "a%2fb", "%00", "a%00b", "%ff", "%c0%af", "%", "%zz", "%0a", "a%0d%0aX:%20y", "*", "'", "%27%20OR%201=1--",
                "a" * 300, "a" * 5000, quote("\u202e"), quote("💥"), "$1", "\\", "A%20B"]


ADDRESSED = [o for o in operations(lambda op: any(p["in"] == "path" for p in op.get("parameters", [])))]


@pytest.mark.parametrize("op,method,path,doc", ADDRESSED, ids=[o[0] for o in ADDRESSED])
def test_addresses(server, world, op, method, path, doc):
    client = client_of(world, doc)
    before, wrong = tables(server), []
    body = BODIES.get(op)
    for p in (p["name"] for p in doc["parameters"] if p["in"] == "path"):
        for bad in BAD_SEGMENTS:
            if p == "path" and bad in ("*", "'", "$1", "\\", "A%20B"):
                continue
            url = fill(world, path, **{p: bad})
            kw = {"headers": {"If-Match": '"999999"'}}
            if body is not None:
                kw = {"body": encode(body), "headers": {"Content-Type": "application/json", **kw["headers"]}}
            elif "requestBody" in doc:
                kw = {"body": b"x", "headers": {"Content-Type": "application/octet-stream"}}
            reply = client.request(method, url, **kw)
            if not 400 <= reply.status < 500 or reply.headers.get_content_type() != "application/problem+json":
                wrong.append(f"{method} {url[:120]}: {reply}")
            elif reply.status == 422 and misplaced(reply, BODIES.get(op), [p["name"] for p in doc["parameters"]]):
                wrong.append(f"{method} {url[:120]}: {misplaced(reply, BODIES.get(op), [p['name'] for p in doc['parameters']])}")
    assert tables(server) == before, "something was written"
    assert not wrong, f"{len(wrong)}:\n" + "\n".join(wrong[:10])


QUERIED = [o for o in operations(lambda op: any(p["in"] == "query" for p in op.get("parameters", [])))]


def bad_queries(p):
    name, schema = p["name"], p["schema"]
    types = types_of(schema)
    yield f"{name}=%00"
    yield f"{name}=%ff%fe"
    yield f"{name}=1&{name}=1"
    if name == "cursor":
        for bad in ("nonsense", "7", "7A", "00", "ff", "7a7a"):  # no hex, half a byte, capitals, a NUL, no UTF-8, "zz"
            yield f"cursor={bad}"
    if not set(types) & {"string", "array"} or "enum" in schema or "pattern" in schema or "format" in schema:
        yield f"{name}=No%20Such"
        yield f"{name}="
    if "integer" in types or "number" in types:
        yield f"{name}=1e999"
        yield f"{name}=99999999999999999999999"
        if schema.get("maximum", HUGE) < HUGE:
            yield f"{name}={schema['maximum'] + 1}"
        if "minimum" in schema:
            yield f"{name}={schema['minimum'] - 1}"
    if schema.get("maxLength", 1 << 30) < 7000:
        yield f"{name}={'a' * (schema['maxLength'] + 1)}"


@pytest.mark.parametrize("op,method,path,doc", QUERIED, ids=[o[0] for o in QUERIED])
def test_queries(server, world, op, method, path, doc):
    client, url = client_of(world, doc), fill(world, path)
    client = client.with_token(client.token)
    client.timeout = 5
    before, wrong = tables(server), []
    known = [p for p in doc["parameters"] if p["in"] == "query"]
    needed = "&".join(f"{p['name']}=1" for p in known if p.get("required"))
    for p in [*known, None]:
        for q in bad_queries(p) if p else ["no_such_parameter=1", "&&=", "%00=1", "a=%zz"]:
            rest = "&".join(n for n in needed.split("&") if p is None or not n.startswith(p["name"] + "="))
            kw = {"body": b"x", "headers": {"Content-Type": "text/csv"}} if "requestBody" in doc else {}
            try:
                reply = client.request(method, f"{url}?{q}{'&' + rest if rest else ''}", **kw)
            except TimeoutError:  # a stream that goes on
                wrong.append(f"{q[:80]}: taken")
                continue
            fine = reply.status in (400, 422) and reply.headers.get_content_type() == "application/problem+json"
            if fine and reply.status == 422 and p:
                fine = any((e["in"], e["parameter"]) == ("query", p["name"]) for e in reply.json().get("errors", []))
            if not fine:
                wrong.append(f"{q[:80]}: {reply}")
    assert tables(server) == before, "something was written"
    assert not wrong, f"{len(wrong)}:\n" + "\n".join(wrong[:12])


PAGED = [o for o in QUERIED if any(p["name"] == "cursor" for p in o[3]["parameters"])]


def test_cursors(server, world):
    """A list takes the cursors of its own pages and no others, also not those of another project's list of the same kind."""
    api = world.api
    for name in ("a", "b"):
        api.post(f"{world.base}/datasets", {"name": name}, expect=201)
        api.put(f"{world.base}/pipelines/{name}", {"source": pipeline(name, STEPS)}, expect=200)
        api.put(f"{world.base}/monitors/{name}", world.monitor_source.replace("name: m}", f"name: {name}}}").encode(),
                headers={"Content-Type": "application/yaml"}, expect=200)
        api.put(f"{world.base}/models/{world.model}/aliases/{name}", {"version": 1}, expect=200)
    paths, lists = {op: fill(world, path) for op, _, path, _ in PAGED}, {}
    assert len(paths) >= 17
    for op, url in paths.items():
        page = api.get(f"{url}?limit=1", expect=200).json()
        if "next_cursor" in page:
            lists[op] = page
    wanted = {"datasets.list", "pipelines.list", "monitors.list", "aliases.history", "windows.list", "decisions.list", "runs.list"}
    assert wanted <= set(lists), lists.keys()
    wrong = []
    for op, url in paths.items():
        bad = ["7a7a", "00000000", "00000000" + "7a7a", "0" * 2056, *(page["next_cursor"] for o, page in lists.items() if o != op)]
        if op in lists:
            mine = lists[op]["next_cursor"]
            bad += [mine[:-2], mine + "61", mine[8:], ("1" if mine[0] == "0" else "0") + mine[1:]]
            second = api.get(f"{url}?limit=1&cursor={mine}", expect=200).json()
            assert second["items"] and second["items"] != lists[op]["items"], op
        for cursor in bad:
            reply = api.get(f"{url}?cursor={cursor}")
            if reply.status != 422 or reply.json()["errors"][0]["pointer"] != "/cursor":
                wrong.append(f"{op}: {cursor}: {reply}")
    assert not wrong, f"{len(wrong)}:\n" + "\n".join(wrong[:12])
    api.post("/api/v1/projects", {"name": "other"}, expect=201)
    api.get(f"/api/v1/projects/other/datasets?cursor={lists['datasets.list']['next_cursor']}", expect=422)


def test_the_longest_path_is_a_page_of_its_own(server, world):
    files = [{**FILE, "path": "/".join([c * 250] * 4) + "/" + "e" * 20, "digest": world.digest, "size": len(csv(5))} for c in "ab"]
    world.api.post(f"{world.base}/datasets", {"name": "long"}, expect=201)
    world.api.post(f"{world.base}/datasets/long/versions", {"files": files}, expect=201)
    url = f"{world.base}/datasets/long/versions/1/files?limit=1"
    first = world.api.get(url, expect=200).json()
    second = world.api.get(f"{url}&cursor={first['next_cursor']}", expect=200).json()
    assert [f["path"] for f in first["items"] + second["items"]] == [f["path"] for f in files] and "next_cursor" not in second


def test_the_server_is_well(server, world):
    """After all that: no crash, no internal error in its log, and it works."""
    assert server.proc.poll() is None
    assert "code=internal" not in server.log() and "request failed" not in server.log()
    assert world.api.get(f"{world.base}", expect=200)
