"""The real tidemill-worker with its `process` runtime, against a fake server in memory: what it is told to run, how it ends,
and what is left when worker, server or network are away meanwhile."""
import contextlib
import json
import os
import pwd
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, "build", os.environ.get("V", "debug"))
sys.path.insert(0, os.path.join(ROOT, "tests", "fakes"))
from fake_server import FakeServer  # noqa: E402

WORKER = os.path.join(BUILD, "tidemill-worker")
GIT_ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "a",
           "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org"}


def wait_for(what, seconds=30, every=0.02):
    end = time.monotonic() + seconds
    while True:
        value = what()
        if value:
            return value
        assert time.monotonic() < end, "the condition did not come true"
        time.sleep(every)


@pytest.fixture(scope="session", autouse=True)
def built():
    subprocess.run(["make", "-s"] + [os.path.relpath(os.path.join(BUILD, x), ROOT)
                                     for x in ("tidemill-worker", "tidemill-init", "tidemill-git")], cwd=ROOT, check=True)


class Worker:
    def __init__(self, server):
        self.server = server
        self.folder = tempfile.mkdtemp(prefix="tidemill-test-")
        os.chmod(self.folder, 0o755)
        self.work = os.path.join(self.folder, "work")
        self.process, self.log, self.settings = None, open(os.path.join(self.folder, "worker.log"), "wb"), {}

    def env(self):
        e = {"PATH": os.environ["PATH"], "TIDEMILL_SERVER": self.server.url, "TIDEMILL_JOIN_TOKEN": self.server.join_token,
             "TIDEMILL_NAME": "tester", "TIDEMILL_WORK_DIR": self.work, "TIDEMILL_RUNTIMES": "process",
             "TIDEMILL_ALLOW_LOCAL_GIT": "true", "TIDEMILL_NVML_LIBRARY": "/nonexistent/libnvml.so", **self.settings}
        return e

    def start(self, **how):
        self.process = subprocess.Popen([WORKER], env=self.env(), stdout=self.log, stderr=self.log, **how)
        return self

    def run(self, *args, **more):
        return subprocess.run([WORKER, *args], env={**self.env(), **more}, capture_output=True, text=True, timeout=60)

    def kill(self):
        self.process.kill()
        self.process.wait(timeout=30)

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(timeout=60)

    def text(self):
        return open(os.path.join(self.folder, "worker.log"), errors="replace").read()

    def attempts(self):
        return os.listdir(os.path.join(self.work, "attempts"))

    def dir(self, attempt, *more):
        return os.path.join(self.work, "attempts", attempt, *more)

    def close(self):
        for attempt in self.attempts() if os.path.isdir(os.path.join(self.work, "attempts")) else []:
            try:
                status = open(self.dir(attempt, "ctl", "status")).read()
                for key in ("pid", "init_pid"):
                    pid = re.search(rf"^{key}=(\d+)$", status, re.M)
                    if pid and "state=running" in status:
                        os.kill(int(pid[1]), signal.SIGKILL)
            except (FileNotFoundError, ProcessLookupError):
                pass
        if self.process and self.process.poll() is None:
            self.kill()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture
def server():
    s = FakeServer()
    yield s
    s.close()


def finish(w):
    assert w.stop() == 0, w.text()
    assert "ERROR: AddressSanitizer" not in w.text() and "runtime error" not in w.text(), w.text()


@contextlib.contextmanager
def running(w):
    """Started, and at the end of the block ended in order."""
    try:
        yield w.start()
        finish(w)
    finally:
        if os.environ.get("KEEP_LOG"):
            print(w.text()[-6000:])
        w.close()


@pytest.fixture
def worker(server):
    with running(Worker(server)) as w:
        yield w


def sh(script):
    return ["/bin/sh", "-c", script]


def gate(worker, name):
    """A file that a step waits for, in a folder that every user may read."""
    path = os.path.join(worker.folder, name)
    return path, f"while [ ! -e {path} ]; do sleep 0.02; done"


def open_gate(path):
    open(path, "w").close()


# ---- one step ----------------------------------------------------------------------------------
def test_success(server, worker):
    a = server.assign(sh("echo out; echo err >&2; printf result > $TIDEMILL_OUTPUT/r.txt"),
                      outputs=[{"name": "r", "path": "r.txt", "kind": "files"}])
    end = server.wait_end(a)
    assert end["state"] == "succeeded" and end["exit_code"] == 0 and end.get("reason", "") == ""
    assert end["started_at"] <= end["ended_at"] and end["runtime"] == "process"
    x = server.attempts[a]
    assert server.output(a, 1) == b"out\n" and server.output(a, 2) == b"err\n"
    assert x.final["length"] == len(x.log) and x.final["dropped"] == 0
    assert x.outputs == {"r": {"r.txt": b"result"}}
    assert sorted(end["evidence"]["log_tail"]) == ["err", "out"] and end["evidence"]["peak_memory"] > 0
    assert x.states[-1] == "succeeded"
    wait_for(lambda: worker.attempts() == [])
    sync = server.last_sync
    assert sync["runtimes"] == ["process"] and sync["cpus"] > 0 and sync["memory"] > 0 and sync["disk_free"] > 0
    assert sync["boot_id"] == open("/proc/sys/kernel/random/boot_id").read().strip()
    if os.getuid() == 0:
        assert any("without isolation" in w for w in sync["warnings"])


def test_exit_code(server, worker):
    a = server.assign(sh("echo before; exit 7"), outputs=[{"name": "r", "path": "r", "kind": "files"}])
    end = server.wait_end(a)
    assert (end["state"], end["reason"], end["exit_code"]) == ("failed", "exit_code", 7)
    assert server.output(a) == b"before\n" and server.attempts[a].outputs is None


def test_signal(server, worker):
    end = server.wait_end(server.assign(sh("kill -SEGV $$")))
    assert (end["state"], end["reason"], end["signal"]) == ("failed", "signal", signal.SIGSEGV) and "exit_code" not in end


def test_command_not_found(server, worker):
    end = server.wait_end(server.assign(["/nonexistent/program"]))
    assert (end["state"], end["reason"]) == ("failed", "not_started")
    assert end["message"] == "cannot run /nonexistent/program: No such file or directory"
    end = server.wait_end(server.assign(sh("no-such-program")))
    assert (end["state"], end["reason"], end["exit_code"]) == ("failed", "exit_code", 127)
    assert end["message"] == "the command ended with exit code 127: /bin/sh: 1: no-such-program: not found", end


def test_no_runtime(server, worker):
    end = server.wait_end(server.assign(sh("true"), runtimes=["docker"]))
    assert (end["state"], end["reason"]) == ("failed", "runtime_failed") and "runtimes" in end["message"]


def test_environment_and_user(server, worker):
    digest = server.add_blob(b"x")
    staged = [{"name": "big-data.v1", "files": [{"path": "d/x", "digest": digest, "size": 1}]}]
    a = server.assign(sh("env; echo UID=$(id -u); cat $TIDEMILL_TOKEN_FILE; pwd"), datasets=staged,
                      env={"MINE": "a b=c", "TIDEMILL_RUN_ID": "forged", "MLFLOW_TRACKING_TOKEN": "forged"})
    assert server.wait_end(a)["state"] == "succeeded"
    env = dict(line.split("=", 1) for line in server.output(a, 1).decode().split("\n") if "=" in line)
    assert env["TIDEMILL_RUN_ID"] == "run_1" and env["TIDEMILL_STEP"] == "train" and env["TIDEMILL_ATTEMPT"] == a
    assert env["TIDEMILL_ATTEMPT_NUMBER"] == "1" and env["TIDEMILL_EPOCH"] == "1" and env["TIDEMILL_PROJECT"] == "demo" and env["MINE"] == "a b=c"
    assert env["MLFLOW_TRACKING_URI"] == env["TIDEMILL_API_URL"] == server.url and env["MLFLOW_RUN_ID"] == "0" * 32
    assert env["TIDEMILL_DATASET_BIG_DATA_V1"] == worker.dir(a, "in", "datasets", "big-data.v1")
    assert env["TIDEMILL_CHECKPOINT_DIR"].startswith(env["TIDEMILL_OUTPUT"]) and env["NO_PROXY"] == "127.0.0.1"
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", env["TRACEPARENT"]) and env["MLFLOW_EXPERIMENT_ID"] == "1"
    assert "TIDEMILL_JOIN_TOKEN" not in env and env["PATH"] and env["HOME"]
    if os.getuid() == 0:
        assert pwd.getpwuid(int(env["UID"])).pw_name in ("nobody", "tidemill-step")
    # The token itself is masked wherever it was written.
    token = server.attempts[a].assignment["token"]
    masked = token[:4] + "*" * (len(token) - 4)
    assert token.encode() not in server.attempts[a].log
    assert env["MLFLOW_TRACKING_TOKEN"] == masked and server.output(a, 1).count(masked.encode()) == 2


def test_token_masked_across_writes(server, worker):
    script = "t=$(cat $TIDEMILL_TOKEN_FILE); printf %s ${t%????????}; sleep 0.3; echo other >&2; printf %s ${t#${t%????????}}; echo"
    a = server.assign(sh(script))
    assert server.wait_end(a)["state"] == "succeeded"
    token = server.attempts[a].assignment["token"]
    assert server.output(a, 1).decode() == token[:4] + "*" * (len(token) - 4) + "\n"
    assert server.output(a, 2) == b"other\n"


def test_any_bytes_in_the_log(server, worker):
    a = server.assign(["/usr/bin/python3", "-c", "import os; os.write(1, bytes(range(256)) * 300); os.write(2, b'\\0\\xff')"])
    assert server.wait_end(a)["state"] == "succeeded"
    assert server.output(a, 1) == bytes(range(256)) * 300 and server.output(a, 2) == b"\0\xff"


# ---- outputs -----------------------------------------------------------------------------------
OUT = [{"name": "model", "path": "model", "kind": "model"}]


def test_output_folder(server, worker):
    a = server.assign(sh("cd $TIDEMILL_OUTPUT; mkdir -p model/sub; echo a > model/a; echo b > model/sub/b; cp model/a model/c"), outputs=OUT)
    server.refuse_uploads = 2
    assert server.wait_end(a)["state"] == "succeeded"
    assert server.attempts[a].outputs == {"model": {"model/a": b"a\n", "model/sub/b": b"b\n", "model/c": b"a\n"}}


@pytest.mark.parametrize("script,reason", [
    ("true", "output_missing"), ("mkdir model", "output_missing"), ("ln -s /etc model", "output_invalid"),
    ("mkdir model; ln -s /etc/passwd model/x", "output_invalid"), ("mkdir model; mkfifo model/x", "output_invalid"),
    ("mkdir model; echo x > model/x; ln model/x other", "output_invalid"), ("mkfifo model", "output_invalid")])
def test_output_refused(server, worker, script, reason):
    a = server.assign(sh(f"cd $TIDEMILL_OUTPUT; {script}"), outputs=OUT)
    end = server.wait_end(a)
    assert (end["state"], end["reason"], end["exit_code"]) == ("failed", reason, 0) and "model" in end["message"]
    assert server.attempts[a].outputs is None and server.attempts[a].final


# ---- inputs ------------------------------------------------------------------------------------
def test_staging_and_cache(server, worker):
    big = os.urandom(3 << 20)
    files = [{"path": "a/b.bin", "digest": server.add_blob(big), "size": len(big)},
             {"path": "c.csv", "digest": server.add_blob(b"1,2\n"), "size": 4},
             {"path": "same.csv", "digest": server.add_blob(b"1,2\n"), "size": 4}]
    kinds = {"datasets": [{"name": "history", "files": files}], "models": [{"name": "champion", "files": files[1:2]}],
             "inputs": [{"name": "train", "files": [{**files[1], "path": "model/spec.json"}]}]}
    script = ("cat $TIDEMILL_INPUT_TRAIN/model/spec.json $TIDEMILL_MODEL_CHAMPION/c.csv; sha256sum < $TIDEMILL_DATASET_HISTORY/a/b.bin;"
              "echo no > $TIDEMILL_DATASET_HISTORY/c.csv; rm -f $TIDEMILL_DATASET_HISTORY/c.csv; cat $TIDEMILL_DATASET_HISTORY/c.csv")
    if os.getuid() != 0:
        script = script.split("echo no")[0]
    ids = [server.assign(sh(script), **kinds) for _ in range(4)]
    for a in ids:
        end = server.wait_end(a)
        assert end["state"] == "succeeded", end
        assert server.output(a, 1).startswith(b"1,2\n1,2\n" + files[0]["digest"].encode())
        assert os.getuid() != 0 or server.output(a, 1).endswith(b"1,2\n")
    assert sum(n for k, n in server.counts.items() if k.startswith("GET")) == 2
    cached = os.path.join(worker.work, "cache", "sha256", files[0]["digest"][:2], files[0]["digest"])
    assert os.stat(cached).st_mode & 0o777 == 0o444 and open(cached, "rb").read() == big
    assert os.listdir(os.path.join(worker.work, "cache", "part")) == []


def test_damaged_data(server, worker):
    digest = server.add_blob(b"good")
    server.blobs[digest] = b"evil"
    a = server.assign(sh("true"), datasets=[{"name": "d", "files": [{"path": "x", "digest": digest, "size": 4}]}])
    end = server.wait_end(a)
    assert (end["state"], end["reason"]) == ("failed", "staging_failed") and digest in end["message"]
    assert server.attempts[a].final["length"] == 0


@pytest.mark.skipif(os.getuid() != 0, reason="only root can start a worker as somebody else")
def test_without_root_data_comes_at_the_second_try_and_everything_is_removed(server):
    worker = Worker(server)
    os.chown(worker.folder, 65534, 65534)
    digest = server.add_blob(b"good")
    server.blobs[digest] = b"evil"
    try:
        worker.start(user=65534, group=65534, extra_groups=[])
        a = server.assign(sh("cat $TIDEMILL_DATASET_D/x; mkdir -p modules/m; touch modules/m/f; chmod 0 modules/m; chmod 555 modules"),
                          datasets=[{"name": "d", "files": [{"path": "x", "digest": digest, "size": 4}]}])
        wait_for(lambda: sum(n for k, n in server.counts.items() if k.startswith("GET")) > 0)
        server.blobs[digest] = b"good"
        assert server.wait_end(a)["state"] == "succeeded" and server.output(a, 1) == b"good"
        wait_for(lambda: worker.attempts() == [])
        assert worker.stop() == 0, worker.text()
    finally:
        worker.close()


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a//b", "a/./b"])
def test_hostile_paths(server, worker, path):
    digest = server.add_blob(b"x")
    a = server.assign(sh("true"), datasets=[{"name": "d", "files": [{"path": path, "digest": digest, "size": 1}]}])
    b = server.assign(sh("true"), attempt="att_good")
    assert server.wait_end(b)["state"] == "succeeded"
    assert server.wait_end(a)["reason"] == "staging_failed"


def test_cache_is_emptied(server, worker):
    worker.stop()
    worker.settings["TIDEMILL_CACHE_MAX"] = "2MiB"
    worker.start()
    blobs = [os.urandom(1 << 20) for _ in range(6)]
    for data in blobs:
        d = server.add_blob(data)
        a = server.assign(sh("sha256sum < $TIDEMILL_DATASET_D/x"), datasets=[{"name": "d", "files": [{"path": "x", "digest": d, "size": 1 << 20}]}])
        assert server.wait_end(a)["state"] == "succeeded" and server.output(a).startswith(d.encode())
        wait_for(lambda: worker.attempts() == [])

    def size():
        root = os.path.join(worker.work, "cache", "sha256")
        return sum(os.stat(os.path.join(at, f)).st_size for at, _, names in os.walk(root) for f in names)
    assert size() <= 4 << 20


@pytest.fixture
def repository(worker):
    repo = os.path.join(worker.folder, "repo")
    os.mkdir(repo)

    def git(*args):
        return subprocess.run(["git", "-C", repo, *args], env=GIT_ENV, check=True, capture_output=True, text=True).stdout.strip()
    git("init", "-q", "-b", "main")
    commits = []
    for n in (1, 2):
        with open(os.path.join(repo, "train.py"), "w") as f:
            f.write(f"open('made', 'w'); print('version {n}')\n")
        git("add", ".")
        git("commit", "-qm", f"version {n}")
        commits.append(git("rev-parse", "HEAD"))
    return repo, commits


def test_checkout(server, worker, repository):
    repo, commits = repository
    for n, commit in enumerate(commits, 1):
        a = server.assign(["/usr/bin/python3", "train.py"], repository=repo, commit=commit)
        end = server.wait_end(a)
        assert end["state"] == "succeeded", end
        assert server.output(a, 1) == f"version {n}\n".encode()


def test_checkout_fails(server, worker, repository):
    end = server.wait_end(server.assign(sh("true"), repository=repository[0], commit="0" * 40))
    assert (end["state"], end["reason"]) == ("failed", "checkout_failed")
    end = server.wait_end(server.assign(sh("true"), repository="/nonexistent/repo", commit="0" * 40))
    assert (end["state"], end["reason"]) == ("failed", "checkout_failed") and end["message"]


# ---- ending it ---------------------------------------------------------------------------------
def test_cancel_while_running(server, worker):
    a = server.assign(sh("trap 'echo asked; exit 3' TERM; echo up; while :; do sleep 0.05; done"))
    server.wait(lambda s: b"up" in s.attempts[a].log)
    server.cancel(a)
    end = server.wait_end(a)
    assert (end["state"], end["reason"], end["exit_code"]) == ("cancelled", "cancelled", 3) and end["cancelling"]
    assert server.output(a, 1) == b"up\nasked\n"


def test_a_success_after_the_cancel_is_cancelled(server, worker):
    a = server.assign(sh("trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done"))
    server.wait(lambda s: b"up" in s.attempts[a].log)
    server.cancel(a)
    end = server.wait_end(a)
    assert (end["state"], end["reason"], end["exit_code"]) == ("cancelled", "cancelled", 0)


@pytest.mark.parametrize("code,state,reason", [(0, "succeeded", ""), (4, "failed", "exit_code")])
def test_an_end_before_the_cancel_stands(server, worker, code, state, reason):
    """The command ends while the worker is held still, so that the cancel is there before the worker has seen the end."""
    path, held = gate(worker, "go")
    a = server.assign(sh(f"echo up; {held}; exit {code}"))
    server.wait(lambda s: b"up" in s.attempts[a].log)
    os.kill(worker.process.pid, signal.SIGSTOP)
    try:
        open_gate(path)
        wait_for(lambda: f"code={code}\n" in open(worker.dir(a, "ctl", "status")).read())
        server.cancel(a)
    finally:
        os.kill(worker.process.pid, signal.SIGCONT)
    end = server.wait_end(a)
    assert (end["state"], end.get("reason", ""), end["exit_code"]) == (state, reason, code)


@pytest.mark.parametrize("bad", [{"argv": []}, {"runtimes": ["abacus"]}, {"argv": "true"}, {"cpus": "many"}, {"step_name": 7},
                                 {"datasets": [{"name": "d", "files": [{"path": "x", "digest": 7, "size": 1}]}]}, {"attempt": "Not/An/Id"}, {"step": "../../x"},
                                 {"step": ""}])
def test_a_bad_assignment_is_refused_alone(server, worker, bad):
    with server.lock:
        one, two, three = (server.assign(sh("echo well")), server.assign(**{"argv": ["true"], **bad}), server.assign(sh("echo well")))
    for good in (one, three):
        assert server.wait_end(good)["state"] == "succeeded"
    end = server.wait_end(two)
    assert (end["state"], end["reason"]) == ("failed", "bad_assignment") and end["message"]
    wait_for(lambda: two not in {a["id"] for a in server.last_sync.get("attempts", [])})
    assert server.wait_end(server.assign(sh("echo well")))["state"] == "succeeded"


def test_cancel_is_enforced(server, worker):
    a = server.assign(sh("trap '' TERM; echo up; while :; do sleep 0.05; done"))
    server.wait(lambda s: b"up" in s.attempts[a].log)
    server.cancel(a)
    t = time.monotonic()
    end = server.wait_end(a, 40)
    assert (end["state"], end["signal"]) == ("cancelled", signal.SIGKILL) and time.monotonic() - t > 9


def test_cancel_while_staging(server, worker):
    digest = server.add_blob(b"x")
    data = server.blobs.pop(digest)
    server.get_blob = lambda *a: time.sleep(0.2) or data if server.blobs.get("go") else (_ for _ in ()).throw(ConnectionError)
    a = server.assign(sh("true"), datasets=[{"name": "d", "files": [{"path": "x", "digest": digest, "size": 1}]}])
    server.wait_state(a, "preparing")
    server.cancel(a)
    end = server.wait_end(a)
    assert (end["state"], end["reason"]) == ("cancelled", "cancelled") and "started_at" not in end
    assert server.attempts[a].final["length"] == 0


def test_cancel_while_uploading(server, worker):
    server.refuse_uploads = 10**6
    a = server.assign(sh("echo x > $TIDEMILL_OUTPUT/model"), outputs=OUT)
    server.wait_state(a, "finishing")
    server.wait(lambda s: s.refuse_uploads < 10**6)
    server.cancel(a)
    end = server.wait_end(a)
    assert (end["state"], end["reason"], end["exit_code"]) == ("cancelled", "cancelled", 0)
    assert server.attempts[a].final and server.attempts[a].outputs is None


@pytest.mark.parametrize("metrics, seconds", [("busy", 8), ("hang", 18)])
def test_the_end_does_not_wait_long_for_its_metrics(server, worker, metrics, seconds):
    """Its devices are free only then."""
    server.set(metrics=metrics)
    a = server.assign(sh("true"))
    assert server.wait_end(a, seconds)["state"] == "succeeded"
    assert any(what.endswith("/metrics") for what in server.counts)


def test_superseded(server, worker):
    a = server.assign(sh("echo up; while :; do sleep 0.05; echo more; done"))
    server.wait(lambda s: b"up" in s.attempts[a].log)
    server.supersede(a)
    end = server.wait_end(a)
    assert (end["state"], end["reason"]) == ("cancelled", "superseded")
    wait_for(lambda: worker.attempts() == [])


def test_time_limit(server, worker):
    a = server.assign(sh("echo up; sleep 60"), time_limit=700_000)
    end = server.wait_end(a)
    assert (end["state"], end["reason"]) == ("failed", "timeout")
    assert server.output(a) == b"up\n"


def test_start_timeout(server, worker):
    digest = server.add_blob(b"x")
    server.get_blob = lambda *a: (_ for _ in ()).throw(ConnectionError)
    a = server.assign(sh("true"), datasets=[{"name": "d", "files": [{"path": "x", "digest": digest, "size": 1}]}], start_timeout=800_000)
    end = server.wait_end(a)
    assert (end["state"], end["reason"]) == ("failed", "start_timeout")


# ---- the worker dies ---------------------------------------------------------------------------
COUNT = "n=0; while [ ! -e {} ]; do n=$((n+1)); echo line $n; sleep 0.01; done; echo end $n; exit 5"


def check_count(server, a):
    lines = server.output(a, 1).decode().split("\n")
    assert lines[-1] == "" and lines[:-2] == [f"line {i + 1}" for i in range(len(lines) - 2)] and lines[-2] == f"end {len(lines) - 2}"


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_restart_while_running(server, worker, how):
    path, _ = gate(worker, "go")
    a = server.assign(sh(COUNT.format(path)))
    server.wait(lambda s: b"line 20\n" in s.attempts[a].log)
    getattr(worker, how)()
    before = len(server.attempts[a].log)
    spool = worker.dir(a, "ctl", "spool")
    wait_for(lambda: os.stat(spool).st_size > before + 1000)
    worker.start()
    server.wait(lambda s: len(s.attempts[a].log) > before + 500)
    worker.kill()
    worker.start()
    server.wait(lambda s: s.attempts[a].state == "running")
    open_gate(path)
    end = server.wait_end(a)
    assert (end["state"], end["reason"], end["exit_code"]) == ("failed", "exit_code", 5)
    check_count(server, a)
    assert server.attempts[a].final["dropped"] == 0


def test_no_head_of_a_secret_leaves_after_a_restart(server, worker):
    """At every place where the token can be cut: the frame of its head is the first of the log that a worker finds, alone and
    in front of more than one piece."""
    token, filler = "tdm_job_1_secret00", 1_300_000
    (go, wait), (end, wait_end) = gate(worker, "go"), gate(worker, "end")
    cuts = {server.assign(sh(f't=$(cat "$TIDEMILL_TOKEN_FILE"); printf %.{cut}s "$t"; {wait}; printf %s "$t" | tail -c +{cut + 1}; '
                             f"head -c {filler} /dev/zero | tr '\\0' x; {wait_end}"), token=token): cut
            for cut in range(5, len(token))}

    def spools(least):
        return all(os.path.exists(worker.dir(a, "ctl", "spool")) and os.stat(worker.dir(a, "ctl", "spool")).st_size >= least(cut)
                   for a, cut in cuts.items())
    wait_for(lambda: spools(lambda cut: 16 + cut))
    worker.kill()
    worker.start()
    for a in cuts:
        server.wait_state(a, "running")
    worker.kill()
    open_gate(go)
    wait_for(lambda: spools(lambda cut: filler))
    worker.start()
    for a in cuts:
        server.wait(lambda s: len(s.attempts[a].log) > filler - 100_000)
    open_gate(end)
    for a, cut in cuts.items():
        assert server.wait_end(a)["state"] == "succeeded", cut
        assert server.output(a) == b"tdm_" + b"*" * (len(token) - 4) + b"x" * filler, cut
        assert server.attempts[a].final["dropped"] == 0


def test_ended_while_the_worker_was_away(server, worker):
    path, _ = gate(worker, "go")
    a = server.assign(sh(COUNT.format(path)))
    server.wait(lambda s: b"line 5\n" in s.attempts[a].log)
    worker.kill()
    open_gate(path)
    wait_for(lambda: "state=exited" in open(worker.dir(a, "ctl", "status")).read())
    worker.start()
    end = server.wait_end(a)
    assert (end["state"], end["exit_code"]) == ("failed", 5)
    check_count(server, a)


def test_killed_again_and_again(server, worker):
    """At any moment of an attempt's life: it runs once, its log is whole, its end is true."""
    server.keep = True
    for n in range(12):
        marks = os.path.join(worker.folder, f"marks{n}")
        open(marks, "w").close()
        os.chmod(marks, 0o666)
        a = server.assign(sh(f"echo started >> {marks}; seq 1 2000; sleep 0.1; echo done; echo x > $TIDEMILL_OUTPUT/model"), outputs=OUT)
        for k in range(3):
            time.sleep(0.01 * n + 0.05 * k)
            worker.kill()
            worker.start()
        end = server.wait_end(a)
        assert end["state"] == "succeeded", (n, end)
        assert open(marks).read() == "started\n"
        assert server.output(a, 1).decode() == "".join(f"{i}\n" for i in range(1, 2001)) + "done\n"
        assert server.attempts[a].outputs == {"model": {"model": b"x\n"}}
    server.release()
    wait_for(lambda: worker.attempts() == [])


def test_cancelled_while_the_worker_was_away(server, worker):
    a = server.assign(sh("echo up; sleep 600"))
    server.wait(lambda s: b"up" in s.attempts[a].log)
    worker.kill()
    server.cancel(a)
    worker.start()
    assert server.wait_end(a)["state"] == "cancelled"


def test_init_killed(server, worker):
    a = server.assign(sh("echo up; sleep 600"))
    server.wait(lambda s: b"up" in s.attempts[a].log)
    status = open(worker.dir(a, "ctl", "status")).read()
    for key in ("init_pid", "pid"):
        os.kill(int(re.search(rf"^{key}=(\d+)$", status, re.M)[1]), signal.SIGKILL)
    end = server.wait_end(a)
    assert (end["state"], end["reason"]) == ("failed", "runtime_failed") and end["message"]
    assert server.output(a) == b"up\n"


def test_init_killed_when_its_log_is_full(server, worker):
    """What it held in memory, the end of a log that is longer than it may be, is lost: how much that is, is told exactly."""
    n = 3_000_000
    a = server.assign(sh(f"head -c {n} /dev/zero | tr '\\0' x; sleep 600"), log_max=1_000_000)
    taken = worker.dir(a, "ctl", "taken")
    wait_for(lambda: os.path.exists(taken) and open(taken, "rb").read(16) == struct.pack("<QQ", n, 0))
    os.kill(int(re.search(r"^init_pid=(\d+)$", open(worker.dir(a, "ctl", "status")).read(), re.M)[1]), signal.SIGKILL)
    end = server.wait_end(a)
    assert (end["state"], end["reason"]) == ("failed", "runtime_failed")
    there = len(server.output(a, 1))
    assert 0 < there < 1_000_000 and server.attempts[a].final["dropped"] == n - there == end["evidence"]["dropped_bytes"]


def test_the_reason_that_was_noted_first_stays(server, worker):
    """A worker that ends while a log is brought away: the next one does not judge the end again, from what is left by then."""
    a = server.assign(sh("trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done"))
    server.wait(lambda s: b"up" in s.attempts[a].log)
    server.go_away()
    os.kill(int(re.search(r"^init_pid=(\d+)$", open(worker.dir(a, "ctl", "status")).read(), re.M)[1]), signal.SIGTERM)
    wait_for(lambda: json.load(open(worker.dir(a, "state.json")))["phase"] == "finishing")
    worker.kill()
    open(worker.dir(a, "ctl", "asked"), "w").close()  # as if we had asked it to end
    server.come_back()
    worker.start()
    end = server.wait_end(a)
    assert (end["state"], end["reason"]) == ("failed", "killed_outside"), end
    assert "other than Tidemill" in end["message"] and server.attempts[a].final["dropped"] == 0


def test_a_record_that_cannot_be_read_is_not_lost(server, worker):
    """A bad disk (tests/fakes/fake_io.c) at the start of a worker: it says so and does not begin, and what runs goes on; it is
    neither taken for remains nor given to it once more."""
    subprocess.run(["make", "-s", os.path.relpath(os.path.join(BUILD, "libfake_io.so"), ROOT)], cwd=ROOT, check=True)
    path, wait = gate(worker, "go")
    a = server.assign(sh(f"echo up; {wait}; echo x > $TIDEMILL_OUTPUT/model"), outputs=OUT)
    server.wait(lambda s: b"up" in s.attempts[a].log)
    worker.kill()
    on = os.path.join(worker.folder, "on")
    open(on, "w").write("1")
    done = subprocess.run([WORKER], capture_output=True, text=True, timeout=60, env={
        **worker.env(), "LD_PRELOAD": os.path.join(BUILD, "libfake_io.so"), "ASAN_OPTIONS": "verify_asan_link_order=0",
        "FAKE_IO": f"1,0,{worker.dir(a)}", "FAKE_IO_ON": on})
    assert done.returncode == 1 and "assignment.json: Input/output error" in done.stderr, done
    worker.start()
    server.wait(lambda s: s.last_sync and s.attempts[a].state == "running")
    open_gate(path)
    end = server.wait_end(a)
    assert end["state"] == "succeeded" and server.attempts[a].outputs == {"model": {"model": b"x\n"}}, end
    assert server.output(a, 1) == b"up\n"


# ---- the server is away ------------------------------------------------------------------------
def test_server_away(server, worker):
    path, _ = gate(worker, "go")
    a = server.assign(sh(COUNT.format(path)))
    server.wait(lambda s: b"line 20\n" in s.attempts[a].log)
    server.go_away()
    spool, before = worker.dir(a, "ctl", "spool"), len(server.attempts[a].log)
    wait_for(lambda: os.stat(spool).st_size > before + 2000)
    open_gate(path)
    wait_for(lambda: "state=exited" in open(worker.dir(a, "ctl", "status")).read())
    server.come_back()
    end = server.wait_end(a, 60)
    assert (end["state"], end["exit_code"]) == ("failed", 5)
    check_count(server, a)


def test_server_loses_a_part_of_the_log(server, worker):
    path, _ = gate(worker, "go")
    a = server.assign(sh(COUNT.format(path)))
    server.wait(lambda s: b"line 50\n" in s.attempts[a].log)
    with server.lock:
        x, at = server.attempts[a], 0
        for _ in range(7):
            at += 16 + int.from_bytes(x.log[at:at + 4], "little")
        x.log = x.log[:at]
    server.wait(lambda s: b"line 80\n" in s.attempts[a].log)
    with server.lock:
        server.attempts[a].log = bytearray()
    open_gate(path)
    assert server.wait_end(a)["exit_code"] == 5
    check_count(server, a)


def test_stop_policy(server, worker):
    a = server.assign(sh("echo up; sleep 600"), self_stop_after=2_000_000)
    server.wait(lambda s: b"up" in s.attempts[a].log)
    alive = worker.dir(a, "ctl", "alive")
    first = os.stat(alive).st_mtime_ns
    wait_for(lambda: os.stat(alive).st_mtime_ns > first + 2_500_000_000)
    assert server.attempts[a].state == "running"
    server.go_away()
    wait_for(lambda: "reason=deadman" in open(worker.dir(a, "ctl", "status")).read())
    server.come_back()
    end = server.wait_end(a, 60)
    assert (end["state"], end["reason"]) == ("failed", "worker_lost")


def test_what_is_cut_off_while_it_is_prepared_is_not_started(server, worker):
    """By then the server may have given it to another worker."""
    digest = server.add_blob(b"data")
    server.set(hold_blobs=True)
    a = server.assign(sh("cut -d' ' -f1 /proc/uptime; sleep 600"), self_stop_after=2_000_000,
                      datasets=[{"name": "d", "files": [{"path": "x", "digest": digest, "size": 4}]}])
    server.wait_state(a, "preparing")
    at = time.monotonic()
    server.set(mute=True)
    wait_for(lambda: time.monotonic() - at > 3)
    server.set(hold_blobs=False)
    wait_for(lambda: os.path.exists(worker.dir(a, "in", "datasets", "d", "x")))
    wait_for(lambda: time.monotonic() - at > 4)
    back = time.clock_gettime(time.CLOCK_BOOTTIME)
    server.set(mute=False)
    server.wait(lambda s: b"\n" in server.output(a))
    assert float(server.output(a)) >= back - 0.02, "it ran while it was cut off"
    server.cancel(a)
    assert server.wait_end(a)["state"] == "cancelled"


@pytest.mark.parametrize("secrets", [[], [{"name": "key", "as": "file"}]], ids=["", "secrets"])
def test_cancelled_at_any_moment_before_it_runs(server, worker, secrets):
    """Each phase is stored before what it begins with: a word in between must not be lost, nor lose that."""
    if secrets:
        folder = os.path.join(worker.folder, "step-secrets")
        os.makedirs(os.path.join(folder, "demo"))
        with open(os.open(os.path.join(folder, "demo", "key"), os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
            f.write("correct horse battery staple")
        worker.stop()
        worker.settings["TIDEMILL_STEP_SECRETS_DIR"] = folder
        worker.start()
    ids = []
    for _ in range(60):
        a = server.assign(sh("sleep 600"), secrets=secrets)
        state = worker.dir(a, "state.json")
        server.wait_state(a, "preparing", "running")
        if secrets:  # what it has of them is stored next
            wait_for(lambda: not re.search('"phase":"(assigned|preparing)"', open(state).read()), every=0.0002)
        server.cancel(a)
        ids.append(a)
    for a in ids:
        end = server.wait_end(a, 30)
        assert end["state"] == "cancelled", end
    wait_for(lambda: worker.attempts() == [])


# ---- ranks of a gang ---------------------------------------------------------------------------
def test_a_rank_leaves_what_was_kept_here(server, worker):
    """All ranks go on from the server's checkpoint, which may be older, or none."""
    a = server.assign(sh("echo 1 > $TIDEMILL_CHECKPOINT_DIR/at; exit 1"))
    assert server.wait_end(a)["state"] == "failed"
    kept = os.path.join(worker.work, "checkpoints", "stp_1", "1", "at")
    wait_for(lambda: worker.attempts() == [] and os.path.exists(kept))
    b = server.assign(sh("ls $TIDEMILL_CHECKPOINT_DIR"), number=2, epoch=2, ranks=2, rank=1)
    server.wait(lambda s: (s.attempts[b].reported or {}).get("ready"))
    server.begin(b, [{"address": "127.0.0.1", "port": 1234}] * 2)
    end = server.wait_end(b)
    assert end["state"] == "succeeded" and server.output(b) == b"", end
    wait_for(lambda: worker.attempts() == [])
    assert os.path.exists(kept)


def test_a_rank_that_cannot_be_released_is_tried_again(server, worker):
    a = server.assign(sh("cat $TIDEMILL_HOSTFILE"), ranks=2, rank=1)
    server.wait(lambda s: (s.attempts[a].reported or {}).get("ready"))
    in_the_way = worker.dir(a, "in", "hostfile")
    os.makedirs(os.path.join(in_the_way, "x"))
    server.begin(a, [{"address": "127.0.0.1", "port": 1234}] * 2)
    wait_for(lambda: worker.text().count("rank not released yet") >= 2)
    shutil.rmtree(in_the_way)
    end = server.wait_end(a)
    assert end["state"] == "succeeded" and server.output(a) == b"127.0.0.1 slots=1\n" * 2, end
    assert server.counts["release"] == 1 and worker.text().count("rank not released yet") < 5, "without a pause"


# ---- much of it --------------------------------------------------------------------------------
def test_big_log(server, worker):
    n = 40 << 20
    a = server.assign(["/usr/bin/python3", "-c", f"import sys\nfor i in range({n} // 64): sys.stdout.write('%063d\\n' % i)"])
    assert server.wait_end(a, 120)["state"] == "succeeded"
    assert server.output(a, 1) == b"".join(b"%063d\n" % i for i in range(n // 64))


def test_many_short_steps(server, worker):
    ids = [server.assign(sh(f"echo step {i}"), attempt=f"att_{i}") for i in range(200)]
    server.wait(lambda s: all(x.state == "succeeded" for x in s.attempts.values()), 120)
    for i, a in enumerate(ids):
        assert server.output(a) == f"step {i}\n".encode() and server.attempts[a].final
    wait_for(lambda: worker.attempts() == [], 60)


def test_log_limit(server, worker):
    a = server.assign(sh("yes | head -c 1000000"), log_max=100_000)
    assert server.wait_end(a)["state"] == "succeeded"
    assert 0 < server.attempts[a].final["dropped"] and len(server.output(a, 1)) <= 100_000


# ---- the program -------------------------------------------------------------------------------
def test_credential(server, worker):
    server.wait(lambda s: s.syncs > 0)
    path = os.path.join(worker.work, "credential.json")
    assert os.stat(path).st_mode & 0o777 == 0o600
    credential = json.load(open(path))
    assert credential["worker_id"] in server.enrolled.values() and credential["server"] == server.url
    done = worker.run("join", TIDEMILL_JOIN_TOKEN="")
    assert done.returncode == 0 and done.stdout.strip() == credential["worker_id"] and len(server.enrolled) == 1
    gone = {k: v for k, v in worker.env().items() if k != "TIDEMILL_JOIN_TOKEN"}
    gone["TIDEMILL_JOIN_TOKEN_FILE"] = os.path.join(worker.folder, "used-up")
    done = subprocess.run([WORKER, "join"], env=gone, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.strip() == credential["worker_id"], "the token is needed once"
    assert "another worker" in worker.run().stderr
    other = worker.run("join", TIDEMILL_SERVER="http://127.0.0.1:9")
    assert other.returncode == 1 and "enrolled with" in other.stderr


def test_enrols_anew_when_its_credential_is_refused(server, worker):
    """A server that was made anew knows no worker, but has given a join token."""
    server.wait(lambda s: s.syncs > 0)
    path = os.path.join(worker.work, "credential.json")
    first = open(path).read()
    assert worker.stop() == 0
    assert worker.run("join").returncode == 0 and open(path).read() == first, "one that is taken is kept"
    server.enrolled.clear()
    server.enrolled["tdm_worker_of_another"] = "wrk_other"
    assert worker.run("join", TIDEMILL_JOIN_TOKEN="").returncode == 0 and open(path).read() == first
    both = worker.run("join", TIDEMILL_JOIN_TOKEN="wrong")
    assert both.returncode == 1 and "refuses this worker's credential" in both.stderr and "no such join token" in both.stderr
    assert open(path).read() == first
    server.go_away()
    assert worker.run("join").returncode == 0 and open(path).read() == first, "a server that cannot be reached refuses nothing"
    server.come_back()
    seen = server.syncs
    worker.start()
    server.wait(lambda s: s.syncs > seen)
    assert json.load(open(path))["worker_id"] == server.enrolled[json.load(open(path))["token"]]


def test_refused_join(server):
    w = Worker(server)
    try:
        done = w.run("join", TIDEMILL_JOIN_TOKEN="wrong")
        assert done.returncode == 1 and "join token" in done.stderr
        done = w.run("join", TIDEMILL_JOIN_TOKEN="")
        assert done.returncode == 1 and "join-token" in done.stderr
    finally:
        w.close()


def test_check(server):
    w = Worker(server)
    try:
        done = w.run("check")
        assert done.returncode == 0, done.stderr
        assert re.search(r"^process +usable", done.stdout, re.M) and re.search(r"^GPUs +none", done.stdout, re.M)
        done = w.run("check", TIDEMILL_RUNTIMES="docker", TIDEMILL_DOCKER_SOCKET="/nonexistent/docker.sock")
        assert done.returncode == 1 and re.search(r"^docker +not usable", done.stdout, re.M)
    finally:
        w.close()


@pytest.mark.parametrize("setting,value,word", [
    ("SERVER", "ftp://x", "server"), ("SERVER", "http://example.org", "insecure-http"), ("WORK_DIR", "relative", "work-dir"),
    ("NAME", "No Spaces", "name"), ("RUNTIMES", "kubernetes", "runtimes"), ("CPUS", "-1", "cpus"), ("LOG_LEVEL", "loud", "log-level")])
def test_settings_refused(server, setting, value, word):
    w = Worker(server)
    try:
        done = w.run("check", **{"TIDEMILL_" + setting: value})
        assert done.returncode == 1 and word in done.stderr
    finally:
        w.close()
