"""What steps use of their hosts, in the metrics of their tracking runs: real workers on a real server."""
import os
import sys
from datetime import datetime

import pytest

import stack
from harness import quote, until
from stack import Wire, Worker, join_token, pipeline, steps_of, submit, wait_for_run

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_docker_runtime import daemon  # noqa: E402,F401
from test_worker import BUILD  # noqa: E402

BUSY = "import time\nend = time.monotonic() + {s}\nb = bytearray(100 << 20)\nwhile time.monotonic() < end: pass\nprint(time.process_time())\n"


def busy(seconds, **more):
    return {"run": ["python3", "-c", BUSY.format(s=seconds)], "resources": {"cpus": 1, "memory": "512MiB"},
            "placement": {"requires": {"usage": "here"}}, **more}


def tracked(api, run, name=None):
    step = next(s for s in steps_of(api, run["id"]) if name in (None, s["name"]))
    return step["tracking_run"]


def latest(api, tracking):
    return {m["key"]: m["value"] for m in api.get(f"/api/v1/tracking-runs/{tracking}", expect=200).json()["metrics"]}


def history(api, tracking, key):
    page = api.get(f"/api/2.0/mlflow/metrics/get-history?run_id={tracking}&metric_key={quote(key)}", expect=200)
    return page.json()["metrics"]


@pytest.fixture(scope="module")
def worker(server, api, project):
    gpus = {"FAKE_NVML_GPUS": "1"}
    token = join_token(api, labels={"usage": "here"})
    with Worker(server, "usage-1", more=gpus, join_token=token, nvml_library=BUILD + "/libfake_nvml.so", system_metrics_every="1s") as w:
        yield w


def test_a_process(api, project, worker):
    run = submit(api, project, pipeline("usage", {"work": busy(2.2, **{"resources": {"cpus": 1, "gpus": 1}})}))
    assert wait_for_run(api, run["id"])["state"] == "succeeded"
    tracking = tracked(api, run)
    seen = latest(api, tracking)
    assert {"system/cpu_utilization_percentage", "system/system_memory_usage_megabytes", "system/system_memory_usage_percentage",
            "system/disk_usage_percentage", "system/disk_available_megabytes", "system/disk_write_megabytes",
            "system/gpu_0_utilization_percentage", "system/gpu_0_memory_usage_megabytes"} <= set(seen)
    assert not any("network" in k or "throttled" in k for k in seen), "of no container"
    memory = [p["value"] for p in history(api, tracking, "system/system_memory_usage_megabytes")]
    assert 100 < max(memory) < 400
    cpu = history(api, tracking, "system/cpu_utilization_percentage")
    steps, times = [int(p["step"]) for p in cpu], [int(p["timestamp"]) for p in cpu]
    step, = steps_of(api, run["id"])
    began = datetime.fromisoformat(stack.attempts_of(api, step["id"])[0]["started_at"]).timestamp() * 1000
    # Percents of all CPUs of this host, over time, are what the process itself says that it took.
    took = sum(p["value"] * (t - before) for p, t, before in zip(cpu, times, [began, *times])) / 1e5 * os.cpu_count()
    assert len(cpu) >= 3 and took == pytest.approx(float(stack.raw_log(api, step["id"])), rel=0.1, abs=0.1)
    assert steps == sorted(steps) and times == sorted(times) and 0 <= steps[-1] - steps[0] <= 10
    assert 0 < seen["system/gpu_0_utilization_percentage"] <= 100
    # The dashboard's curves: those of the host never push out what the step logs.
    series = api.get(f"/api/v1/tracking-runs/{tracking}/series?buckets=10", expect=200).json()["items"]
    assert {s["key"] for s in series} == set(seen)


def test_a_short_one_has_its_last_sample(api, project, worker):
    run = submit(api, project, pipeline("usage-short", {"work": busy(0.3)}))
    assert wait_for_run(api, run["id"])["state"] == "succeeded"
    seen = latest(api, tracked(api, run))
    assert seen["system/cpu_utilization_percentage"] > 5 and "system/system_memory_usage_megabytes" not in seen


def test_off_for_a_step(api, project, worker):
    run = submit(api, project, pipeline("usage-off", {"work": busy(1.3, metrics={"system": "off"})}))
    assert wait_for_run(api, run["id"])["state"] == "succeeded"
    assert latest(api, tracked(api, run)) == {}


def test_a_word_that_is_neither(api, project):
    bad = api.post(f"/api/v1/projects/{project}/runs", {"source": pipeline("usage-bad", {"train": busy(1, metrics={"system": "no"})})},
                   expect=422).json()
    assert bad["errors"][0]["pointer"].endswith("/spec/steps/train/metrics/system"), bad


def test_of_a_gang_each_rank(server, api, project, worker):
    with Worker(server, "usage-2", system_metrics_every="1s"):
        step = busy(1.2, placement={"nodes": 2})
        step["resources"] = {"cpus": 0.5, "memory": "128MiB"}
        run = submit(api, project, pipeline("usage-gang", {"work": step}))
        assert wait_for_run(api, run["id"])["state"] == "succeeded"
        keys = set(latest(api, tracked(api, run)))
        assert {f"system/rank-{n}/cpu_utilization_percentage" for n in (0, 1)} <= keys
        assert all(k.startswith("system/rank-") for k in keys)


def test_they_wait_for_the_server(server, api, project, worker):
    """A server that is away for a while loses nothing of it, and the step does not wait."""
    run = submit(api, project, pipeline("usage-away", {"work": busy(5)}))
    until(lambda: steps_of(api, run["id"])[0]["state"] == "running", 20)
    tracking = tracked(api, run)
    until(lambda: latest(api, tracking), 20)
    server.kill()
    # Two samples at least are taken meanwhile.
    usage, = worker.dir.glob("work/attempts/*/ctl/usage")
    for _ in range(2):
        before = usage.stat().st_ino, usage.stat().st_mtime_ns
        until(lambda: (usage.stat().st_ino, usage.stat().st_mtime_ns) != before, 20)
    server.start()
    api.close()
    assert wait_for_run(api, run["id"])["state"] == "succeeded"
    times = [int(p["timestamp"]) for p in history(api, tracking, "system/cpu_utilization_percentage")]
    assert len(times) >= 5 and max(b - a for a, b in zip(times, times[1:])) < 2500, times


@pytest.mark.skipif(os.getuid() != 0, reason="a private daemon needs root")
def test_a_container(server, api, project, daemon):  # noqa: F811
    """Its limits are what the figures are parts of, and how much it was held back stands there."""
    script = "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done; head -c 50000000 /dev/zero > /tmp/x; sleep 1.2"
    with Worker(server, "usage-docker", runtimes="docker", docker_socket=daemon["socket"], docker_network="none",
                system_metrics_every="1s"):
        run = submit(api, project, pipeline("usage-docker", {"work": {
            "run": script, "image": "tidemill-test:1", "runtimes": ["docker"],
            "resources": {"cpus": 0.2, "memory": "256MiB"}}}))
        assert wait_for_run(api, run["id"])["state"] == "succeeded", stack.steps_of(api, run["id"])
        tracking = tracked(api, run)
        seen = latest(api, tracking)
        assert 1 < max(p["value"] for p in history(api, tracking, "system/cpu_throttled_percentage")) <= 100
        assert seen["system/cpu_throttled_seconds"] > 0.05
        assert 10 < max(p["value"] for p in history(api, tracking, "system/cpu_utilization_percentage")) < 130
        memory = [p["value"] for p in history(api, tracking, "system/system_memory_usage_megabytes")]
        part = [p["value"] for p in history(api, tracking, "system/system_memory_usage_percentage")]
        assert 0 < min(memory) and max(memory) < 268 and max(part) == pytest.approx(100 * max(memory) * 1e6 / (256 << 20))
        assert seen["system/network_receive_megabytes"] == 0


def test_what_the_server_takes(server, api, project):
    """Only system/…, and only of an attempt that the worker holds under this epoch."""
    wire = Wire(server, "usage-wire", labels={"usage": "wire"})
    run = submit(api, project, pipeline("usage-wire", {"work": {"run": ["true"], "placement": {"requires": {"usage": "wire"}}}}))
    job = wire.take(run["id"])
    assert not job.get("no_system_metrics")
    path = f"/api/v1/workers/self/attempts/{job['attempt']}/metrics"

    def put(key, epoch=job["epoch"], status=204, value=1.0, client=wire.api):
        return client.post(path, {"epoch": epoch, "metrics": [{"key": key, "value": value, "time": "2100-01-01T00:00:00.25Z"}]},
                           expect=status)

    put("system/x")
    put("system/x")
    point, = history(api, job["tracking_run"], "system/x")
    assert (point["value"], int(point["timestamp"])) == (1.0, 4102444800250) and int(point["step"]) > 10**9
    for bad in ("systems/x", "system/", "system/a//b", "system/../x", "system/a b", "system/ü"):
        assert put(bad, status=422).json()["errors"][0]["pointer"] == "/metrics/0/key", bad
    put("system/x", epoch=job["epoch"] + 1, status=409)
    other = Wire(server, "usage-wire-2", labels={"usage": "none"})
    put("system/x", status=409, client=other.api)
    wire.finish(job["attempt"])
    until(lambda: api.get(f"/api/v1/runs/{run['id']}").json()["state"] == "succeeded")
    put("system/late", status=409)
    assert "system/late" not in latest(api, job["tracking_run"])
