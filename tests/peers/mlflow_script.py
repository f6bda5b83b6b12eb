"""What a training script does with the mlflow package; run by test_mlflow_client.py with the client's own Python.
Prints what it has seen as JSON."""
import json
import math
import os
import sys
import tempfile
from pathlib import Path

import mlflow
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient


def attempt(call):
    try:
        call()
        return None
    except MlflowException as e:
        return [e.error_code, str(e)]


def fresh():
    """A script that makes its own experiment and run."""
    seen = {}
    experiment = mlflow.set_experiment("client")
    seen["experiment_again"] = mlflow.set_experiment("client").experiment_id == experiment.experiment_id
    with mlflow.start_run(run_name="by client", tags={"a": "1"}, description="note") as run:
        mlflow.log_param("alpha", 0.5)
        mlflow.log_params({"beta": "x", "gamma": None})
        mlflow.log_param("alpha", 0.5)
        seen["changed"] = attempt(lambda: mlflow.log_param("alpha", 0.6))
        for step in range(5):
            mlflow.log_metric("loss", 1 / (step + 1), step=step)
        mlflow.log_metrics({"nan": math.nan, "inf": math.inf, "acc": 0.9}, step=3)
        mlflow.set_tag("note", "line\r\nline")
        mlflow.log_text("hello", "texts/hello.txt")
        mlflow.log_dict({"k": [1, 2]}, "conf+1 ü.json")
        with tempfile.TemporaryDirectory() as d:
            (Path(d) / "empty").touch()
            (Path(d) / "sub").mkdir()
            (Path(d) / "sub/data.bin").write_bytes(bytes(range(256)) * 4096)
            mlflow.log_artifacts(d, "folder")
    client = MlflowClient()
    got = client.get_run(run.info.run_id)
    seen["status"], seen["name"], seen["ended"] = got.info.status, got.info.run_name, got.info.end_time is not None
    seen["params"], seen["metrics"] = got.data.params, {k: repr(v) for k, v in got.data.metrics.items()}
    seen["note"] = got.data.tags["note"]
    seen["history"] = [(m.step, m.value) for m in client.get_metric_history(run.info.run_id, "loss")]
    # By address: listing by run id asks for logged models too, which this server does not have yet.
    root = run.info.artifact_uri
    seen["files"] = sorted(f.path for f in mlflow.artifacts.list_artifacts(root))
    seen["folder"] = sorted(f.path for f in mlflow.artifacts.list_artifacts(f"{root}/folder"))
    with tempfile.TemporaryDirectory() as d:
        path = mlflow.artifacts.download_artifacts(artifact_uri=f"{root}/folder", dst_path=d)
        seen["downloaded"] = (Path(path) / "sub/data.bin").read_bytes() == bytes(range(256)) * 4096
        seen["empty"] = (Path(path) / "empty").stat().st_size
    seen["text"] = mlflow.artifacts.load_text(f"{root}/texts/hello.txt")
    seen["missing"] = attempt(lambda: client.get_run("0" * 32))
    seen["no_experiment"] = client.get_experiment_by_name("none") is None
    return seen


def resume():
    """A step of a pipeline: the run is there already (MLFLOW_RUN_ID)."""
    with mlflow.start_run() as run:
        mlflow.log_metric("m", 1.0)
        mlflow.log_text("x", "x.txt")
        with mlflow.start_run(nested=True, run_name="child") as child:
            mlflow.log_param("in", "child")
    return {"run": run.info.run_id, "child": child.info.run_id,
            "parent": MlflowClient().get_run(child.info.run_id).data.tags["mlflow.parentRunId"]}


os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] = "1"
print(json.dumps({"fresh": fresh, "resume": resume}[sys.argv[1]]()))
