"""Open MPI on two hosts: mpirun on rank 0 finds the others by the hostfile that the launcher's variables name."""
import json
import shutil
from pathlib import Path

import pytest

from stack import attempts_of, pipeline, steps_of, submit, wait_for_run

HERE = Path(__file__).parent


@pytest.mark.skipif(not shutil.which("mpirun"), reason="openmpi-bin is missing")
def test_mpirun_starts_a_process_on_each_rank(api, workers, folder):
    for name in ("mpi_remote.py", "mpi_sum.py"):
        shutil.copy(HERE / name, folder / name)
    script = (f'cd {folder}; [ "$TIDEMILL_NODE_RANK" = 0 ] || exec python3 mpi_remote.py serve\n'
              f'exec mpirun --mca plm_rsh_agent "python3 {folder}/mpi_remote.py run" --map-by node python3 {folder}/mpi_sum.py {folder}')
    run = submit(api, "jobs", pipeline("mpi", {"sum": {
        "run": ["/bin/sh", "-c", script], "placement": {"nodes": 2, "launcher": "mpi"},
        "resources": {"cpus": 1, "memory": "256MiB"}, "time_limit": "60s"}}))
    ended = wait_for_run(api, run["id"], 90)
    step = steps_of(api, run["id"])[0]
    logs = [api.get(f"/api/v1/steps/{step['id']}/log?raw=true&rank={r}", expect=200).body.decode() for r in (0, 1)]
    assert ended["state"] == "succeeded", (step, *logs)
    result = json.loads((folder / "result").read_text())
    assert (result["sum"], result["size"], sorted(result["hosts"])) == (3, 2, ["node-0.test", "node-1.test"])
    # Who only serves rank 0 is stopped with it.
    assert [(a["state"], a.get("reason")) for a in attempts_of(api, step["id"])] == [("succeeded", None), ("cancelled", "gang_stopped")]
