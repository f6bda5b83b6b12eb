"""Who may do what: every operation of the contract × every identity × {own, another project's, no project's} object.

RULES is the reviewed statement of what is allowed; nothing here is taken from the server's own tables but the list of
operations with the permission that each names. An operation whose permission is not in RULES fails, so a new kind of
permission needs a line here; an operation that the server does not answer fails, too.

An identity that passes must get past the gate, no more: requests that would change something carry a query parameter that
no operation knows, so that they end as 422 behind the gate. Reads are done in full.
"""
import json

import pytest

from harness import ROOT, Second, query, until
from stack import Wire, frame, submit
from world import World

NOBODY = ("none", "malformed", "unknown", "wrong-secret", "expired", "revoked")
ALL = ("viewer", "ci", "operator", "owner", "admin", "stranger", "disabled", "ci-token", "job", "job-ended", "worker-1", "worker-2",
       "join", "join-used", "bootstrap-used") + NOBODY
PEOPLE = ("viewer", "ci", "operator", "owner", "admin", "stranger", "ci-token")

# Permission → identities that may, on an object of the project in which they have the role of their name.
RULES = {
    "public": ALL,
    "self": PEOPLE,
    "read": ("viewer", "ci", "operator", "owner", "admin", "ci-token"),
    "submit": ("ci", "operator", "owner", "admin", "ci-token"),
    "operate": ("operator", "owner", "admin"),
    "own": ("owner", "admin"),
    "admin": ("admin",),
    "worker": ("worker-1", "worker-2"),
    "join": ("join",),
    "bootstrap": (),
}
MLFLOW = ("track_read", "track_write")  # their own test, below
# Without a credential that lives: 401. "stranger" is a member of another project only.
DEAD = NOBODY + ("disabled", "job-ended", "join-used", "bootstrap-used")
PROJECT_OBJECTS = ("{project}", "{run}", "{step}", "{attempt}", "{tracking}", "{decision}")
NOWHERE = {"project": "no-such-project", "run": "run_00000000000000000000000000", "step": "st_00000000000000000000000000",
           "attempt": "at_00000000000000000000000000", "tracking": "0" * 32, "decision": "dec_00000000000000000000000000"}
STREAMS = ("events.stream",)


def operations():
    """(id, method, path, permission, takes a body) of everything in the contract."""
    doc = json.loads((ROOT / "api/openapi.json").read_text())
    for path, methods in doc["paths"].items():
        for method, op in methods.items():
            if "operationId" in op:
                yield op["operationId"], method.upper(), path, op["x-permission"], "requestBody" in op


OPERATIONS = list(operations())


@pytest.fixture(scope="module")
def world(server):
    api = server.admin()
    one = Wire(server, "worker-1")
    a = World(server, "alpha", "model-a").work(one)
    b = World(server, "beta", "model-b").work(one)
    two = Wire(server, "worker-2", pool="other")
    clients = {"admin": api, "worker-1": one.api, "worker-2": two.api}
    for role in ("viewer", "ci", "operator", "owner"):
        clients[role] = server.person(role, "alpha", role)
    clients["stranger"] = server.person("stranger", "beta", "owner")
    clients["disabled"] = server.person("disabled", "alpha", "owner")
    api.delete("/api/v1/principals/disabled", expect=204)

    def token(**kw):
        return clients["owner"].post("/api/v1/tokens", {"name": "t", **kw}, expect=201).json()
    clients["ci-token"] = server.client(token(kind="ci", project="alpha", role="ci")["token"])
    expired = token()
    server.sql(f"UPDATE token SET expires_at = now() - interval '1 second' WHERE id = '{expired['id']}'")
    clients["expired"] = server.client(expired["token"])
    revoked = token()
    server.client(revoked["token"]).get("/api/v1/auth/self", expect=200)
    clients["owner"].delete(f"/api/v1/tokens/{revoked['id']}", expect=204)
    clients["revoked"] = server.client(revoked["token"])
    clients["none"] = server.client()
    clients["malformed"] = server.client("tdm_pat_nonsense")
    clients["unknown"] = server.client("tdm_pat_aaaaaaaaaaaa_" + "a" * 49)
    secret = token()["token"]
    clients["wrong-secret"] = server.client(secret[:-10] + ("b" if secret[-10] != "b" else "c") + secret[-9:])
    clients["job"] = server.client(a.job["token"])
    clients["job-ended"] = server.client(a.ended_job["token"])
    clients["join-used"] = server.client(one.join_token)
    clients["join"] = server.client(api.post("/api/v1/workers/join-tokens", {}, expect=201).json()["token"])
    clients["bootstrap-used"] = server.client(server.bootstrap)
    assert set(clients) == set(ALL)
    yield {"clients": clients, "own": a, "other": b, "one": one, "two": two}
    for c in clients.values():
        c.close()


def fill(path, names, **instead):
    for name, value in {**names, "token": "aaaaaaaaaaaa", "principal": "viewer", **instead}.items():
        path = path.replace("{" + name + "}", value)
    assert "{" not in path, path
    return path


def gate_only(method, op):
    return method != "GET" or op in STREAMS


def ask(client, op, method, path, takes_body):
    kw = {}
    if gate_only(method, op):
        path += "?not_a_parameter=1"
        if takes_body:
            kw = {"body": b"{}", "headers": {"Content-Type": "application/json"}}
    return client.request(method, path, **kw)


def expected(permission, who, target, of_project):
    """passed, or a status that the gate answers."""
    if permission == "public":
        return "passed"
    if who in DEAD:
        return 401
    kinds = RULES[permission] if permission in ("worker", "join", "bootstrap", "admin") else PEOPLE
    if who not in kinds:
        return 403
    if not of_project or permission == "worker":
        return "passed"
    if target == "none" or (target == "other" and who not in ("admin", "stranger")) or (target == "own" and who == "stranger"):
        return 404
    if target == "other":
        return "passed"  # the administrator, and the stranger, who owns it
    return "passed" if who in RULES[permission] else 403


def strip(reply):
    """A refusal without what must differ: request id and the names that were asked for."""
    body = reply.json()
    for key in ("request_id", "instance"):
        body.pop(key, None)
    return reply.status, body, {k.lower() for k in reply.headers.keys()}


@pytest.mark.parametrize("op,method,path,permission,takes_body", [o for o in OPERATIONS if o[3] not in MLFLOW],
                         ids=[o[0] for o in OPERATIONS if o[3] not in MLFLOW])
def test_every_operation(world, op, method, path, permission, takes_body):
    assert permission in RULES, f"the permission {permission} has no rule"
    of_project = any(p in path for p in PROJECT_OBJECTS)
    names = {"own": world["own"].names(op), "other": world["other"].names(op), "none": {**world["own"].names(op), **NOWHERE}}
    wrong = []
    for who, client in world["clients"].items():
        replies = {}
        for target in ("own", "other", "none") if of_project else ("own",):
            reply = replies[target] = ask(client, op, method, fill(path, names[target]), takes_body)
            want = expected(permission, who, target, of_project)
            if want == "passed":
                # Behind the gate: done, or refused for what was asked, by an answer that the gate never gives.
                fine = (200, 204, 302) if not gate_only(method, op) else (422,)
                if permission == "public":
                    fine = (200, 201, 204, 401, 404, 422)
                elif permission == "worker" and method == "GET":
                    fine = (422,)  # its epoch is missing
                ok = reply.status in fine
            else:
                ok = reply.status == want
            if not ok:
                wrong.append(f"{who} on {target}: {reply.status} instead of {want}: {reply.body[:200]!r}")
        if of_project and permission != "worker" and who in ("viewer", "ci", "operator", "owner", "ci-token"):
            if strip(replies["other"]) != strip(replies["none"]):
                wrong.append(f"{who}: what it may not see differs from what is not there:"
                             f" {replies['other']} {replies['none']}")
    assert not wrong, f"{len(wrong)} answers:\n" + "\n".join(wrong[:12])


def test_the_table_has_no_operation_twice_and_all_are_answered(server):
    """What the document lists is served: an unbound operation is answered as an unknown path."""
    assert len({o[0] for o in OPERATIONS}) == len(OPERATIONS)
    nobody = server.client()
    missing = []
    for op, method, path, permission, _ in OPERATIONS:
        reply = nobody.request(method, fill(path, {k: "x" for k in (
            "project", "dataset", "number", "digest", "pipeline", "run", "step", "attempt", "tracking", "model", "alias",
            "monitor", "window", "decision", "kind", "output", "worker", "pool", "path")}) + "?not_a_parameter=1")
        if permission != "public" and reply.status != 401:
            missing.append(f"{op}: {method} {path}: {reply.status}")
    assert not missing, "\n".join(missing)


# ---- MLflow: the object stands in the query or the body, and the answers are MLflow's ---------------------------------

def flow_requests(w):
    """operation → (query or body) about an object of w; every request is valid and harmless."""
    run, exp = w["run"], w["experiment"]
    return {
        "mlflow.experiments.create": {"name": "p"},  # there is one
        "mlflow.experiments.get": {"experiment_id": exp},
        "mlflow.experiments.get_by_name": {"experiment_name": "no such experiment"},
        "mlflow.runs.create": {"experiment_id": exp},
        "mlflow.runs.get": {"run_id": run},
        "mlflow.runs.update": {"run_id": run, "run_name": "n"},
        "mlflow.runs.log_metric": {"run_id": run, "key": "k", "value": 1, "timestamp": 1, "step": 0},
        "mlflow.runs.log_parameter": {"run_id": run, "key": "k", "value": "v"},
        "mlflow.runs.set_tag": {"run_id": run, "key": "k", "value": "v"},
        "mlflow.runs.log_batch": {"run_id": run, "params": [{"key": "k", "value": "v"}]},
        "mlflow.metrics.get_history": {"run_id": run, "metric_key": "k"},
        "mlflow.artifacts.list": {"run_id": run},
        "mlflow.artifacts.list_proxy": {"path": f"{exp}/{run}/artifacts"},
    }


# Of these operations the object is the project that a header names.
BY_HEADER = ("mlflow.experiments.create", "mlflow.experiments.get_by_name")


def flow_expected(permission, who, target):
    if who in DEAD:
        return {401}
    if who not in PEOPLE + ("job",):
        return {403}
    if target == "none" or (target == "other" and who not in ("admin", "stranger")) or (target == "own" and who == "stranger"):
        return {404}
    if permission == "track_read" or target == "other":
        return "passed"
    return {403} if who == "viewer" else "passed"


def flow_ask(client, op, method, path, objects):
    if "{path}" in path:
        url = path.replace("{path}", f"{objects['experiment']}/{objects['run']}/artifacts/f.csv")
        return client.request(method, url, *([b"1\n"] if method == "PUT" else []))
    fields, head = flow_requests(objects)[op], {"X-Tidemill-Project": objects["project"]} if op in BY_HEADER else {}
    if method == "GET":
        return client.get(f"{path}?{query(**fields)}", headers=head)
    return client.request(method, path, fields, headers=head)


@pytest.mark.parametrize("op,method,path,permission", [o[:4] for o in OPERATIONS if o[3] in MLFLOW],
                         ids=[o[0] for o in OPERATIONS if o[3] in MLFLOW])
def test_mlflow(world, op, method, path, permission):
    own, other = world["own"], world["other"]
    objects = {"own": {"project": own.project, "run": own.tracking, "experiment": own.experiment},
               "other": {"project": other.project, "run": other.tracking, "experiment": other.experiment},
               "none": {"project": "no-such-project", "run": "0" * 32, "experiment": "999999"}}
    wrong = []
    for who, client in world["clients"].items():
        if op in BY_HEADER and who in ("job", "ci-token"):
            continue  # their project is their token's; the header says nothing
        replies = {}
        for target, names in objects.items():
            reply = replies[target] = flow_ask(client, op, method, path, names)
            want = flow_expected(permission, who, target)
            if op in BY_HEADER:
                # No such experiment, or it is there; a project that is not seen is "say which project".
                ok = reply.status in ({404, 400} if want in ("passed", {404}) else want)
                if want == "passed":
                    ok = ok and "Say which project" not in reply.body.decode()
                elif want == {404}:
                    ok = ok and "Say which project" in reply.body.decode()
            else:
                ok = reply.status == 200 if want == "passed" else reply.status in want
            if not ok:
                wrong.append(f"{who} on {target}: {reply.status} instead of {want}: {reply.body[:200]!r}")
        if who in ("viewer", "ci", "owner", "job"):
            a, b = (replies[t].body.decode() for t in ("other", "none"))
            for target, text in (("other", "a"), ("none", "b")):
                for value in objects[target].values():
                    if text == "a":
                        a = a.replace(value, "X")
                    else:
                        b = b.replace(value, "X")
            cut = [{k: v for k, v in json.loads(t).items() if k != "request_id"} for t in (a, b)]
            if cut[0] != cut[1]:
                wrong.append(f"{who}: what it may not see differs from what is not there: {cut}")
    assert not wrong, f"{len(wrong)} answers:\n" + "\n".join(wrong[:12])


def test_a_job_writes_to_its_own_runs_only(world, server):
    """Its step's tracking run and the children that it makes; not to another run of the project, nor to a finished step's."""
    a = world["own"]
    job = world["clients"]["job"]
    write = {"key": "from-job", "value": "1"}
    m = "/api/2.0/mlflow/runs"
    job.post(f"{m}/log-parameter", {"run_id": a.tracking, **write}, expect=200)
    child = job.post(f"{m}/create", {"experiment_id": a.experiment}, expect=200).json()["run"]["info"]["run_id"]
    job.post(f"{m}/log-parameter", {"run_id": child, **write}, expect=200)
    ours = world["clients"]["owner"].post(f"{m}/create", {"experiment_id": a.experiment}, expect=200).json()["run"]["info"]["run_id"]
    for run in (ours, a.ended_job["tracking_run"]):
        assert job.get(f"{m}/get?run_id={run}").status == 200
        assert job.post(f"{m}/log-parameter", {"run_id": run, **write}).status == 403
        assert job.post(f"{m}/update", {"run_id": run, "status": "FINISHED"}).status == 403


# ---- what stands behind the gate ------------------------------------------------------------------------------------

def test_a_worker_reaches_its_own_attempts_only(world):
    attempt, epoch, digest = world["own"].attempt, world["own"].epoch, world["own"].digest
    base = f"/api/v1/workers/self/attempts/{attempt}"
    nowhere = f"/api/v1/workers/self/attempts/{NOWHERE['attempt']}"
    two = world["two"].api
    requests = [("GET", f"/blobs/{digest}?epoch={epoch}", None), ("PUT", f"/blobs/{digest}?epoch={epoch}", b"x"),
                ("PUT", f"/log?epoch={epoch}&offset=0", frame(b"x")),
                ("POST", "/outputs", {"epoch": epoch, "outputs": []}),
                ("POST", "/log/final", {"epoch": epoch, "length": 0, "digest": "0" * 64})]
    for method, path, body in requests:
        replies = [two.request(method, where + path, body) for where in (base, nowhere)]
        assert [r.status for r in replies] == [409, 409], f"{method} {path}: {replies}"
        assert strip(replies[0]) == strip(replies[1])
        stale = (path.replace(f"epoch={epoch}", f"epoch={epoch + 1000}"),
                 {**body, "epoch": epoch + 1000} if isinstance(body, dict) else body)
        reply = world["one"].api.request(method, base + stale[0], stale[1])
        assert reply.status == 409, f"a wrong epoch: {method} {path}: {reply}"


def test_a_worker_says_nothing_about_the_attempts_of_another(world, server):
    """worker-2 claims worker-1's attempt: it learns that it is superseded, and nothing changes."""
    a = world["own"]
    two = world["two"]
    two.states[a.attempt] = {"id": a.attempt, "epoch": a.epoch, "state": "failed", "exit_code": 7, "reason": "exit_code"}
    reply = two.sync()
    assert a.attempt in reply.get("forget", []) or any(c["attempt"] == a.attempt for c in reply.get("cancel", []))
    two.states.pop(a.attempt, None)
    assert server.sql(f"SELECT state FROM attempt WHERE id = '{a.attempt}'") == ["running"]


def test_tokens_belong_to_their_principal(world, server):
    clients = world["clients"]
    made = clients["viewer"].post("/api/v1/tokens", {"name": "mine"}, expect=201).json()
    foreign = clients["owner"].delete(f"/api/v1/tokens/{made['id']}")
    unknown = clients["owner"].delete("/api/v1/tokens/aaaaaaaaaaaa")
    assert foreign.status == unknown.status == 404 and strip(foreign) == strip(unknown)
    assert made["id"] not in {t["id"] for t in clients["owner"].get("/api/v1/tokens?limit=500", expect=200).json()["items"]}
    server.client(made["token"]).get("/api/v1/auth/self", expect=200)
    clients["admin"].delete(f"/api/v1/tokens/{made['id']}", expect=204)
    assert server.client(made["token"]).get("/api/v1/auth/self").status == 401


def test_a_token_can_do_no_more_than_its_maker(world, server):
    clients = world["clients"]
    as_owner = clients["viewer"].post("/api/v1/tokens", {"name": "more", "role": "owner"}, expect=(201, 403, 422))
    if as_owner.status == 201:
        raised = server.client(as_owner.json()["token"])
        assert raised.post("/api/v1/projects/alpha/runs", {"pipeline": "p"}).status == 403
    limited = server.client(clients["owner"].post("/api/v1/tokens", {"name": "less", "role": "viewer"}, expect=201).json()["token"])
    assert limited.post("/api/v1/projects/alpha/runs", {"pipeline": "p"}).status == 403
    again = limited.post("/api/v1/tokens", {"name": "escape", "role": "owner"}, expect=(201, 403, 422))
    if again.status == 201:
        assert server.client(again.json()["token"]).post("/api/v1/projects/alpha/runs", {"pipeline": "p"}).status == 403
    ci = clients["ci-token"].post("/api/v1/tokens", {"name": "escape"}, expect=(201, 403, 422))
    if ci.status == 201:
        freed = server.client(ci.json()["token"])
        assert freed.put("/api/v1/projects/alpha/pipelines/p", {"source": world["own"].source}).status in (403, 404)
    admin_limited = server.client(clients["admin"].post(
        "/api/v1/tokens", {"name": "one project", "project": "alpha", "role": "viewer"}, expect=201).json()["token"])
    assert admin_limited.get("/api/v1/projects/beta").status == 404
    assert admin_limited.post("/api/v1/principals", {"name": "by-limited"}).status == 403
    assert admin_limited.delete("/api/v1/projects/alpha").status in (403, 428)
    escaped = admin_limited.post("/api/v1/tokens", {"name": "escape"}, expect=(201, 403, 422))
    if escaped.status == 201:
        assert server.client(escaped.json()["token"]).post("/api/v1/principals", {"name": "by-escaped"}).status == 403


def test_lists_show_what_the_caller_may_see(world):
    clients = world["clients"]
    def names(who):
        return {p["name"] for p in clients[who].get("/api/v1/projects?limit=500", expect=200).json()["items"]}
    assert names("viewer") == {"alpha"} and names("stranger") == {"beta"} and names("ci-token") == {"alpha"}
    assert names("admin") >= {"alpha", "beta"}


def test_other_methods_open_nothing(world):
    """HEAD is GET, OPTIONS and method overrides are nothing."""
    clients = world["clients"]
    base = "/api/v1/projects/alpha"
    for who in ("none", "stranger", "viewer", "worker-1", "job"):
        assert clients[who].request("HEAD", base).status == clients[who].get(base).status
        assert clients[who].request("OPTIONS", base).status in (401, 404, 405)
        assert clients[who].request("TRACE", base).status in (401, 404, 405, 501)
    for header in ("X-HTTP-Method-Override", "X-Method-Override", "X-HTTP-Method"):
        assert clients["owner"].get(f"{base}/datasets/d", headers={header: "DELETE"}).status == 200
    assert clients["admin"].get(f"{base}/datasets/d", expect=200)


def test_a_member_that_is_removed_is_out_at_once(world, server):
    api = world["clients"]["admin"]
    gone = server.person("gone", "alpha", "owner")
    gone.get("/api/v1/projects/alpha", expect=200)
    api.delete("/api/v1/projects/alpha/members/gone", expect=204)
    assert gone.get("/api/v1/projects/alpha").status == 404
    api.put("/api/v1/projects/alpha/members/gone", {"role": "viewer"}, expect=200)
    assert gone.put("/api/v1/projects/alpha/pipelines/p", {"source": world["own"].source}).status == 403


def test_a_worker_that_is_removed_is_out(server):
    third = Wire(server, "worker-3")
    third.sync()
    server.admin().delete(f"/api/v1/workers/{third.id}", expect=204)
    until(lambda: third.api.post("/api/v1/workers/self/sync", third.message()).status == 401, 10)


def test_what_another_server_changes_is_heard(world, server):
    """What this server remembers of workers' tokens lives for a minute, of roles for five seconds: only the outbox ends it
    sooner."""
    fourth = Wire(server, "worker-4")
    friend = server.person("friend", "alpha", "viewer")
    with Second(server) as second:
        other = second.admin()
        fourth.sync()
        friend.get("/api/v1/projects/alpha", expect=200)
        other.delete("/api/v1/projects/alpha/members/friend", expect=204)
        other.delete(f"/api/v1/workers/{fourth.id}", expect=204)
        until(lambda: friend.get("/api/v1/projects/alpha").status == 404, 4)
        until(lambda: fourth.api.post("/api/v1/workers/self/sync", fourth.message()).status == 401, 4)


def test_a_job_token_ends_with_its_attempt(world, server):
    """At the latest five seconds after, when the server's memory of tokens runs out."""
    run = submit(server.admin(), "alpha", world["own"].source)["id"]
    job = world["one"].take(run)
    client = server.client(job["token"])
    assert client.get("/api/v1/auth/self").status == 403  # it lives, and this is not for it
    world["one"].outputs(job, {"out": [("out/a", b"1")]})
    world["one"].finish(job["attempt"])
    until(lambda: client.get("/api/v1/auth/self").status == 401, 10)
