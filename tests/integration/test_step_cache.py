"""Steps that say `cache`: what makes two of them the same, and what of a hit goes on to others. Workers are real."""
import hashlib
import tempfile
from pathlib import Path

import pytest

import monitor_world
from harness import until
from stack import Wire, Worker, join_token, pipeline, raw_log, steps_of, submit, wait_for_run

pytestmark = pytest.mark.usefixtures("project")


@pytest.fixture(scope="module")
def worker(server):
    with Worker(server, "w1", cpus=8, join_token=join_token(server.admin())) as w:
        yield w


@pytest.fixture
def shared():
    with tempfile.TemporaryDirectory(prefix="tidemill-shared-", dir="/tmp") as name:
        Path(name).chmod(0o777)
        yield Path(name)


def run_to_end(api, source, state="succeeded", project="demo", **kw):
    run = wait_for_run(api, submit(api, project, source, **kw)["id"], 30)
    steps = {s["name"]: s for s in steps_of(api, run["id"])}
    assert run["state"] == state, [(s["name"], s["state"], s.get("message")) for s in steps.values()]
    return run, steps


def ran(folder, step):
    return (folder / step).read_text().count("\n") if (folder / step).exists() else 0


def from_cache(steps):
    return {name for name, s in steps.items() if s.get("reused", {}).get("by") == "cache"}


def chain(shared, cache=None, **more):
    """first → second (a value and a file of first) → last, which is not cached."""
    said = f"echo x >> {shared}/$TIDEMILL_STEP; "
    cache = {"cache": {} if cache is None else cache}
    return pipeline("chain", {
        "first": {"run": said + "printf %s $WORD > $TIDEMILL_OUTPUT/word; echo file > $TIDEMILL_OUTPUT/f",
                  "env": {"WORD": "${inputs.word}"}, **cache,
                  "outputs": {"word": {"path": "word", "kind": "value"}, "files": {"path": "f"}}},
        "second": {"needs": ["first"], "run": said + "cat $TIDEMILL_INPUT_FIRST/f > $TIDEMILL_OUTPUT/g; echo $WORD >> $TIDEMILL_OUTPUT/g",
                   "env": {"WORD": "${steps.first.outputs.word}"}, "outputs": {"g": {"path": "g"}}, **cache},
        "last": {"needs": ["second"], "run": said + "cat $TIDEMILL_INPUT_SECOND/g"}},
        inputs={"word": {"type": "string", "default": "one"}}, **more)


def test_what_is_the_same_is_not_run_again(server, api, worker, shared):
    first, before = run_to_end(api, chain(shared))
    assert from_cache(before) == set()
    again, after = run_to_end(api, chain(shared))
    assert from_cache(after) == {"first", "second"}
    assert [ran(shared, s) for s in ("first", "second", "last")] == [1, 1, 2]
    for name in ("first", "second"):
        assert after[name]["reused"] == {"by": "cache", "run_id": first["id"], "step_id": before[name]["id"],
                                         "ended_at": before[name]["ended_at"]}
        assert after[name]["message"] == f"cached: taken over from {first['id']}" and after[name]["attempts"] == 0
        assert after[name]["outputs"] == before[name]["outputs"]
    assert after["second"]["spec"]["env"]["WORD"] == "one"
    assert raw_log(api, after["last"]["id"], "stdout") == b"file\none\n" and again["started_at"]
    assert server.sql(f"SELECT data ->> 'reused_from' FROM event WHERE subject = '{after['first']['id']}' AND type = 'step.succeeded'") == [
        first["id"]]
    # A third says where it really ran; and so it does when that run is gone.
    api.delete(f"/api/v1/runs/{first['id']}", expect=204)
    _, third = run_to_end(api, chain(shared))
    assert from_cache(third) == {"first", "second"} and third["first"]["reused"]["run_id"] == first["id"]
    assert raw_log(api, third["last"]["id"], "stdout") == b"file\none\n"
    # Other words make another command, and other inputs of the next.
    _, other = run_to_end(api, chain(shared), inputs={"word": "two"})
    assert from_cache(other) == set()
    # A run may take nothing from the cache, and others may take what it has put out.
    _, none = run_to_end(api, chain(shared), inputs={"word": "two"}, no_cache=True)
    assert from_cache(none) == set()
    fresh, _ = run_to_end(api, chain(shared), inputs={"word": "three"}, no_cache=True)
    assert fresh["no_cache"] is True
    _, later = run_to_end(api, chain(shared), inputs={"word": "three"})
    assert from_cache(later) == {"first", "second"}
    assert server.command("fsck", "--deep").endswith(" 0 faults")


def test_only_what_has_succeeded_and_within_the_project(api, worker, shared):
    said = f"echo x >> {shared}/$TIDEMILL_STEP; "
    source = pipeline("bad", {"a": {"run": said + f"test -e {shared}/ok", "cache": {}}})
    run_to_end(api, source, "failed")
    run_to_end(api, source, "failed")
    assert ran(shared, "a") == 2
    (shared / "ok").touch()
    run_to_end(api, source)
    _, steps = run_to_end(api, source)
    assert ran(shared, "a") == 3 and from_cache(steps) == {"a"}
    api.post("/api/v1/projects", {"name": "elsewhere"}, expect=201)
    _, steps = run_to_end(api, source, project="elsewhere")
    assert ran(shared, "a") == 4 and from_cache(steps) == set()


def test_what_it_needs_counts_unless_the_file_says_otherwise(api, worker, shared):
    def source(text, **cache):
        return pipeline("needs", {
            "make": {"run": f"echo {text} > $TIDEMILL_OUTPUT/f", "outputs": {"f": {"path": "f"}}},
            "use": {"needs": ["make"], "run": f"echo x >> {shared}/use", "cache": cache}})
    run_to_end(api, source("1"))
    assert from_cache(run_to_end(api, source("2"))[1]) == set()  # other bytes
    assert from_cache(run_to_end(api, source("1"))[1]) == {"use"}  # the same bytes, put out by another command or not
    run_to_end(api, source("1", by=["code"]))
    assert from_cache(run_to_end(api, source("3", by=["code"]))[1]) == {"use"}
    assert ran(shared, "use") == 3


def test_data_sets_count(api, worker, shared):
    def source(**cache):
        return pipeline("data", {"a": {"run": f"echo x >> {shared}/a; cat $TIDEMILL_DATASET_D/f.csv", "cache": cache}},
                        datasets={"d": {"name": "cached", "version": "latest"}})
    monitor_world.dataset(api, "demo", "cached", {"f.csv": b"1\n"})
    run_to_end(api, source())
    run_to_end(api, source(by=["code", "inputs"]))
    assert from_cache(run_to_end(api, source())[1]) == {"a"}
    other = b"2\n"
    digest = hashlib.sha256(other).hexdigest()
    api.put(f"/api/v1/projects/demo/blobs/{digest}", other, expect=201)
    api.post("/api/v1/projects/demo/datasets/cached/versions", {"files": [{"path": "f.csv", "digest": digest, "size": 2}]}, expect=201)
    assert from_cache(run_to_end(api, source())[1]) == set()
    assert from_cache(run_to_end(api, source(by=["code", "inputs"]))[1]) == {"a"}


def test_what_is_too_old_is_run_again(server, api, worker, shared):
    source = pipeline("old", {"a": {"run": f"echo x >> {shared}/a", "cache": {"max_age": "2d"}}})
    run, _ = run_to_end(api, source)
    _, steps = run_to_end(api, source)
    assert from_cache(steps) == {"a"}
    # As old as it is by what really ran, however often it was taken over since.
    server.sql(f"UPDATE step SET ended_at = ended_at - interval '3 days' WHERE run_id = '{run['id']}'")
    server.sql("UPDATE step SET reused = reused || jsonb_build_object('ended_at', now() - interval '3 days')"
               f" WHERE id = '{steps['a']['id']}'")
    _, steps = run_to_end(api, source)
    assert from_cache(steps) == set() and ran(shared, "a") == 2


def test_what_retention_may_have_taken_is_run_again(server, api, worker, shared):
    api.post("/api/v1/projects", {"name": "aged", "retention": {"artifacts": "1d"}}, expect=201)
    source = pipeline("aged", {"a": {"run": f"echo x >> {shared}/a", "cache": {}}})
    run, _ = run_to_end(api, source, project="aged")
    server.sql(f"UPDATE step SET ended_at = ended_at - interval '23 hours' WHERE run_id = '{run['id']}'")
    taken, steps = run_to_end(api, source, project="aged")
    assert from_cache(steps) == {"a"}
    server.sql(f"UPDATE step SET ended_at = ended_at - interval '25 hours' WHERE run_id IN ('{run['id']}', '{taken['id']}')")
    _, steps = run_to_end(api, source, project="aged")
    assert from_cache(steps) == set() and ran(shared, "a") == 2


def test_combinations_and_what_is_chosen_of_them(api, worker, shared):
    said = f"echo x >> {shared}/$TIDEMILL_STEP; printf ${{matrix.k}} > $TIDEMILL_OUTPUT/v; echo ${{matrix.k}} > $TIDEMILL_OUTPUT/f"

    def source(values):
        return pipeline("sweep", {
            "train": {"run": said, "cache": {}, "matrix": {"values": {"k": values}, "max_parallel": 1},
                      "outputs": {"v": {"path": "v", "kind": "value"}, "f": {"path": "f"}}},
            "use": {"needs": ["train"], "run": "cat $TIDEMILL_INPUT_TRAIN/*/f"}})
    run_to_end(api, source(["a", "b"]))
    _, steps = run_to_end(api, source(["c", "b", "a"]))
    assert from_cache(steps) == {"train.k-a", "train.k-b"}
    assert raw_log(api, steps["use"]["id"], "stdout") == b"a\nb\nc\n"
    assert [ran(shared, f"train.k-{k}") for k in "abc"] == [1, 1, 1]


def test_which_image_it_ran_in(server, api):
    """An image that is only named counts once it is known what the name stands for."""
    hand = Wire(server, "image-hand", runtimes=("docker",), pool="images")
    digests = ["sha256:" + c * 64 for c in "ab"]

    def source(image, **cache):
        step = {"run": ["true"], "image": image, "runtimes": ["docker"], "placement": {"pool": "images"}, "cache": cache}
        return pipeline("images", {"a": step, "b": {**step, "needs": ["a"]}})

    def go(image, digest, **cache):
        """The names of the steps that had to be run."""
        run, names = submit(api, "demo", source(image, **cache)), []

        def over():
            for job in hand.sync().get("assign", []):
                names.append(job["step_name"])
                hand.report(job["attempt"], "running", runtime="docker", started_at="2026-01-01T00:00:00Z",
                            evidence={"image": image, "image_ref": "repo/x@" + digest, "image_digest": digest})
                hand.finish(job["attempt"])
            return api.get(f"/api/v1/runs/{run['id']}", expect=200).json()["state"] == "succeeded"
        until(over, 20)
        return names
    name = "repo/x:1"
    assert go(name, digests[0]) == ["a", "b"]
    assert go(name, digests[0]) == ["a"]  # of b it is known from a
    assert go(name, digests[1]) == ["a", "b"]  # the tag has moved
    assert go("repo/x@" + digests[0], digests[0]) == ["a", "b"]
    assert go("repo/x@" + digests[0], digests[0]) == []
    assert go(name, digests[0], by=["code", "inputs"]) == ["a", "b"]
    assert go(name, digests[1], by=["code", "inputs"]) == []


def test_what_cannot_be_meant_is_refused(api):
    def refused(cache, field, words):
        e = api.post("/api/v1/projects/demo/runs", {"source": pipeline("p", {"a": {"run": ["true"], "cache": cache}})}, expect=422).json()
        assert [(x["pointer"], words in x["detail"]) for x in e["errors"]] == [("/source/spec/steps/a/cache" + field, True)], e
    refused({"by": ["code", "weather"]}, "/by/1", "code")
    refused({"max_age": "0s"}, "/max_age", "at least")
    refused({"key": "x"}, "/key", "")
