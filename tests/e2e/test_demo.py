"""`make demo` and `make demo-stop`, in a folder of their own: the story comes out as the data have it, and nothing stays."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lib"))
from harness import until  # noqa: E402
from stack import whereabouts  # noqa: E402


def processes(folder):
    """Command lines of all processes that stand in the folder or name it."""
    out = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        text = whereabouts(entry)
        if str(folder) in text:
            out.append(text)
    return out


class Caller:
    """JSON calls with the demo's token."""

    def __init__(self, url, token):
        self.url, self.headers = url, {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def __call__(self, path, body=None):
        data = json.dumps(body).encode() if body is not None else None
        with urllib.request.urlopen(urllib.request.Request(self.url + path, data, self.headers), timeout=10) as answer:
            return json.load(answer)


class Demo:
    """`make demo` in a folder of its own. user: a uid, instead of ours."""

    def __init__(self, folder, user=None):
        self.folder, self.user = folder, user
        self.env = {**os.environ, "DEMO_DIR": str(folder), "DEMO_INSTALL": "no", "DEMO_PORT": "8640"}

    def make(self, target, **env):
        done = subprocess.run(["make", "-s", target], cwd=ROOT, env={**self.env, **env}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=900, user=self.user, group=self.user,
                              extra_groups=[] if self.user else None)
        assert done.returncode == 0, done.stdout[-8000:]
        return done.stdout


def test_a_demo_that_breaks_off_names_the_logs_that_are_there(tmp_path):
    (tmp_path / "bin").mkdir()
    make = tmp_path / "bin" / "make"
    make.write_text("#!/bin/sh\necho no compiler\nexit 1\n")
    make.chmod(0o755)
    folder = Path(tempfile.mkdtemp(prefix="tidemill-demo-", dir="/var/tmp"))
    try:
        folder.chmod(0o755)
        env = {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "DEMO_DIR": str(folder), "DEMO_INSTALL": "no"}
        done = subprocess.run(["bash", "examples/demo.sh", "start"], cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=60)
        assert done.returncode == 1 and "no compiler" in done.stderr
        assert done.stderr.endswith(f"demo: the build failed\ndemo: it broke off; stopping everything (logs: {folder}/build.log)\n")
    finally:
        shutil.rmtree(folder)


# A step that prints lines and logs a metric until it is cancelled, by plain HTTP as the example does.
LIVE = """
import json, os, time, urllib.request
uri, token, run = (os.environ[k] for k in ("MLFLOW_TRACKING_URI", "MLFLOW_TRACKING_TOKEN", "MLFLOW_RUN_ID"))
print(*(f"earlier line {n}" for n in range(200)), sep="\\n")
for n in range(100000):
    print(f"\\x1b[32mline {n}\\x1b[0m of a run that goes on", flush=True)
    body = {"run_id": run, "key": "loss", "value": 1 / (n + 1), "timestamp": int(time.time() * 1000), "step": n}
    urllib.request.urlopen(urllib.request.Request(f"{uri}/api/2.0/mlflow/runs/log-metric", json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {token}"})).close()
    time.sleep(0.2)
"""


@pytest.fixture(scope="module")
def demo():
    folder = Path(tempfile.mkdtemp(prefix="tidemill-demo-", dir="/tmp"))
    folder.chmod(0o755)
    d = Demo(folder)
    try:
        d.make("demo", DEMO_UNTIL="2004Q1")  # a first one, which the second ends
        d.text = d.make("demo")
        d.url = re.search(r"^ +dashboard +(http\S+)$", d.text, re.M)[1]
        d.token = re.search(r"^ +login token +(\S+)$", d.text, re.M)[1]
        d.summary = json.loads((folder / "summary.json").read_text())
        yield d
    finally:
        d.make("demo-stop")
        left = processes(folder)
        shutil.rmtree(folder, ignore_errors=True)
        assert not left, left


@pytest.mark.skipif(os.getuid() != 0, reason="n/a: the other tests run as an ordinary user, too")
def test_an_ordinary_user_starts_and_stops_it(demo):
    """Everything is built by now; what is left is the user's own."""
    nobody = 65534
    if subprocess.run(["test", "-r", str(ROOT / "Makefile")], user=nobody, group=nobody, extra_groups=[]).returncode != 0:
        pytest.skip("n/a: the tree stands in a folder that is closed to other users")
    folder = Path(tempfile.mkdtemp(prefix="tidemill-demo-", dir="/tmp"))
    os.chown(folder, nobody, nobody)
    theirs = Demo(folder, nobody)
    theirs.env["HOME"] = str(folder)
    try:
        text = theirs.make("demo", DEMO_UNTIL="2004Q1")
        with urllib.request.urlopen(re.search(r"^ +dashboard +(http\S+)$", text, re.M)[1] + "/readyz", timeout=10) as answer:
            assert answer.status == 200
        assert processes(folder)
        theirs.make("demo-stop")
        assert processes(folder) == []
    finally:
        theirs.make("demo-stop")
        shutil.rmtree(folder, ignore_errors=True)


def test_versions_are_trained_on_what_the_decision_says(demo):
    v1, v2 = demo.summary["versions"]
    assert (v1["version"], v1["trained_from"], v1["trained_to"]) == (1, "2001-01-01", "2003-09-30")
    assert (v2["version"], v2["trained_from"], v2["trained_to"]) == (2, "2005-01-01", "2007-12-31")
    assert v1["mae_next_year"] == pytest.approx(1.33, abs=0.05) and v2["mae_next_year"] == pytest.approx(2.32, abs=0.1)


def test_it_warns_then_retrains_and_promotes(demo):
    acted = [d for d in demo.summary["decisions"] if d["fired"] and "The error (mae)" in d["reason"]]
    assert [(d["window"], bool(d["run"]), d["promoted"]) for d in acted] == [("2007Q4", False, None), ("2008Q1", True, True)]
    assert "this is a warning" in acted[0]["reason"] and "retraining is started" in acted[1]["reason"]


def test_the_error_falls(demo):
    years = demo.summary["mae_without_retraining"]
    assert list(years) == [str(y) for y in range(2004, 2012)]
    for year, mae in {"2004": 1.33, "2007": 2.23, "2008": 3.45, "2009": 3.15, "2010": 2.92, "2011": 3.46}.items():
        assert years[year] == pytest.approx(mae, abs=0.1), year
    error = demo.summary["error"]
    assert len(error) == 32
    for window, e in error.items():
        if window <= "2008Q1":
            assert e["with_retraining"] == pytest.approx(e["without_retraining"], abs=1e-4), window
        else:
            assert e["with_retraining"] < e["without_retraining"] + 0.1, window
    after = [e for w, e in error.items() if w > "2008Q1"]
    assert sum(e["with_retraining"] for e in after) < 0.75 * sum(e["without_retraining"] for e in after)


def test_it_leaves_a_dashboard_that_can_be_logged_in_to(demo):
    with urllib.request.urlopen(demo.url + "/", timeout=10) as page:
        assert b"<script" in page.read()
    login = urllib.request.Request(demo.url + "/api/v1/auth/session", json.dumps({"token": demo.token}).encode(),
                                   {"Content-Type": "application/json"})
    with urllib.request.urlopen(login, timeout=10) as answer:
        assert answer.status == 201 and "tidemill_session=" in answer.headers["Set-Cookie"]


def test_a_browser_sees_the_loop_and_a_line_that_arrives(demo):
    call = Caller(demo.url, demo.token)
    project = call("/api/v1/projects")["items"][0]["name"]
    steps = {"live": {"run": ["python3", "-c", LIVE]}}
    source = {"apiVersion": "tidemill/v1", "kind": "Pipeline", "metadata": {"name": "live"}, "spec": {"steps": steps}}
    run = call(f"/api/v1/projects/{project}/runs", {"source": json.dumps(source)})["id"]
    until(lambda: call(f"/api/v1/runs/{run}")["state"] == "running", 30)
    done = subprocess.run(["node", str(ROOT / "tests/e2e/dashboard.mjs")], cwd=ROOT / "web", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=300, env={**os.environ, "BASE_URL": demo.url, "TOKEN": demo.token, "PROJECT": project,
                                                       "RUN": run, "CANCEL": "1"})
    assert done.returncode == 0, done.stdout[-6000:]
