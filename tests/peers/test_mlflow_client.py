"""The unmodified mlflow client against our server: a script of its own, and a step of a pipeline with a job's token."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / "build/venv/bin/python"
sys.path.insert(0, str(ROOT / "tests/integration"))
pytestmark = pytest.mark.skipif(
    not PYTHON.exists() or subprocess.run([str(PYTHON), "-c", "import mlflow"], stderr=subprocess.DEVNULL).returncode != 0,
    reason="mlflow-skinny is not installed in build/venv (tests/peers/README.md)")


def script(server, verb, token, **env):
    env = {"PATH": os.environ["PATH"], "HOME": str(server.dir), "MLFLOW_TRACKING_URI": f"http://127.0.0.1:{server.port}",
           "MLFLOW_TRACKING_TOKEN": token, "MLFLOW_DISABLE_TELEMETRY": "true", "NO_PROXY": "127.0.0.1", **env}
    done = subprocess.run([str(PYTHON), str(ROOT / "tests/peers/mlflow_script.py"), verb], env=env, cwd=server.dir,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_script_of_its_own(server, api, project):
    token = api.post("/api/v1/tokens", {"name": "client", "project": project}, expect=201).json()["token"]
    seen = script(server, "fresh", token)
    assert seen["experiment_again"] and seen["no_experiment"]
    assert (seen["status"], seen["name"], seen["ended"]) == ("FINISHED", "by client", True)
    assert seen["params"] == {"alpha": "0.5", "beta": "x", "gamma": "None"}
    assert seen["metrics"] == {"loss": "0.2", "nan": "nan", "inf": "inf", "acc": "0.9"}
    assert seen["note"] == "line\r\nline"
    assert seen["history"] == [[i, 1 / (i + 1)] for i in range(5)]
    assert seen["files"] == ["artifacts/conf+1 ü.json", "artifacts/folder", "artifacts/texts"]
    assert seen["folder"] == ["folder/empty", "folder/sub"]
    assert seen["downloaded"] and seen["empty"] == 0 and seen["text"] == "hello"
    assert seen["changed"][0] == "INVALID_PARAMETER_VALUE" and "Changing param values is not allowed" in seen["changed"][1]
    assert seen["missing"][0] == "RESOURCE_DOES_NOT_EXIST"


def test_a_step_of_a_pipeline(server, api, project):
    from test_mlflow import job
    client, own, _ = job(server, project, "peer")
    seen = script(server, "resume", client.token, MLFLOW_RUN_ID=own)
    assert seen["run"] == own and seen["parent"] == own
    got = api.get(f"/api/v1/tracking-runs/{own}", expect=200).json()
    assert got["status"] == "FINISHED" and [m["key"] for m in got["metrics"]] == ["m"]
    assert api.get(f"/api/v1/tracking-runs/{seen['child']}", expect=200).json()["params"] == [{"key": "in", "value": "child"}]
