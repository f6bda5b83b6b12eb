"""tidemill-server fsck: nothing is wrong with what the server made, and each thing that is made wrong is found and named."""
import subprocess

import pytest

import world
from harness import program
from stack import Wire


@pytest.fixture(scope="module")
def held(server):
    """Ended and running steps, logs, outputs, data sets, a monitor with windows; all made by requests but the model."""
    made = world.World(server, "w", "m").work(Wire(server, "worker"))
    # The model is put in by hand, without its history.
    server.sql("INSERT INTO model_alias_history (model_id, alias, version_id, cause)"
               " SELECT model_id, alias, version_id, 'api' FROM model_alias")
    return made


def fsck(server, *args, database=None):
    env = {**server.env(), **({"TIDEMILL_DATABASE_URL": database} if database else {})}
    done = subprocess.run([str(program("tidemill-server")), "fsck", *args], env=env, capture_output=True, text=True, timeout=120)
    lines = done.stdout.splitlines()
    assert done.returncode in (0, 1) and lines, (done.returncode, done.stderr)
    assert (done.returncode == 0) == lines[-1].endswith(" 0 faults"), done
    return lines


def test_all_is_well_with_what_the_server_made(server, held):
    assert fsck(server) == fsck(server)[-1:]
    line = fsck(server, "--deep")[-1]
    assert line.startswith("17 checks of the database, ") and line.endswith(" blobs read whole: 0 faults")
    assert " 0 blobs" not in line and " 0 logs" not in line


WRONG = [
    ("runs", "UPDATE run SET state = 'succeeded' WHERE id = '{run}'", "{run}", "is succeeded, but its step s is"),
    ("steps", "UPDATE step SET attempts = 7 WHERE id = '{ended_step}'", "{ended_step}", "7 attempts"),
    ("steps", "UPDATE attempt SET state = 'running' WHERE step_id = '{ended_step}'", "{ended_step}", "1 are open"),
    ("ends", "UPDATE step SET state = 'failed' WHERE id = '{ended_step}'", "{ended_step}", "newest attempt succeeded"),
    ("epochs", "INSERT INTO attempt (id, step_id, run_id, project_id, number, epoch, worker_id, state, lost_after)"
     " SELECT 'at_x', step_id, run_id, project_id, 2, epoch, worker_id, 'failed', 1 FROM attempt WHERE step_id = '{ended_step}'",
     "at_x", "has epoch"),
    ("devices", "UPDATE attempt SET devices = '{{GPU-1,GPU-1}}' WHERE id = '{attempt}'", "wk_", "its device GPU-1 is held by"),
    ("needs", "UPDATE step SET needs = '{{t}}' WHERE id = '{ended_step}'; INSERT INTO step (id, run_id, project_id, name, position,"
     " spec, state) SELECT 'st_x', run_id, project_id, 't', 9, spec, 'failed' FROM step WHERE id = '{ended_step}'",
     "{ended_step}", "was started although t, which it needs, is failed"),
    ("queue", "INSERT INTO queue (step_id, run_id, project_id, cpus, memory, gpus, pool, request)"
     " SELECT id, run_id, project_id, 1, 1, 0, 'nobody', '{{}}' FROM step WHERE id = '{ended_step}'", "{ended_step}", "in the queue"),
    ("groups", "UPDATE run SET concurrency_group = 'g', admitted_at = now(), state = 'running', cancel_requested_at = NULL",
     "prj_", "the group g holds run_"),
    ("logs", "UPDATE log SET length = length + 1 WHERE attempt_id = '{ended_attempt}'", "{ended_attempt}", "bytes, its chunks"),
    ("logs", "UPDATE log SET digest = NULL WHERE attempt_id = '{ended_attempt}'", "{ended_attempt}", "is final without a digest"),
    ("logs", "DELETE FROM log WHERE attempt_id = '{ended_attempt}'", "{ended_attempt}", "without its log being final"),
    ("files", "UPDATE step_output SET size = size + 1 WHERE step_id = '{ended_step}'", "{ended_step}", "the blob has"),
    ("versions", "UPDATE dataset_version SET files = 3", "dsv_", "says 3 files"),
    ("aliases", "DELETE FROM model_alias", "mdl_", "its alias champion has no version"),
    ("windows", "UPDATE monitor_window SET rows = rows + 1 WHERE id = '{window}'", "{window}", "says 9 rows"),
    ("retrainings", "INSERT INTO retraining (model_id, decision_id, run_id) SELECT id, 'dec_x', '{ended_run}' FROM model",
     "mdl_", "its run {ended_run} is succeeded"),
    ("reused", "UPDATE step SET reused = '{{\"by\": \"rerun\", \"step_id\": \"st_x\"}}' WHERE id = '{ended_step}'", "{ended_step}",
     "stands for st_x, but is succeeded with 1 attempts"),
    ("reused", "DELETE FROM attempt WHERE step_id = '{ended_step}'; UPDATE step SET attempts = 0 WHERE id = '{ended_step}'",
     "{ended_step}", "has succeeded without an attempt"),
    ("reused", "DELETE FROM attempt WHERE step_id = '{ended_step}'; UPDATE step SET attempts = 0, reused = '{{\"step_id\": \"st_x\"}}'"
     " WHERE id = '{ended_step}'; DELETE FROM step_output WHERE step_id = '{ended_step}'",
     "{ended_step}", "stands for st_x and says 1 files, but has 0"),
    ("owners", "INSERT INTO observation (made, window_id, row_id, time, prediction, layout, cells)"
     " VALUES ('2001-01-01', 'win_none', 'r', now(), 1, 1, '')", "win_none", "has observations and no window"),
]


@pytest.fixture(scope="module")
def still(server, held):
    """The server has ended: its database can be copied, and nobody mends what is made wrong."""
    server.stop()
    yield server
    server.start()


@pytest.mark.parametrize("check,change,subject,words", WRONG)
def test_what_is_made_wrong_is_named(still, held, postgres, check, change, subject, words):
    ended = postgres.sql(f"SELECT id FROM attempt WHERE step_id = '{held.ended_step}'", still.database)[0]
    names = {"run": held.run, "ended_run": held.ended_run, "ended_step": held.ended_step, "attempt": held.attempt, "window": held.window,
             "ended_attempt": ended}
    copy = postgres.database(template=still.database)
    postgres.sql(change.format(**names), copy)
    found = fsck(still, database=copy)
    wanted = f"{check}: {subject.format(**names)}"
    assert any(line.startswith(wanted) and words.format(**names) in line for line in found), (wanted, found)


def test_a_log_of_which_a_byte_is_another_is_found(still, held, postgres):
    copy = postgres.database(template=still.database)
    [ended] = postgres.sql(f"SELECT id FROM attempt WHERE step_id = '{held.ended_step}'", copy)
    postgres.sql(f"UPDATE log SET digest = decode(repeat('00', 32), 'hex') WHERE attempt_id = '{ended}'", copy)
    assert len(fsck(still, database=copy)) == 1
    assert fsck(still, "--deep", database=copy)[0] == f"digests: {ended} is not what its worker sent: the digests differ"


def test_bytes_that_are_gone_or_others_are_found(server, held):
    blobs = [p for p in (server.dir / "data/blobs").rglob("*") if p.is_file() and len(p.name) >= 60]
    assert blobs
    path = blobs[0]
    kept = path.read_bytes()
    mode = path.stat().st_mode
    try:
        path.chmod(0o600)
        path.write_bytes(bytes([kept[0] ^ 1]) + kept[1:])
        assert len(fsck(server)) == 1  # of the same size
        [fault, _] = fsck(server, "--deep")
        assert fault.startswith("blobs: ") and len(fault.split()[1]) == 64, fault
        path.write_bytes(kept[:-1])
        assert len(fsck(server)) == 2
        path.unlink()
        [fault, _] = fsck(server)
        assert fault.startswith("blobs: ")
    finally:
        path.write_bytes(kept)
        path.chmod(mode)
    assert len(fsck(server, "--deep")) == 1
