"""The real worker and the real server together: what users are promised of a run, while either of them comes and goes."""
import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

import stack
from harness import ROOT, Server, until

GIT_ENV = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "a",
           "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org"}
COUNT = "n=0; while [ ! -e {} ]; do n=$((n+1)); echo line $n; sleep 0.01; done; echo end $n; exit {}"


@pytest.fixture(scope="module")
def server(postgres):
    with Server(postgres, allow_local_git="true") as s:
        yield s


@pytest.fixture(scope="module")
def api(server):
    api = server.admin()
    api.post("/api/v1/projects", {"name": "demo"}, expect=201)
    return api


@pytest.fixture
def worker(server, api, request):
    """In a pool of its own: a worker that has stopped counts as online for a while, and would be given another test's steps."""
    name = "w" + hashlib.sha256(request.node.name.encode()).hexdigest()[:8]
    join = stack.join_token(api, pool=name)
    with stack.Worker(server, name, join_token=join, nvml_library="/nonexistent/libnvml.so") as w:
        yield w


@pytest.fixture
def default_worker(server, api):
    """The only one in the pool that a pipeline gets when it names none."""
    with stack.Worker(server, "of-the-default-pool", nvml_library="/nonexistent/libnvml.so") as w:
        yield w


@pytest.fixture
def gate(worker):
    return worker.dir / "go"


def sh(script, **keys):
    return {"run": ["/bin/sh", "-c", script], **keys}


def submit(api, worker, steps):
    steps = {name: {**step, "placement": {"pool": worker.name}} for name, step in steps.items()}
    return stack.submit(api, "demo", stack.pipeline("p", steps))


def step(api, run, name):
    return next(s for s in stack.steps_of(api, run["id"]) if s["name"] == name)


def log(api, run, name):
    return stack.raw_log(api, step(api, run, name)["id"])


def counted(text):
    lines = text.decode().split("\n")
    return lines[-1] == "" and lines[:-1] == [f"line {i + 1}" for i in range(len(lines) - 2)] + [f"end {len(lines) - 2}"]


def test_a_step_reads_more_files_than_a_message_has_values(api, worker):
    """20,000 of them, of few different contents, beside a data set of one."""
    bodies = [b"%d\n" % i for i in range(50)]
    digests = [hashlib.sha256(body).hexdigest() for body in bodies]
    for digest, body in zip(digests, bodies):
        api.put(f"/api/v1/projects/demo/blobs/{digest}", body, expect=201)
    files = [{"path": f"part {i % 7}/{i:05}.txt", "digest": digests[i % 50], "size": len(bodies[i % 50])} for i in range(20000)]
    api.post("/api/v1/projects/demo/datasets", {"name": "many"}, expect=201)
    base = "/api/v1/projects/demo/datasets/many/versions"
    api.post(base, {"files": files[:10000]}, expect=201)
    api.post(base, {"files": files[10000:], "latest": True}, expect=201)
    few = {"path": "a file", "digest": digests[7], "size": len(bodies[7])}
    api.post("/api/v1/projects/demo/datasets", {"name": "few"}, expect=201)
    api.post("/api/v1/projects/demo/datasets/few/versions", {"files": [few]}, expect=201)
    script = ("cd $TIDEMILL_DATASET_ALL; find . -type f | wc -l; find . -type f -print0 | sort -z | xargs -0 cat | sha256sum;"
              " cat \"$TIDEMILL_DATASET_FEW/a file\"")
    steps = {"a": {**sh(script), "placement": {"pool": worker.name}}}
    run = stack.submit(api, "demo", stack.pipeline("p", steps, datasets={"all": {"name": "many"}, "few": {"name": "few"}}))
    done = stack.wait_for_run(api, run["id"], 240)
    assert done["state"] == "succeeded", (done, worker.log()[-2000:])
    content = b"".join(bodies[int(f["path"][-9:-4]) % 50] for f in sorted(files, key=lambda f: f["path"].encode()))
    assert log(api, run, "a").decode().split() == ["20000", hashlib.sha256(content).hexdigest(), "-", "7"]


def test_two_steps(api, worker):
    run = submit(api, worker, {"a": sh("echo made; mkdir $TIDEMILL_OUTPUT/d; echo 42 > $TIDEMILL_OUTPUT/d/x", outputs={"o": {"path": "d"}}),
                       "b": sh("cat $TIDEMILL_INPUT_A/d/x", needs=["a"])})
    assert stack.wait_for_run(api, run["id"])["state"] == "succeeded"
    assert log(api, run, "a") == b"made\n" and log(api, run, "b") == b"42\n"
    [attempt] = stack.attempts_of(api, step(api, run, "b")["id"])
    assert attempt["exit_code"] == 0 and attempt["log_complete"] and attempt["runtime"] == "process"
    until(lambda: not list((worker.dir / "work/attempts").iterdir()))


def test_failure_has_its_evidence(api, worker):
    run = submit(api, worker, {"a": sh("echo why; exit 9")})
    assert stack.wait_for_run(api, run["id"])["state"] == "failed"
    [attempt] = stack.attempts_of(api, step(api, run, "a")["id"])
    assert (attempt["reason"], attempt["exit_code"]) == ("exit_code", 9) and attempt["evidence"]["log_tail"] == ["why"]


def test_cancel(api, worker):
    run = submit(api, worker, {"a": sh("echo up; sleep 600")})
    until(lambda: step(api, run, "a")["state"] == "running", 20)
    api.post(f"/api/v1/runs/{run['id']}/cancel", expect=(200, 202))
    assert stack.wait_for_run(api, run["id"])["state"] == "cancelled"
    until(lambda: not list((worker.dir / "work/attempts").iterdir()))


@pytest.mark.parametrize("who", ["worker", "server", "both"])
def test_killed_while_a_step_runs(server, api, worker, gate, who):
    run = submit(api, worker, {"a": sh(COUNT.format(gate, 5))})
    until(lambda: step(api, run, "a")["state"] == "running", 20)
    for _ in range(2):
        if who in ("worker", "both"):
            worker.kill()
        if who in ("server", "both"):
            server.kill()
            server.start()
        if who in ("worker", "both"):
            worker.start()
        before = len(log(api, run, "a"))
        until(lambda: len(log(api, run, "a")) > before + 500, 30)
    gate.touch()
    assert stack.wait_for_run(api, run["id"])["state"] == "failed"
    [attempt] = stack.attempts_of(api, step(api, run, "a")["id"])
    assert attempt["exit_code"] == 5 and attempt["log_complete"]
    assert counted(log(api, run, "a"))


def test_ended_while_the_server_was_away(server, api, worker, gate):
    run = submit(api, worker, {"a": sh(COUNT.format(gate, 0) + "; ", outputs={"o": {"path": "x"}})})
    until(lambda: step(api, run, "a")["state"] == "running", 20)
    [attempt] = stack.attempts_of(api, step(api, run, "a")["id"])
    server.kill()
    gate.touch()
    status = worker.dir / "work/attempts" / attempt["id"] / "ctl/status"
    until(lambda: "state=exited" in status.read_text())
    server.start()
    assert stack.wait_for_run(api, run["id"])["state"] == "failed"
    [attempt] = stack.attempts_of(api, step(api, run, "a")["id"])
    assert (attempt["reason"], attempt["exit_code"]) == ("output_missing", 0)
    assert counted(log(api, run, "a"))


def test_many_steps(api, worker):
    run = submit(api, worker, {f"s{i}": sh(f"echo {i}; seq 1 200", resources={"cpus": 0.01, "memory": "16MiB"}) for i in range(40)})
    assert stack.wait_for_run(api, run["id"], 120)["state"] == "succeeded"
    tail = "".join(f"{k}\n" for k in range(1, 201))
    for s in stack.steps_of(api, run["id"]):
        assert stack.raw_log(api, s["id"]).decode() == s["name"][1:] + "\n" + tail


def test_big_log(api, worker):
    n = 30 << 20
    run = submit(api, worker, {"a": {"run": ["/usr/bin/python3", "-c", f"import sys\nfor i in range({n} // 64): sys.stdout.write('%063d\\n' % i)"]}})
    assert stack.wait_for_run(api, run["id"], 120)["state"] == "succeeded"
    assert log(api, run, "a") == b"".join(b"%063d\n" % i for i in range(n // 64))


@pytest.fixture
def repository():
    folder = Path(tempfile.mkdtemp(prefix="tidemill-repo-", dir="/tmp"))
    shutil.copytree(ROOT / "examples/chicago", folder, dirs_exist_ok=True)
    folder.chmod(0o755)
    for args in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "the example"]):
        subprocess.run(["git", "-C", str(folder), *args], env=GIT_ENV, check=True)
    yield folder
    shutil.rmtree(folder)


def test_the_example(api, default_worker, repository):
    """Checkout, data, training, outputs, evaluation: the pipeline of the demo, from its repository."""
    pytest.importorskip("sklearn")
    data = (ROOT / "examples/chicago/chicago.csv.gz").read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    api.put(f"/api/v1/projects/demo/blobs/{digest}", data, expect=201)
    api.post("/api/v1/projects/demo/datasets", {"name": "ridership"}, expect=201)
    api.post("/api/v1/projects/demo/datasets/ridership/versions",
             {"files": [{"path": "chicago.csv.gz", "digest": digest, "size": len(data)}]}, expect=201)
    api.put("/api/v1/projects/demo/pipelines/ridership", {"repository": str(repository), "ref": "main"}, expect=200)
    run = api.post("/api/v1/projects/demo/runs", {"pipeline": "ridership"}, expect=201).json()
    done = stack.wait_for_run(api, run["id"], 120)
    logs = {s["name"]: stack.raw_log(api, s["id"]).decode() for s in stack.steps_of(api, run["id"])}
    assert [s["state"] for s in stack.steps_of(api, run["id"])] == ["succeeded"] * 2, (done, logs)
    assert done["state"] == "succeeded", done
