"""Secrets that steps name: from the worker's own folder to the command, and nowhere else."""
import os

import pytest

import stack
from harness import until
from test_engine import pipeline, project, step  # noqa: F401

KEY = "correct horse battery staple"
LINES = "".join(f"line-{i:05}\n" for i in range(511))  # as many as can be hidden
PEM = "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA7bq\nshort\n-----END KEY-----\n"


@pytest.fixture(scope="module")
def worker(server, admin, tmp_path_factory):
    admin.post("/api/v1/projects", {"name": "vault"}, expect=201)
    folder = tmp_path_factory.mktemp("secrets")
    mine = folder / "vault"
    mine.mkdir()
    for name, value, mode in (("warehouse-key", KEY + "\n", 0o600), ("pem", PEM, 0o600), ("open", KEY, 0o644), ("nul", "a\0b", 0o600),
                              ("empty", "", 0o600), ("most", LINES, 0o600), ("one-more", "another line\n", 0o600)):
        (mine / name).write_text(value)
        (mine / name).chmod(mode)
    (mine / "link").symlink_to(mine / "pem")
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "other").write_text(KEY)
    join = stack.join_token(admin, pool="vault")
    with stack.Worker(server, "vault", join_token=join, nvml_library="/nonexistent", step_secrets_dir=folder) as w:
        w.secrets = mine
        yield w


def submit(admin, script, *secrets, **keys):
    steps = {"a": {"run": ["/bin/sh", "-c", script], "placement": {"pool": "vault"}, "secrets": list(secrets), **keys}}
    return stack.submit(admin, "vault", stack.pipeline("p", steps))["id"]


def test_values_reach_the_command_and_nobody_else(server, admin, worker):
    script = ("cat $TIDEMILL_SECRET_WAREHOUSE_KEY | wc -c; stat -c %a $TIDEMILL_SECRET_WAREHOUSE_KEY; echo \"$TIDEMILL_SECRET_PEM\" | wc -l;"
              " echo; printf 'key: correct horse'; sleep 0.3; echo ' battery staple!'; echo \"$TIDEMILL_SECRET_PEM\"; tr '\\0' ' ' < /proc/$$/cmdline")
    run = submit(admin, script, {"name": "warehouse-key"}, {"name": "pem", "as": "env"})
    until(lambda: list((worker.dir / "work/attempts").iterdir()), 30)
    done = stack.wait_for_run(admin, run)
    [s] = stack.steps_of(admin, run)
    assert done["state"] == "succeeded", (s, worker.log()[-2000:])
    said = stack.raw_log(admin, s["id"]).decode()
    head, rest = said.split("\n\n", 1)
    assert head.split() == [str(len(KEY) + 1), "400", "4"]
    assert rest.startswith("key: " + "*" * len(KEY) + "!\n" + "*" * 19 + "\n" + "*" * 19 + "\nshort\n" + "*" * 17 + "\n")
    [a] = stack.attempts_of(admin, s["id"])
    rows = server.sql("SELECT evidence::text FROM attempt") + server.sql("SELECT spec::text FROM step")
    assert not any(KEY in r or "MIIEpAIBAAKCAQEA7bq" in r for r in rows) and KEY not in worker.log() and a["log_complete"]


def test_the_last_line_of_the_most_is_hidden(admin, worker):
    run = submit(admin, "cat $TIDEMILL_SECRET_MOST", {"name": "most"})
    assert stack.wait_for_run(admin, run)["state"] == "succeeded"
    [s] = stack.steps_of(admin, run)
    assert stack.raw_log(admin, s["id"]).decode() == ("*" * 10 + "\n") * 511


def test_what_could_not_be_hidden_is_not_given(admin, worker):
    run = submit(admin, "cat $TIDEMILL_SECRET_MOST", {"name": "most"}, {"name": "one-more"}, retries={"infra": 0})
    done = stack.wait_for_run(admin, run)
    [s] = stack.steps_of(admin, run)
    assert (done["state"], done["reason"]) == ("failed", "secret_missing")
    assert "the secret one-more of project vault cannot be hidden in the log" in s["message"] and "more than 511" in s["message"]
    assert stack.raw_log(admin, s["id"]) == b""


def read(path):
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def test_the_record_of_an_attempt_has_no_values(admin, worker):
    go = worker.dir / "go"
    run = submit(admin, f"while [ ! -e {go} ]; do sleep 0.05; done; echo $TIDEMILL_SECRET_WAREHOUSE_KEY",
                 {"name": "warehouse-key", "as": "env"})
    until(lambda: stack.steps_of(admin, run)[0]["state"] == "running", 30)
    records = [p for p in (worker.dir / "work").rglob("*") if p.is_file()]
    assert records and not [p for p in records if KEY.encode() in read(p)]
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            assert KEY.encode() not in open(f"/proc/{pid}/cmdline", "rb").read()
        except OSError:
            pass
    worker.kill()
    worker.start()  # the log is masked by what is read again
    until(worker.is_online, 30)
    go.write_text("")
    assert stack.wait_for_run(admin, run)["state"] == "succeeded"
    [s] = stack.steps_of(admin, run)
    assert stack.raw_log(admin, s["id"]).decode() == "*" * len(KEY) + "\n"


def test_a_secret_that_changed_under_a_restart_keeps_the_log_here(admin, worker):
    go = worker.dir / "go2"
    run = submit(admin, f"while [ ! -e {go} ]; do sleep 0.05; done; echo $TIDEMILL_SECRET_WAREHOUSE_KEY",
                 {"name": "warehouse-key", "as": "env"}, retries={"infra": 0})
    until(lambda: stack.steps_of(admin, run)[0]["state"] == "running", 30)
    worker.kill()
    (worker.secrets / "warehouse-key").write_text("something else\n")
    try:
        worker.start()
        until(worker.is_online, 30)
        go.write_text("")
        done = stack.wait_for_run(admin, run)
        [s] = stack.steps_of(admin, run)
        assert (done["state"], done["reason"]) == ("failed", "secret_missing") and "cannot be masked" in s["message"]
        assert KEY.encode() not in stack.raw_log(admin, s["id"])
    finally:
        (worker.secrets / "warehouse-key").write_text(KEY + "\n")


@pytest.mark.parametrize("use,words", [
    ({"name": "gone"}, "is not on this worker"), ({"name": "other"}, "is not on this worker"), ({"name": "open"}, "must be 0600"),
    ({"name": "link"}, "cannot be opened"), ({"name": "empty"}, "must have 1 to"), ({"name": "nul", "as": "env"}, "NUL")],
    ids=lambda v: v["name"] if isinstance(v, dict) else "")
def test_what_cannot_be_had_is_named(admin, worker, use, words):
    run = submit(admin, "true", use, retries={"infra": 0})
    done = stack.wait_for_run(admin, run)
    [s] = stack.steps_of(admin, run)
    assert (done["state"], done["reason"]) == ("failed", "secret_missing")
    assert f"the secret {use['name']} of project vault" in s["message"] and words in s["message"], s["message"]


@pytest.mark.parametrize("secrets,at", [
    ("[{name: a-b}, {name: a.b, as: env}]", "secrets/1/name"), ("[{name: A}]", "secrets/0/name"), ("[{name: a, as: argv}]", "secrets/0/as"),
    ("[" + ", ".join(f"{{name: s{i}}}" for i in range(17)) + "]", "secrets")])
def test_secrets_that_make_no_sense_are_refused(admin, project, secrets, at):
    reply = admin.post(f"/api/v1/projects/{project}/runs", {"source": pipeline({"a": step(project, secrets=secrets)})})
    assert reply.status == 422 and reply.json()["errors"][0]["pointer"] == f"/source/spec/steps/a/{at}", reply.json()
