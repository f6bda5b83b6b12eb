"""Steps on several workers at once, with the real server and real workers: all ranks or none, one start, one end."""
import json
import os
import pty
import re
import subprocess
import termios

import pytest

import stack
from harness import program, until

WORKERS = ("g0", "g1", "g2")
pytestmark = pytest.mark.usefixtures("project")


@pytest.fixture(scope="module")
def workers(server, api):
    made = {}
    try:
        for name in WORKERS:
            join = stack.join_token(api, pool="gang")
            made[name] = stack.Worker(server, name, join_token=join, nvml_library="/nonexistent/libnvml.so").__enter__()
        yield made
    finally:
        for w in made.values():
            w.__exit__(None, None, None)


def gang(script, nodes=2, launcher=None, **keys):
    placement = {"pool": "gang", "nodes": nodes, **({"launcher": launcher} if launcher else {}), **keys.pop("placement", {})}
    return {"run": ["/bin/sh", "-c", script], "placement": placement, "resources": {"cpus": 0.1, "memory": "16MiB"}, **keys}


def submit(api, step):
    return stack.submit(api, "demo", stack.pipeline("p", {"a": step}))


def step(api, run):
    return stack.steps_of(api, run["id"])[0]


def rank_log(api, step_id, rank):
    return api.get(f"/api/v1/steps/{step_id}/log?raw=true&rank={rank}", expect=200).body.decode()


def cli_env(api):
    return {"PATH": "/usr/bin:/bin", "TIDEMILL_SERVER": f"http://127.0.0.1:{api.port}", "TIDEMILL_TOKEN": api.token, "HOME": "/nonexistent"}


def logs_of(api, run, *args):
    return subprocess.run([str(program("tidemill")), "run", "logs", run["id"], *args], env=cli_env(api), capture_output=True, text=True, timeout=30)


def on_a_terminal(api, *args):
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (60, 220))
    child = subprocess.Popen([str(program("tidemill")), *args], env=cli_env(api), stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    out = b""
    try:
        while part := os.read(master, 65536):
            out += part
    except OSError:  # the other side is closed
        pass
    os.close(master)
    assert child.wait(30) == 0, out
    return re.sub(r"\x1b\[[0-9;]*m", "", out.decode()).replace("\r\n", "\n")


def variables(text):
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def test_all_ranks_start_together_and_succeed(api, workers):
    run = submit(api, gang("env; date +%s.%N > $TIDEMILL_OUTPUT/at; cat $TIDEMILL_HOSTFILE", 3, outputs={"at": {"path": "at"}}))
    assert stack.wait_for_run(api, run["id"])["state"] == "succeeded"
    s = step(api, run)
    attempts = stack.attempts_of(api, s["id"])
    assert [(a["number"], a["rank"], a["ranks"], a["state"]) for a in attempts] == [(1, r, 3, "succeeded") for r in range(3)]
    assert len({a["worker_id"] for a in attempts}) == 3 and len({a["epoch"] for a in attempts}) == 3
    # Nobody began before all were ready.
    assert min(a["started_at"] for a in attempts) > max(a["ready_at"] for a in attempts)
    assert s["nodes"] == 3 and s["attempt_id"] == attempts[0]["id"] and s["attempts"] == 1
    logs = [rank_log(api, s["id"], r) for r in range(3)]
    envs = [variables(t) for t in logs]
    assert [e["TIDEMILL_NODE_RANK"] for e in envs] == ["0", "1", "2"]
    assert {(e["TIDEMILL_NUM_NODES"], e["WORLD_SIZE"], e["MASTER_ADDR"], e["TIDEMILL_MASTER_PORT"] == e["MASTER_PORT"]) for e in envs} == {
        ("3", "3", attempts[0]["address"], True)}
    assert len({e["MASTER_PORT"] for e in envs}) == 1
    assert logs[1].endswith("127.0.0.1 slots=1\n" * 3)
    api.get(f"/api/v1/steps/{s['id']}/log?rank=3", expect=422)
    for rank in range(3):
        shown = logs_of(api, run, "--rank", str(rank))
        assert f"TIDEMILL_NODE_RANK={rank}" in shown.stdout.splitlines() and f"rank {rank} of 3" in shown.stderr
    assert logs_of(api, run, "--step", "a", "--rank", "3").returncode != 0
    assert logs_of(api, run, "--rank", "3").returncode != 0
    assert logs_of(api, run, "--rank", "x").returncode == 2
    everything = logs_of(api, run, "--rank", "all").stdout.splitlines()
    assert [line for line in everything if "TIDEMILL_NODE_RANK" in line] == [f"[rank {r}] TIDEMILL_NODE_RANK={r}" for r in range(3)]
    assert len(everything) == sum(len(text.splitlines()) for text in logs)
    lines = [json.loads(line) for line in logs_of(api, run, "--rank", "all", "--grep", "TIDEMILL_NODE_RANK", "-o", "json").stdout.splitlines()]
    assert [(line["rank"], line["attempt"]) for line in lines] == [(a["rank"], a["id"]) for a in attempts]
    assert s["outputs"]["at"]["files"] == 1


@pytest.mark.parametrize("launcher", ["torchrun", "tensorflow", "jax", "mpi"])
def test_variables_of_launchers(api, workers, launcher):
    run = submit(api, gang("env", 2, launcher, env={"PET_MAX_RESTARTS": "2", "MASTER_PORT": "1234"}))
    assert stack.wait_for_run(api, run["id"])["state"] == "succeeded"
    s = step(api, run)
    envs = [variables(rank_log(api, s["id"], r)) for r in range(2)]
    attempts = stack.attempts_of(api, s["id"])
    address, port = attempts[0]["address"], envs[0]["TIDEMILL_MASTER_PORT"]
    for rank, e in enumerate(envs):
        if launcher == "torchrun":
            assert (e["PET_NNODES"], e["PET_NPROC_PER_NODE"], e["PET_NODE_RANK"], e["PET_RDZV_BACKEND"]) == ("2", "1", str(rank), "c10d")
            assert e["PET_RDZV_ENDPOINT"] == f"{address}:{port}" and e["PET_RDZV_ID"] == s["id"] + "-1"
            assert e["PET_RDZV_CONF"] == f"is_host={int(rank == 0)}" and e["PET_LOCAL_ADDR"] == address
            # What the step itself says stands.
            assert (e["PET_MAX_RESTARTS"], e["MASTER_PORT"], e["WORLD_SIZE"]) == ("2", "1234", "2")
        elif launcher == "tensorflow":
            config = json.loads(e["TF_CONFIG"])
            assert config["task"] == {"type": "worker", "index": rank}
            assert config["cluster"]["worker"][0] == f"{address}:{port}" and len(set(config["cluster"]["worker"])) == 2
        elif launcher == "jax":
            assert (e["JAX_COORDINATOR_ADDRESS"], e["JAX_NUM_PROCESSES"], e["JAX_PROCESS_ID"]) == (f"{address}:{port}", "2", str(rank))
            assert e["KERAS_DISTRIBUTION_JOB_ADDRESSES"] == f"{address}:{port}" and e["KERAS_DISTRIBUTION_NUM_PROCESSES"] == "2"
        else:
            assert e["OMPI_MCA_orte_default_hostfile"] == e["HYDRA_HOST_FILE"] == e["TIDEMILL_HOSTFILE"]


def test_one_that_fails_stops_all_and_is_named(api, workers):
    run = submit(api, gang('[ "$TIDEMILL_NODE_RANK" = 1 ] && exit 3; sleep 600', 3))
    assert stack.wait_for_run(api, run["id"])["state"] == "failed"
    s = step(api, run)
    attempts = stack.attempts_of(api, s["id"])
    assert s["reason"] == "exit_code"
    assert s["message"] == f"rank 1 on {attempts[1]['worker']} ended with exit code 3; 2 other ranks were stopped"
    assert [(a["state"], a["reason"]) for a in attempts] == [
        ("cancelled", "gang_stopped"), ("failed", "exit_code"), ("cancelled", "gang_stopped")]
    shown = on_a_terminal(api, "run", "show", run["id"])
    table = shown.split("Ranks of step a, attempt 1\n")[1].split("\n\n")[0].splitlines()
    assert table[0].split()[:2] == ["RANK", "WORKER"] and len(table) == 4, shown
    for rank, a in enumerate(attempts):
        assert table[1 + rank].split()[:2] == [str(rank), a["worker"]] and a["reason"] in table[1 + rank]
    # What is said below of the end is said of the rank that is the cause.
    end = {line.split(None, 1)[0]: line.split(None, 1)[1] for line in shown.split("Step a failed")[1].splitlines() if len(line.split(None, 1)) == 2}
    assert (end["WORKER"], end["EXIT"]) == (attempts[1]["worker"], "3"), shown
    waited = subprocess.run([str(program("tidemill")), "run", "wait", run["id"]], env=cli_env(api), capture_output=True, text=True, timeout=30)
    assert f"The whole log: tidemill logs {run['id']} --step a --rank 1\n" in waited.stderr, waited


def test_all_restart_together_from_the_checkpoint_of_rank_0(api, workers):
    script = ('cat $TIDEMILL_CHECKPOINT_DIR/at 2>/dev/null || echo fresh; echo r$TIDEMILL_NODE_RANK-$TIDEMILL_ATTEMPT_NUMBER >'
              ' $TIDEMILL_CHECKPOINT_DIR/at; [ $TIDEMILL_ATTEMPT_NUMBER = 2 ] && exit 0; [ $TIDEMILL_NODE_RANK = 1 ] && sleep 1 && exit 1;'
              ' sleep 600')
    run = submit(api, gang(script, 2, retries={"user": 1, "backoff": {"first": "0s"}}))
    assert stack.wait_for_run(api, run["id"])["state"] == "succeeded"
    s = step(api, run)
    attempts = stack.attempts_of(api, s["id"])
    assert [(a["number"], a["rank"]) for a in attempts] == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert [rank_log(api, s["id"], r) for r in range(2)] == ["r0-1\n", "r0-1\n"]
    assert s["attempts"] == 2


def test_logs_of_all_ranks_are_followed_over_attempts(api, workers):
    """From before it begins until it is over, nothing of anybody is left out or comes twice."""
    script = ('for i in 1 2 3; do echo "r$TIDEMILL_NODE_RANK a$TIDEMILL_ATTEMPT_NUMBER $i"; sleep 0.1; done;'
              ' [ $TIDEMILL_NODE_RANK$TIDEMILL_ATTEMPT_NUMBER != 11 ]')
    run = submit(api, gang(script, 2, retries={"user": 1, "backoff": {"first": "0s"}}))
    followed = logs_of(api, run, "--rank", "all", "--follow")
    assert followed.returncode == 0, followed.stderr
    # The other rank of the first attempt may have been stopped before its last line.
    wanted = {f"[rank {r}] r{r} a{a} {i}" for r in (0, 1) for a in (1, 2) for i in (1, 2, 3)}
    logs = [api.get(f"/api/v1/attempts/{a['id']}/log?raw=true", expect=200).body.decode().splitlines()
            for a in stack.attempts_of(api, step(api, run)["id"])]
    assert [len(log) for log in logs[1:]] == [3, 3, 3]
    said = [line for line in followed.stdout.splitlines() if "[tidemill]" not in line]
    assert len(said) == len(set(said)) and set(said) == wanted & {f"[rank {r % 2}] {line}" for r, log in enumerate(logs) for line in log}
    one = logs_of(api, run, "--rank", "1", "--follow").stdout.splitlines()
    assert one == logs[3]


def test_a_worker_that_is_lost_is_nobodys_retry(api, workers, server):
    """Of two ranks one loses its worker: the other is stopped, and both start again without using up a retry of the user's."""
    run = submit(api, gang('[ $TIDEMILL_ATTEMPT_NUMBER = 2 ] && exit 0; sleep 600', 2,
                           on_lost={"policy": "keep", "lost_after": "10s"}, retries={"backoff": {"first": "0s"}}))
    until(lambda: step(api, run)["state"] == "running", 30)
    victim = stack.attempts_of(api, step(api, run)["id"])[1]
    w = workers[victim["worker"]]
    w.kill()
    try:
        until(lambda: stack.attempts_of(api, step(api, run)["id"])[1]["state"] == "lost", 40)
    finally:
        w.start()
    assert stack.wait_for_run(api, run["id"])["state"] == "succeeded"
    attempts = stack.attempts_of(api, step(api, run)["id"])
    assert [(a["number"], a["state"], a["reason"]) for a in attempts[:2]] == [(1, "cancelled", "gang_stopped"), (1, "lost", "worker_lost")]
    assert [a["state"] for a in attempts[2:]] == ["succeeded"] * 2


def test_cancel_stops_all(api, workers):
    run = submit(api, gang("sleep 600", 3))
    until(lambda: step(api, run)["state"] == "running", 30)
    api.post(f"/api/v1/runs/{run['id']}/cancel", expect=(200, 202))
    assert stack.wait_for_run(api, run["id"])["state"] == "cancelled"
    assert {(a["state"], a["reason"]) for a in stack.attempts_of(api, step(api, run)["id"])} == {("cancelled", "cancelled")}


def test_a_time_limit_ends_all(api, workers):
    run = submit(api, gang("sleep 600", 2, time_limit="1s"))
    assert stack.wait_for_run(api, run["id"])["state"] == "failed"
    assert step(api, run)["reason"] == "timeout" and step(api, run)["message"].startswith("rank ")


def test_what_a_gang_waits_for(api, workers):
    run = submit(api, gang("true", 4))
    s = step(api, run)
    wait = api.get(f"/api/v1/steps/{s['id']}/blockers", expect=200).json()
    [b] = wait["blockers"]
    assert (b["kind"], b["unit"], b["need"], b["free"], b["most"], b["unsatisfiable"]) == ("nodes", "workers", 4, 3, 3, True)
    assert b["message"] == "needs 4 workers with 0.1 CPUs and 16 MiB of memory each; pool gang has 3"
    assert wait["start_now"]["message"] == "it would start at once if it asked for 3 workers instead of 4"
    api.post(f"/api/v1/runs/{run['id']}/cancel", expect=(200, 202))
    assert stack.wait_for_run(api, run["id"])["state"] == "cancelled"


def test_a_rank_that_is_not_ready_is_named(server, api, workers):
    """One worker takes its rank and says no more: the others do not wait for ever, and nothing has begun."""
    api.post("/api/v1/projects", {"name": "slow"}, expect=201)
    join = stack.join_token(api, pool="slow")
    with stack.Worker(server, "quick", join_token=join, nvml_library="/nonexistent/libnvml.so"):
        wire = stack.Wire(server, "mute", pool="slow")
        wire.sync()
        body = gang("echo never", 2, placement={"pool": "slow"}, timeouts={"start": "2s"}, retries={"infra": 0})
        run = stack.submit(api, "slow", stack.pipeline("p", {"a": body}))
        [job] = until(lambda: wire.sync().get("assign"), 20)
        assert (job["ranks"], job["launcher"]) == (2, "plain")
        wire.report(job["attempt"], "preparing")
        until(lambda: any(a["state"] == "failed" for a in stack.attempts_of(api, step(api, run)["id"])), 30)
        until(lambda: [c["reason"] for c in wire.sync().get("cancel", [])] == ["gang_stopped"], 20)
        wire.report(job["attempt"], "cancelled", reason="gang_stopped")
        assert stack.wait_for_run(api, run["id"])["state"] == "failed"
        s = step(api, run)
        assert s["reason"] == "start_timeout"
        assert s["message"] == f"not all ranks were ready in time: rank {job.get('rank', 0)} on mute not"
        assert rank_log(api, s["id"], 1 - job.get("rank", 0)) == ""


def test_the_server_finds_gangs_whole(server, api, workers):
    """Of all that was done above; and a rank that is not there is found."""
    fsck = [str(program("tidemill-server")), "fsck"]
    assert subprocess.run(fsck, env=server.env(), capture_output=True, text=True).returncode == 0
    server.sql("DELETE FROM attempt WHERE ctid = (SELECT ctid FROM attempt WHERE ranks = 3 AND rank = 2 LIMIT 1)")
    found = subprocess.run(fsck, env=server.env(), capture_output=True, text=True)
    assert found.returncode != 0 and "has the ranks 0, 1, and should have 3 of them" in found.stdout


def test_the_others_end_although_the_server_died_when_the_first_had_succeeded(server, api, workers):
    """With mpi, rank 0's success ends the step. Nobody had looked at the run when the server was killed."""
    run = submit(api, gang("exec sleep 600", 2, "mpi"))
    until(lambda: [a["state"] for a in stack.attempts_of(api, step(api, run)["id"])] == ["running"] * 2, 30)
    server.kill()
    server.sql("UPDATE attempt SET state = 'succeeded', ended_at = now() WHERE rank = 0 AND ranks = 2 AND state = 'running'")
    server.start()
    assert stack.wait_for_run(api, run["id"])["state"] == "succeeded"
    assert [a["reason"] for a in stack.attempts_of(api, step(api, run)["id"]) if a["state"] != "succeeded"] == ["gang_stopped"]
