"""MLflow's REST API by raw HTTP: wire rules, semantics of runs, metrics, params and tags, limits, artifacts, permissions."""
import hashlib
import json
import os
import threading
import time

import pytest

from harness import query, quote

M = "/api/2.0/mlflow"
A = "/api/2.0/mlflow-artifacts/artifacts"


class Flow:
    """Calls with the project in a header."""

    def __init__(self, client, project=None):
        self.client, self.head = client, {"X-Tidemill-Project": project} if project else {}

    def post(self, path, body=None, expect=200, headers=None):
        reply = self.client.post(M + path, {} if body is None else body, headers={**self.head, **(headers or {})})
        assert reply.status == expect, f"{path} {body}: {reply}"
        return reply.json()

    def get(self, url, expect=200, **args):
        reply = self.client.get(f"{M}{url}?{query(**args)}", headers=self.head)
        assert reply.status == expect, f"{url} {args}: {reply}"
        return reply.json()

    def error(self, path, body, status, code, text=""):
        got = self.post(path, body, expect=status)
        assert got["error_code"] == code and text in got["message"], got
        assert set(got) == {"error_code", "message"}

    def run(self, **more):
        return self.post("/runs/create", more)["run"]["info"]["run_id"]

    def read(self, run):
        return self.get("/runs/get", run_id=run)["run"]


def pairs(listed):
    return {p["key"]: p["value"] for p in listed}


@pytest.fixture(scope="module")
def flow(api, project):
    return Flow(api, project)


@pytest.fixture
def run(flow):
    return flow.run()


def now():
    return int(time.time() * 1000)


# ---- experiments ----

def test_experiments(flow, server):
    made = flow.post("/experiments/create", {"name": "exp", "tags": [{"key": "a", "value": "b"}]})
    assert isinstance(made["experiment_id"], str)
    e = flow.get("/experiments/get", experiment_id=made["experiment_id"])["experiment"]
    assert e["name"] == "exp" and e["lifecycle_stage"] == "active" and e["tags"] == [{"key": "a", "value": "b"}]
    assert e["artifact_location"] == f"mlflow-artifacts:/{made['experiment_id']}"
    assert abs(e["creation_time"] - now()) < 60_000
    assert flow.get("/experiments/get-by-name", experiment_name="exp")["experiment"] == e
    flow.error("/experiments/create", {"name": "exp"}, 400, "RESOURCE_ALREADY_EXISTS", "already exists")
    flow.error("/experiments/create", {}, 400, "INVALID_PARAMETER_VALUE", "Missing value for required parameter 'name'")
    flow.error("/experiments/create", {"name": "x" * 501}, 400, "INVALID_PARAMETER_VALUE", "maximum length of 500")
    for bad in ("/tmp/x", "file:///tmp", "relative", "mlflow-artifacts:/a/../b", "s3://b/x#y", "s3://b/x?a=../b"):
        flow.error("/experiments/create", {"name": f"loc{bad}", "artifact_location": bad}, 400, "INVALID_PARAMETER_VALUE")
    assert flow.get("/experiments/get", expect=404, experiment_id="999999")["error_code"] == "RESOURCE_DOES_NOT_EXIST"
    assert flow.get("/experiments/get", expect=404, experiment_id="abc")["error_code"] == "RESOURCE_DOES_NOT_EXIST"
    missing = flow.get("/experiments/get-by-name", expect=404, experiment_name="none")
    assert missing["message"] == "Could not find experiment with name 'none'"
    default = flow.get("/experiments/get", experiment_id="0")["experiment"]
    assert default["name"] == "Default" and default["artifact_location"].startswith("mlflow-artifacts:/")
    flow.get("/experiments/get", expect=400)


def test_racing_creators_of_an_experiment(server, project):
    """One makes it, the others are told so, and nobody sees a 500."""
    seen = []

    def one():
        f = Flow(server.admin(), project)
        seen.append(f.client.post(f"{M}/experiments/create", {"name": "race"}, headers=f.head))
    threads = [threading.Thread(target=one) for _ in range(10)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(r.status for r in seen) == [200] + [400] * 9
    assert {r.json()["error_code"] for r in seen if r.status == 400} == {"RESOURCE_ALREADY_EXISTS"}


def test_without_a_project(api):
    reply = api.post(f"{M}/experiments/create", {"name": "nowhere"})
    assert reply.status == 400 and "X-Tidemill-Project" in reply.json()["message"]
    other = api.post(f"{M}/experiments/create", {"name": "nowhere"}, headers={"X-Tidemill-Project": "no-such"})
    assert other.status == 400
    assert "There is no project no-such that this token opens" in other.json()["message"]
    api.post("/api/v1/projects", {"name": "default"}, expect=201)
    assert api.post(f"{M}/experiments/create", {"name": "nowhere"}).status == 200


# ---- runs ----

def test_run_is_created_read_and_updated(flow):
    info = flow.post("/runs/create", {"experiment_id": "0", "start_time": 1234, "user_id": "ann", "run_name": "first",
                                      "tags": [{"key": "t", "value": "1"}]})["run"]["info"]
    run = info["run_id"]
    assert len(run) == 32 and run == run.lower() and info["run_uuid"] == run
    assert info["status"] == "RUNNING" and info["start_time"] == 1234 and "end_time" not in info
    assert info["user_id"] == "ann" and info["lifecycle_stage"] == "active" and info["run_name"] == "first"
    assert info["artifact_uri"] == f"mlflow-artifacts:/{info['experiment_id']}/{run}/artifacts"
    data = flow.read(run)["data"]
    assert pairs(data["tags"]) == {"t": "1", "mlflow.runName": "first"}
    assert "metrics" not in data and "params" not in data
    updated = flow.post("/runs/update", {"run_id": run, "status": "FINISHED", "end_time": 5678, "run_name": "second"})
    assert updated["run_info"]["status"] == "FINISHED" and updated["run_info"]["end_time"] == 5678
    assert pairs(flow.read(run)["data"]["tags"])["mlflow.runName"] == "second"
    assert flow.post("/runs/update", {"run_id": run, "status": 1})["run_info"]["status"] == "RUNNING"
    assert flow.get("/runs/get", run_uuid=run)["run"]["info"]["run_name"] == "second"
    flow.post("/runs/set-tag", {"run_id": run, "key": "mlflow.runName", "value": "third"})
    assert flow.read(run)["info"]["run_name"] == "third"


def test_run_names(flow):
    assert flow.post("/runs/create", {"tags": [{"key": "mlflow.runName", "value": "by tag"}]})["run"]["info"]["run_name"] == "by tag"
    assert flow.post("/runs/create", {})["run"]["info"]["run_name"].count("-") == 2
    flow.error("/runs/create", {"run_name": "a", "tags": [{"key": "mlflow.runName", "value": "b"}]}, 400,
               "INVALID_PARAMETER_VALUE", "different values")


def test_run_errors(flow, run):
    assert flow.get("/runs/get", expect=404, run_id="0" * 32)["message"] == f"Run with id={'0' * 32} not found"
    assert "run_id" in flow.get("/runs/get", expect=400)["message"]
    flow.error("/runs/update", {"run_id": run, "status": "DONE"}, 400, "INVALID_PARAMETER_VALUE",
               "Invalid value \"DONE\" for parameter 'status' supplied")
    flow.error("/runs/create", {"experiment_id": "77777"}, 404, "RESOURCE_DOES_NOT_EXIST", "No Experiment with id=77777")
    flow.error("/runs/create", {"start_time": -1}, 400, "INVALID_PARAMETER_VALUE", "start_time")
    flow.error("/runs/update", {}, 400, "INVALID_PARAMETER_VALUE", "'run_id'")


def test_writes_to_a_deleted_run(flow, run, server):
    server.sql(f"UPDATE tracking_run SET lifecycle = 'deleted' WHERE run_id = '{run}'")
    flow.error("/runs/set-tag", {"run_id": run, "key": "a", "value": "b"}, 400, "INVALID_PARAMETER_VALUE",
               f"The run {run} must be in the 'active' state. Current state is deleted.")
    assert flow.read(run)["info"]["lifecycle_stage"] == "deleted"


# ---- wire rules ----

def test_bodies(flow, run, api):
    def raw(body, **head):
        return api.request("POST", f"{M}/runs/log-parameter", body, headers=head)
    ok = json.dumps({"run_id": run, "key": "k", "value": "v", "unknown": [1], "null": None}).encode()
    assert raw(ok, **{"Content-Type": "application/json; charset=utf-8"}).status == 200
    assert raw(ok).json()["message"] == "Bad Request. Content-Type header is missing."
    assert "must be one of" in raw(ok, **{"Content-Type": "text/plain"}).json()["message"]
    bad = raw(b"{", **{"Content-Type": "application/json"})
    assert bad.status == 400 and bad.json()["error_code"] == "INVALID_PARAMETER_VALUE"
    empty = raw(b"", **{"Content-Type": "application/json"})
    assert empty.status == 400 and "Missing value for required parameter" in empty.json()["message"]
    for text in (b'{"run_id": "a\\u0000b", "key": "k"}', b'{"run_id": "\xff", "key": "k"}', b'[1]', b'"x"', b"\0"):
        assert raw(text, **{"Content-Type": "application/json"}).status == 400


def test_lenient_types(flow, run):
    """Java and R clients send 64-bit numbers as strings."""
    flow.post("/runs/log-metric", {"run_id": run, "key": "m", "value": 1, "timestamp": "12", "step": "-3"})
    m = flow.read(run)["data"]["metrics"]
    assert m == [{"key": "m", "value": 1.0, "timestamp": 12, "step": -3}]
    flow.post("/runs/log-parameter", {"run_uuid": run, "key": "p", "value": 5})
    assert pairs(flow.read(run)["data"]["params"]) == {"p": "5"}


def test_unknown_endpoints(api):
    for method in ("GET", "POST", "DELETE", "PATCH", "PUT"):
        reply = api.request(method, f"{M}/no/such", None if method == "GET" else {})
        assert reply.status == 404 and reply.json()["error_code"] == "ENDPOINT_NOT_FOUND", reply
    assert api.get(f"{M}/runs/create").json()["error_code"] == "ENDPOINT_NOT_FOUND"
    assert api.get("/api/v1/no/such").json()["code"] == "not_found"


def test_unauthenticated(server):
    reply = server.client().get(f"{M}/runs/get?run_id=x")
    assert reply.status == 401 and reply.json()["error_code"] == "UNAUTHENTICATED"
    assert "WWW-Authenticate" in reply.headers


# ---- metrics ----

def test_values(flow, run):
    values = {"nan": "NaN", "inf": "Infinity", "ninf": "-Infinity", "tiny": 5e-324, "big": 1.7976931348623157e308,
              "zero": 0, "minus": -0.5}
    for key, value in values.items():
        flow.post("/runs/log-metric", {"run_id": run, "key": key, "value": value, "timestamp": 1})
    assert pairs(flow.read(run)["data"]["metrics"]) == values
    for bad in (True, "abc", [1], {"a": 1}):
        flow.error("/runs/log-metric", {"run_id": run, "key": "x", "value": bad, "timestamp": 1}, 400,
                   "INVALID_PARAMETER_VALUE", "for parameter 'value' supplied")
    flow.error("/runs/log-metric", {"run_id": run, "key": "x", "value": None, "timestamp": 1}, 400,
               "INVALID_PARAMETER_VALUE", "Missing value for required parameter 'value'")
    for bad in (1.5, "x", -1):
        flow.error("/runs/log-metric", {"run_id": run, "key": "x", "value": 1, "timestamp": bad}, 400,
                   "INVALID_PARAMETER_VALUE", "for parameter 'timestamp' supplied")
    assert set(pairs(flow.read(run)["data"]["metrics"])) == set(values)


def test_latest_is_the_greatest_not_the_last(flow, run):
    def log(value, timestamp, step):
        flow.post("/runs/log-metric", {"run_id": run, "key": "m", "value": value, "timestamp": timestamp, "step": step})

    def latest():
        m, = flow.read(run)["data"]["metrics"]
        return m["value"], m["timestamp"], m["step"]
    log(1, 10, -5)
    assert latest() == (1.0, 10, -5)
    log(2, 10, 7)
    log(3, 99, 3)
    assert latest() == (2.0, 10, 7)
    log(1, 11, 7)
    assert latest() == (1.0, 11, 7)
    log(0, 11, 7)
    assert latest() == (1.0, 11, 7)
    log(9, 11, 7)
    assert latest() == (9.0, 11, 7)
    flow.post("/runs/log-batch", {"run_id": run, "metrics": [
        {"key": "m", "value": v, "timestamp": 20, "step": s} for v, s in ((5, 8), (6, 10), (7, 9))]})
    assert latest() == (6.0, 20, 10)


def test_exact_duplicates_are_one_point(flow, run):
    point = {"key": "m", "value": "NaN", "timestamp": 5, "step": 1}
    for _ in range(3):
        flow.post("/runs/log-metric", dict(point, run_id=run))
        flow.post("/runs/log-batch", {"run_id": run, "metrics": [point, point]})
    assert flow.get("/metrics/get-history", run_id=run, metric_key="m")["metrics"] == [point]
    flow.post("/runs/log-metric", dict(point, run_id=run, value=0))
    assert len(flow.get("/metrics/get-history", run_id=run, metric_key="m")["metrics"]) == 2


def test_history_in_pages(flow, run):
    points = [{"key": "h", "value": float(i % 7), "timestamp": i // 3, "step": -i} for i in range(100)]
    flow.post("/runs/log-batch", {"run_id": run, "metrics": points})
    want = sorted(points, key=lambda p: (p["timestamp"], p["step"], p["value"]))
    assert flow.get("/metrics/get-history", run_id=run, metric_key="h")["metrics"] == want
    seen, token = [], None
    while True:
        args = {"run_id": run, "metric_key": "h", "max_results": 30, **({"page_token": token} if token else {})}
        page = flow.get("/metrics/get-history", **args)
        seen += page["metrics"]
        token = page.get("next_page_token")
        if not token:
            break
    assert seen == want
    assert flow.get("/metrics/get-history", run_id=run, metric_key="none") == {}
    assert flow.get("/metrics/get-history", run_id=run, metric_key="none", max_results=10) == {}
    for bad in ({"max_results": 0}, {"max_results": "x"}, {"page_token": "-1"}, {"page_token": "1_2_3"},
                {"page_token": "1_1_7ff8000000000000_0"}):
        flow.get("/metrics/get-history", expect=400, run_id=run, metric_key="h", **bad)
    flow.get("/metrics/get-history", expect=400, run_id=run)


def test_a_long_history_is_streamed(flow, run):
    for start in range(0, 60_000, 1000):
        flow.post("/runs/log-batch", {"run_id": run, "metrics": [
            {"key": "long", "value": i, "timestamp": i, "step": i} for i in range(start, start + 1000)]})
    whole = flow.get("/metrics/get-history", run_id=run, metric_key="long")["metrics"]
    assert [p["step"] for p in whole] == list(range(60_000))


# ---- params and tags ----

def test_params_are_immutable(flow, run):
    for _ in range(2):
        flow.post("/runs/log-parameter", {"run_id": run, "key": "k", "value": "a"})
    got = flow.post("/runs/log-parameter", {"run_id": run, "key": "k", "value": "b"}, expect=400)
    assert got["message"] == ("Changing param values is not allowed. Param with key='k' was already logged with value='a' "
                              f"for run ID='{run}'. Attempted logging new value 'b'.")
    got = flow.post("/runs/log-batch", {"run_id": run, "params": [{"key": "new", "value": "1"}, {"key": "k", "value": "c"}],
                                        "metrics": [{"key": "m", "value": 1, "timestamp": 1}]}, expect=400)
    assert f"Params were already logged='[{{'key': 'k', 'old_value': 'a', 'new_value': 'c'}}]' for run ID='{run}'" in got["message"]
    data = flow.read(run)["data"]
    assert pairs(data["params"]) == {"k": "a"} and "metrics" not in data, "half of a refused batch was written"
    flow.post("/runs/log-parameter", {"run_id": run, "key": "empty", "value": ""})
    assert pairs(flow.read(run)["data"]["params"])["empty"] == ""
    flow.error("/runs/log-batch", {"run_id": run, "params": [{"key": "d", "value": "1"}, {"key": "d", "value": "1"}]}, 400,
               "INVALID_PARAMETER_VALUE", "Duplicate parameter keys have been submitted: ['d']")


def test_racing_params(server, project, run):
    """Of many different values exactly one is taken, and every other caller is told."""
    seen = []

    def one(i):
        f = Flow(server.admin(), project)
        seen.append(f.client.post(f"{M}/runs/log-batch", {"run_id": run, "params": [{"key": "race", "value": str(i)}],
                                                         "tags": [{"key": f"t{i}", "value": "x"}]}))
    threads = [threading.Thread(target=one, args=(i,)) for i in range(12)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(r.status for r in seen) == [200] + [400] * 11
    tags = pairs(Flow(server.admin(), project).read(run)["data"]["tags"])
    assert sum(k.startswith("t") for k in tags) == 1, "a refused batch has left a tag"


def test_tags(flow, run):
    for value in ("a", "b", ""):
        flow.post("/runs/set-tag", {"run_id": run, "key": "t", "value": value})
        assert pairs(flow.read(run)["data"]["tags"])["t"] == value
    flow.post("/runs/log-batch", {"run_id": run, "tags": [{"key": "t", "value": "1"}, {"key": "t", "value": "2"}]})
    assert pairs(flow.read(run)["data"]["tags"])["t"] == "2"
    note = "line\r\n\ttab \x1b[1m ünïcödé \U0001f600"
    flow.post("/runs/set-tag", {"run_id": run, "key": "mlflow.note.content", "value": note})
    assert pairs(flow.read(run)["data"]["tags"])["mlflow.note.content"] == note


BAD_KEYS = ["", "a\nb", "a;b", "a\"b", "..", "../x", "/abs", "a//b", "a/../b", "./a", ".", "a/", "x" * 251, "a(b)"]


@pytest.mark.parametrize("key", BAD_KEYS)
def test_bad_keys(flow, run, key):
    for path, body in (("/runs/log-parameter", {"value": "v"}), ("/runs/set-tag", {"value": "v"}),
                       ("/runs/log-metric", {"value": 1, "timestamp": 1})):
        flow.error(path, dict(body, run_id=run, key=key), 400, "INVALID_PARAMETER_VALUE", "key")
    flow.error("/runs/log-batch", {"run_id": run, "metrics": [{"key": "ok", "value": 1, "timestamp": 1},
                                                              {"key": key, "value": 1, "timestamp": 1}]},
               400, "INVALID_PARAMETER_VALUE", "metrics[1].name")
    assert "metrics" not in flow.read(run)["data"]


def test_good_keys_and_long_values(flow, run):
    for key in ("a b/c:d-e.f_g", "ключ", "x" * 250, "é" * 250, "a..b"):
        flow.post("/runs/log-parameter", {"run_id": run, "key": key, "value": "v"})
    flow.post("/runs/log-parameter", {"run_id": run, "key": "long", "value": "é" * 7000})
    flow.post("/runs/set-tag", {"run_id": run, "key": "long", "value": "y" * 9000})
    data = flow.read(run)["data"]
    assert pairs(data["params"])["long"] == "é" * 6000 and pairs(data["tags"])["long"] == "y" * 8000


def test_batch_limits(flow, run):
    def metrics(n):
        return [{"key": f"m{i}", "value": i, "timestamp": 1} for i in range(n)]

    def some(n):
        return [{"key": f"k{i}", "value": "v"} for i in range(n)]
    flow.error("/runs/log-batch", {"run_id": run, "metrics": metrics(1001)}, 400, "INVALID_PARAMETER_VALUE",
               "A batch logging request can contain at most 1000 metrics. Got 1001 metrics.")
    flow.error("/runs/log-batch", {"run_id": run, "params": some(101)}, 400, "INVALID_PARAMETER_VALUE", "at most 100 params")
    flow.error("/runs/log-batch", {"run_id": run, "tags": some(101)}, 400, "INVALID_PARAMETER_VALUE", "at most 100 tags")
    flow.error("/runs/log-batch", {"run_id": run, "metrics": metrics(950), "params": some(100)}, 400,
               "INVALID_PARAMETER_VALUE", "metrics, params, and tags")
    flow.post("/runs/log-batch", {"run_id": run, "metrics": metrics(800), "params": some(100), "tags": some(100)})
    assert flow.post("/runs/log-batch", {"run_id": run}) == {}
    data = flow.read(run)["data"]
    assert len(data["metrics"]) == 800 and len(data["params"]) == 100


def test_concurrent_batches_do_not_block_each_other(server, project, run):
    """The same keys in different orders from many writers; upstream dead-locks here."""
    keys = [f"c{i}" for i in range(60)]
    seen = []

    def one(worker):
        f = Flow(server.admin(), project)
        order = keys if worker % 2 else keys[::-1]
        for step in range(12):
            body = {"run_id": run, "metrics": [{"key": k, "value": worker, "timestamp": step, "step": step} for k in order],
                    "tags": [{"key": k, "value": str(worker)} for k in order[:40]]}
            seen.append(f.client.post(f"{M}/runs/log-batch", body).status)
    threads = [threading.Thread(target=one, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert seen == [200] * 96
    f = Flow(server.admin(), project)
    assert all((m["value"], m["step"]) == (7.0, 11) for m in f.read(run)["data"]["metrics"])
    assert len(f.get("/metrics/get-history", run_id=run, metric_key="c0")["metrics"]) == 96


# ---- artifacts ----

def root_of(flow, run):
    return flow.read(run)["info"]["artifact_uri"].removeprefix("mlflow-artifacts:/")


def test_artifacts(flow, run, api):
    root = root_of(flow, run)
    data = os.urandom(1_200_000)
    files = {"model/data.bin": data, "model/MLmodel": b"flavors: {}\n", "plot+1.png": b"png", "50%.txt": b"half",
             "empty": b"", "ünï/é.csv": b"a,b\n"}
    for path, content in files.items():
        assert api.put(f"{A}/{quote_path(root, path)}", content, expect=200).json() == {}
    for path, content in files.items():
        got = api.get(f"{A}/{quote_path(root, path)}", expect=200)
        assert got.body == content
        assert got.headers["Content-Disposition"].startswith("attachment") and got.headers["X-Content-Type-Options"] == "nosniff"
    assert api.get(f"{A}/{quote_path(root, 'model/MLmodel')}").headers["Content-Type"] == "text/plain"
    listed = flow.get("/artifacts/list", run_id=run)
    assert listed["root_uri"] == f"mlflow-artifacts:/{root}"
    assert [(f["path"], f["is_dir"], f.get("file_size")) for f in listed["files"]] == [
        ("50%.txt", False, 4), ("empty", False, 0), ("model", True, None), ("plot+1.png", False, 3), ("ünï", True, None)]
    assert [f["path"] for f in flow.get("/artifacts/list", run_id=run, path="model")["files"]] == ["model/MLmodel", "model/data.bin"]

    def proxy(path):
        return api.get(f"{A}?{query(path=path)}", expect=200).json()
    assert [f["path"] for f in proxy(f"{root}/model")["files"]] == ["MLmodel", "data.bin"]
    assert proxy(f"{root}/model/MLmodel") == {} and proxy(f"{root}/none") == {}
    assert len(proxy(root)["files"]) == 5
    api.put(f"{A}/{quote_path(root, 'empty')}", b"no more", expect=200)
    assert api.get(f"{A}/{quote_path(root, 'empty')}").body == b"no more"
    missing = api.get(f"{A}/{quote_path(root, 'none')}")
    assert missing.status == 404 and missing.json()["error_code"] == "RESOURCE_DOES_NOT_EXIST"
    assert api.get(f"{A}/{quote_path(root, 'model')}").status == 404
    part = api.get(f"{A}/{quote_path(root, 'model/data.bin')}", headers={"Range": "bytes=-10"}, expect=206)
    beyond = api.get(f"{A}/{quote_path(root, 'model/data.bin')}", headers={"Range": "bytes=99999999-"}, expect=416).json()
    assert beyond["error_code"] == "INVALID_PARAMETER_VALUE" and "outside" in beyond["message"]
    assert part.body == data[-10:]


def quote_path(root, path):
    return root + "/" + "/".join(quote(s) for s in path.split("/"))


def test_empty_file_in_a_chunked_body(flow, run, api):
    """As the Python client sends it."""
    url = f"{A}/{root_of(flow, run)}/zero"
    api.put(url, iter(()), headers={"Transfer-Encoding": "chunked"}, expect=200)
    assert api.get(url, expect=200).body == b""


def test_artifact_paths_that_lead_out(flow, run, api, server):
    root = root_of(flow, run)
    before = server.sql("SELECT count(*) FROM artifact")
    for tail in ("../x", "a/../../x", "%2e%2e/x", "..%2fx", "a%2f..%2f..%2fx", "%252e%252e/x", "%25252e%25252e/x", "a%5cb",
                 "a/./b", "a//b", "%00", "a%0ab", "C:%5cx", "C:x", "a%23b", "/etc/passwd", "x" * 256, "a/"):
        for method in ("PUT", "GET"):
            reply = api.request(method, f"{A}/{root}/{tail}", b"x" if method == "PUT" else None)
            assert reply.status in (400, 404), (tail, reply)
            assert reply.json()["error_code"] in ("INVALID_PARAMETER_VALUE", "RESOURCE_DOES_NOT_EXIST", "ENDPOINT_NOT_FOUND")
            assert method == "GET" or reply.status == 400, (tail, reply)
    for path in (f"{root}/..", f"{root}/../..", "..", "/", "0", f"{root}x"):
        assert api.get(f"{A}?{query(path=path)}").status in (400, 404), path
    assert server.sql("SELECT count(*) FROM artifact") == before
    exp = root.split("/")[0]
    assert api.put(f"{A}/{int(exp) + 1000}/{run}/artifacts/x", b"x").status == 404
    assert api.put(f"{A}/{exp}/{run}/other/x", b"x").status == 404
    assert api.put(f"{A}/{exp}/{'0' * 32}/artifacts/x", b"x").status == 404


def test_a_file_is_no_folder(flow, run, api):
    root = root_of(flow, run)
    api.put(f"{A}/{root}/a/b", b"x", expect=200)
    assert api.put(f"{A}/{root}/a/b/c", b"x").status == 400
    assert api.put(f"{A}/{root}/a", b"x").status == 400
    api.put(f"{A}/{root}/a.txt", b"x", expect=200)


# ---- who may ----

def job(server, project, suffix):
    """A job's token, with the rows that a scheduler would have made; returns client, its run, and its attempt."""
    prj, = server.sql(f"SELECT id FROM project WHERE name = '{project}'")
    run = hashlib.md5(suffix.encode()).hexdigest()
    server.sql(f"""
        INSERT INTO run (id, project_id, pipeline, number, spec, trigger) VALUES ('run_{suffix}', '{prj}', 'p', 1, '{{}}', 'api');
        INSERT INTO step (id, run_id, project_id, name, position, spec, tracking_run)
            VALUES ('st_{suffix}', 'run_{suffix}', '{prj}', 's', 0, '{{}}', '{run}');
        INSERT INTO attempt (id, step_id, run_id, project_id, number, epoch, worker_id, state, lost_after)
            VALUES ('at_{suffix}', 'st_{suffix}', 'run_{suffix}', '{prj}', 1, 7, 'wk_x', 'running', 0);
        INSERT INTO tracking_run (run_id, experiment_id, project_id, made, step_id, name, artifact_uri)
            SELECT '{run}', e.id, '{prj}', date_trunc('month', now())::date, 'st_{suffix}', 's',
                'mlflow-artifacts:/' || e.id || '/{run}/artifacts' FROM experiment e
            WHERE e.project_id = '{prj}' AND e.name = 'Default'""")
    token = server.forge_token("jb", project_id=prj, attempt_id=f"at_{suffix}", epoch=7)
    return server.client(token), run, f"at_{suffix}"


def test_a_job(server, flow, project, api):
    client, own, attempt = job(server, project, "job1")
    f = Flow(client)
    stranger = flow.run()
    f.post("/runs/log-batch", {"run_id": own, "metrics": [{"key": "m", "value": 1, "timestamp": 1}],
                               "params": [{"key": "p", "value": "1"}]})
    f.post("/runs/update", {"run_id": own, "status": "FINISHED", "end_time": 1})
    root = root_of(f, own)
    client.put(f"{A}/{root}/file", b"by a job", expect=200)
    assert client.get(f"{A}/{root}/file", expect=200).body == b"by a job"
    assert f.read(stranger)["info"]["run_id"] == stranger
    for path, body in (("/runs/set-tag", {"key": "a", "value": "b"}), ("/runs/update", {"status": "FAILED"}),
                       ("/runs/log-metric", {"key": "a", "value": 1, "timestamp": 1})):
        f.error(path, dict(body, run_id=stranger), 403, "PERMISSION_DENIED")
    assert client.put(f"{A}/{root_of(flow, stranger)}/x", b"x").status == 403
    child = f.run(tags=[{"key": "mlflow.parentRunId", "value": stranger}])
    f.post("/runs/set-tag", {"run_id": child, "key": "a", "value": "b"})
    assert server.sql(f"SELECT parent_run FROM tracking_run WHERE run_id = '{child}'") == [own]
    assert f.post("/experiments/create", {"name": "by-a-job"})["experiment_id"]
    for path in ("/api/v1/projects", f"/api/v1/projects/{project}/datasets", "/api/v1/auth/self",
                 f"/api/v1/tracking-runs/{own}"):
        assert client.get(path).status == 403, path


def test_a_job_in_another_project(server, project, api, flow):
    api.post("/api/v1/projects", {"name": "foreign"}, expect=201)
    client, own, _ = job(server, "foreign", "job2")
    f = Flow(client)
    run = flow.run()
    assert f.get("/runs/get", expect=404, run_id=run)["error_code"] == "RESOURCE_DOES_NOT_EXIST"
    f.error("/runs/set-tag", {"run_id": run, "key": "a", "value": "b"}, 404, "RESOURCE_DOES_NOT_EXIST")
    assert f.get("/experiments/get", experiment_id="0")["experiment"]["name"] == "Default"


def test_a_superseded_attempt_changes_nothing(server, project):
    client, own, attempt = job(server, project, "job3")
    f = Flow(client)
    f.post("/runs/set-tag", {"run_id": own, "key": "a", "value": "1"})
    server.sql(f"UPDATE attempt SET epoch = 8 WHERE id = '{attempt}'")
    # The credential may be cached for some seconds: the write itself must be refused.
    for path, body in (("/runs/set-tag", {"key": "a", "value": "2"}), ("/runs/update", {"status": "FAILED"}),
                       ("/runs/log-batch", {"metrics": [{"key": "m", "value": 1, "timestamp": 1}]})):
        reply = client.post(M + path, dict(body, run_id=own))
        assert reply.status in (401, 409), reply
    assert client.put(f"{A}/x/{own}/artifacts/late", b"late").status in (401, 404, 409)
    root = server.sql(f"SELECT artifact_uri FROM tracking_run WHERE run_id = '{own}'")[0].removeprefix("mlflow-artifacts:/")
    assert client.put(f"{A}/{root}/late", b"late").status in (401, 409)
    assert server.sql(f"SELECT value FROM tag t JOIN tracking_run r ON r.id = t.tracking_id WHERE run_id = '{own}' AND key = 'a'") == ["1"]
    assert server.sql(f"SELECT count(*) FROM artifact a JOIN tracking_run r ON r.id = a.tracking_id WHERE run_id = '{own}'") == ["0"]


def test_people(server, project, flow, run):
    viewer = Flow(server.person("flow-viewer", project, "viewer"), project)
    assert viewer.read(run)["info"]["run_id"] == run
    viewer.error("/runs/set-tag", {"run_id": run, "key": "a", "value": "b"}, 403, "PERMISSION_DENIED")
    viewer.error("/runs/create", {}, 403, "PERMISSION_DENIED")
    viewer.error("/experiments/create", {"name": "v"}, 403, "PERMISSION_DENIED")
    ci = Flow(server.person("flow-ci", project, "ci"), project)
    ci.post("/runs/set-tag", {"run_id": run, "key": "a", "value": "b"})
    server.admin().post("/api/v1/projects", {"name": "flow-apart"}, expect=201)
    stranger = Flow(server.person("flow-stranger", "flow-apart", "owner"), project)
    assert stranger.get("/runs/get", expect=404, run_id=run)["error_code"] == "RESOURCE_DOES_NOT_EXIST"
    stranger.error("/runs/set-tag", {"run_id": run, "key": "a", "value": "b"}, 404, "RESOURCE_DOES_NOT_EXIST")
    assert stranger.get("/artifacts/list", expect=404, run_id=run)
    root = root_of(flow, run)
    assert stranger.client.put(f"{A}/{root}/x", b"x").status == 404
    stranger.error("/experiments/create", {"name": "x"}, 400, "INVALID_PARAMETER_VALUE")
    own_experiment = flow.post("/experiments/create", {"name": "private"})["experiment_id"]
    stranger.error("/runs/create", {"experiment_id": own_experiment}, 404, "RESOURCE_DOES_NOT_EXIST")


# ---- bad input ----

STRANGE = [None, True, 0, -1, 2**63, -2**63 - 1, 1.5, 1e308, "", "x", "\0", "a\0b", "\ud800", "é" * 9000, [], ["x"], [None], [[]],
           {}, {"a": 1}, [{}], [{"key": None}], [{"key": "k", "value": []}], [{"key": "k", "value": {"a": 1}}], "1" * 400]


def bodies(run):
    return {
        "/experiments/create": {"name": "sweep", "artifact_location": "s3://bucket/x", "tags": [{"key": "a", "value": "b"}]},
        "/runs/create": {"experiment_id": "0", "user_id": "u", "run_name": "n", "start_time": 1, "tags": [{"key": "a", "value": "b"}]},
        "/runs/update": {"run_id": run, "run_uuid": run, "status": "RUNNING", "end_time": 1, "run_name": "n"},
        "/runs/log-metric": {"run_id": run, "run_uuid": run, "key": "m", "value": 1, "timestamp": 1, "step": 1},
        "/runs/log-parameter": {"run_id": run, "run_uuid": run, "key": "p", "value": "v"},
        "/runs/set-tag": {"run_id": run, "run_uuid": run, "key": "t", "value": "v"},
        "/runs/log-batch": {"run_id": run, "run_uuid": run, "metrics": [{"key": "m", "value": 1, "timestamp": 1, "step": 1}],
                            "params": [{"key": "p", "value": "v"}], "tags": [{"key": "t", "value": "v"}]},
    }


def send(api, path, text):
    reply = api.request("POST", M + path, text, headers={"Content-Type": "application/json", "X-Tidemill-Project": "demo"})
    assert reply.status in (200, 400, 404), (path, text[:300], reply)
    got = reply.json()
    assert reply.status == 200 or set(got) == {"error_code", "message"}, reply
    return reply


def test_strange_values_never_end_in_a_server_error(flow, run, api):
    for path, good in bodies(run).items():
        for field in good:
            for value in STRANGE:
                send(api, path, json.dumps(dict(good, **{field: value})).encode())
            send(api, path, json.dumps({k: v for k, v in good.items() if k != field}).encode())
            text = json.dumps(good)
            assert send(api, path, (text[:-1] + f', "{field}": 1}}').encode()).status == 400, "a duplicate member was taken"
            assert send(api, path, text.replace(f'"{field}"', f'"{field}\xff"', 1).encode("latin-1")).status == 400
    for member in ("key", "value", "timestamp", "step"):
        for value in STRANGE:
            point = {"key": "m2", "value": 1, "timestamp": 1, "step": 1, member: value}
            send(api, "/runs/log-batch", json.dumps({"run_id": run, "metrics": [point]}).encode())
    send(api, "/runs/log-batch", b"[" * 100_000)
    send(api, "/runs/log-batch", b'{"metrics":' + b"[" * 40 + b"]" * 40 + b"}")


@pytest.mark.parametrize("path,args", [("/runs/get", ["run_id", "run_uuid"]), ("/experiments/get", ["experiment_id"]),
                                       ("/experiments/get-by-name", ["experiment_name"]),
                                       ("/metrics/get-history", ["run_id", "metric_key", "max_results", "page_token"]),
                                       ("/artifacts/list", ["run_id", "path"])])
def test_strange_queries(flow, run, api, path, args):
    good = {"run_id": run, "metric_key": "m", "path": "a"}
    for arg in args:
        for value in ("", "x", "-1", "0", "1" * 400, "a\x01b", "é", "'; --", "a/../b", str(2**63), "null"):
            reply = api.get(f"{M}{path}?{query(**{**{k: v for k, v in good.items() if k in args}, arg: value})}", headers=flow.head)
            assert reply.status in (200, 400, 404), (arg, value, reply)
        for raw in ("%00", "%ff", "%zz", "%e0%80%80"):
            reply = api.get(f"{M}{path}?{query(**{k: v for k, v in good.items() if k in args and k != arg})}&{arg}={raw}",
                            headers=flow.head)
            if arg == "run_uuid" and reply.status == 200:
                continue  # the twin of run_id, which is looked at first
            assert reply.status in (400, 404), (arg, raw, reply)
            assert "error_code" in reply.json()


def test_points_of_many_callers_go_together(server, project, flow):
    """One that is refused does not touch the others of its batch, and a deleted run takes nothing."""
    client, own, attempt = job(server, project, "group")
    runs = [flow.run() for _ in range(6)]
    deleted = flow.run()
    seen = {}

    def one(name, c, run):
        seen[name] = []
        for i in range(25):
            reply = c.post(f"{M}/runs/log-metric", {"run_id": run, "key": "g", "value": i, "timestamp": i, "step": i})
            seen[name].append(reply.status)
    threads = [threading.Thread(target=one, args=(i, server.admin(), r)) for i, r in enumerate(runs)]
    threads += [threading.Thread(target=one, args=("job", client, own)),
                threading.Thread(target=one, args=("deleted", server.admin(), deleted))]
    server.sql(f"UPDATE tracking_run SET lifecycle = 'deleted' WHERE run_id = '{deleted}'")
    for t in threads:
        t.start()
    server.sql(f"UPDATE attempt SET state = 'lost', ended_at = now() WHERE id = '{attempt}'")
    for t in threads:
        t.join()
    assert all(seen[i] == [200] * 25 for i in range(6)), seen
    assert seen["deleted"] == [400] * 25
    assert set(seen["job"]) <= {200, 401, 409} and seen["job"][-1] != 200
    for run in runs:
        assert len(flow.get("/metrics/get-history", run_id=run, metric_key="g")["metrics"]) == 25
    kept = flow.get("/metrics/get-history", run_id=own, metric_key="g").get("metrics", [])
    assert len(kept) == seen["job"].count(200)
