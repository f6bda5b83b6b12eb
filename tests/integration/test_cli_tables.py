"""Every command that shows or lists something, on a terminal, through a pipe, and as JSON, against the real server."""
import json
import os
import pty
import re
import subprocess
import sys
import termios

import pytest

sys.path.insert(0, os.path.dirname(__file__))
from harness import BUILD, SANITIZERS  # noqa: E402
from stack import Wire  # noqa: E402
from world import World  # noqa: E402

TIDEMILL = str(BUILD / "tidemill")


@pytest.fixture(scope="module")
def world(server):
    w = World(server, "tables", "m").work(Wire(server, "w1"))
    w.api.put(f"{w.base}/pipelines/full", {"source": FULL}, expect=200)
    w.api.post(f"{w.base}/runs", {"pipeline": "full", "inputs": {"n": 2}, "labels": {"why": "a test"}}, expect=201)
    w.api.post(f"{w.base}/monitors/m/mutes", {"feature": "x", "until": "2001-02-01T00:00:00Z", "reason": "known"}, expect=(200, 201, 204))
    return w


FULL = """
apiVersion: tidemill/v1
kind: Pipeline
metadata: {name: full}
spec:
  inputs: {n: {type: integer, default: 1, min: 0, max: 9}, word: {type: string, default: a, choices: [a, b]}}
  datasets: {data: {name: d}}
  models: {champion: {name: m, alias: champion, optional: true}}
  triggers: [{dataset: {name: other}}]
  concurrency: {group: full}
  defaults: {runtimes: [process]}
  steps:
    second: {needs: [first], run: "echo one\\necho two", outputs: {out: {path: out}}}
    first: {run: [echo, two words], placement: {pool: nowhere}}
"""


def env(world):
    return {"PATH": os.environ["PATH"], "TIDEMILL_CONFIG": "/dev/null", "TIDEMILL_SERVER": f"http://127.0.0.1:{world.server.port}",
            "TIDEMILL_TOKEN": world.server.admin().token, "TIDEMILL_PROJECT": world.project, **SANITIZERS}


def piped(world, *args):
    done = subprocess.run([TIDEMILL, *map(str, args)], env=env(world), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def on_a_terminal(world, *args, columns=200):
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (50, columns))
    child = subprocess.Popen([TIDEMILL, *map(str, args)], env=env(world), stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    text = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:
            piece = b""
        if not piece:
            break
        text += piece
    os.close(master)
    assert child.wait(60) == 0, text
    return re.sub(r"\x1b\[[0-9;]*m", "", text.decode()).replace("\r\n", "\n")


SHOWN = ["auth status", "token list", "principal list", "project list", "project show", "project members", "dataset list",
         "dataset show d", "dataset versions d", "dataset files d 1", "pipeline list", "pipeline show full", "pipeline show p", "run list",
         "run show RUN", "run show FULL", "run steps RUN", "run step STEP", "run attempts STEP", "run artifacts RUN", "model list",
         "model show m", "model versions m", "model version m 1", "model alias show m champion", "model alias history m", "model files m 1",
         "monitor list", "monitor show m", "monitor windows m", "monitor metrics m WINDOW", "monitor decisions m", "drift explain DECISION",
         "worker list", "worker show WORKER", "pool list", "pool show POOL", "quota list", "quota show", "queue list", "queue why FULL", "retention run --dry-run"]


def words(world, line):
    full = world.api.get(f"{world.base}/runs?pipeline=full", expect=200).json()["items"][0]["id"]
    ids = {"RUN": world.run, "STEP": world.step, "WINDOW": world.window, "DECISION": world.decision, "WORKER": world.wire.id, "POOL": "default", "FULL": full}
    return [ids.get(w, w) for w in line.split()]


def test_a_paused_pipeline_does_not_say_when_it_starts_next(world):
    text = FULL.replace("name: full", "name: nightly").replace("[{dataset: {name: other}}]", '[{schedule: {cron: "@daily"}}]')
    world.api.put(f"{world.base}/pipelines/nightly", {"source": text}, expect=200)
    assert re.search(r"NEXT\s+@daily\s+.*\(in \d", on_a_terminal(world, "pipeline", "show", "nightly"))
    piped(world, "pipeline", "pause", "nightly")
    for show in (on_a_terminal, piped):
        assert re.search(r"NEXT\s+@daily:?\s+none while the pipeline is paused\n", show(world, "pipeline", "show", "nightly"))
    piped(world, "pipeline", "resume", "nightly")
    assert re.search(r"NEXT\s+@daily\s+.*\(in \d", on_a_terminal(world, "pipeline", "show", "nightly"))


@pytest.mark.parametrize("line", SHOWN)
def test_no_cell_is_json(world, line):
    args = words(world, line)
    wide, narrow, plain = on_a_terminal(world, *args), on_a_terminal(world, *args, columns=80), piped(world, *args)
    for text in (wide, narrow, plain):
        assert not re.search(r'[{[]["{[]|"[}\]]|":|\{\}|\[\]|\bnull\b', text), text
    assert wide.strip() and plain.strip()
    assert "\t" not in wide + narrow
    # Times are exact where programs read them, and for people on a terminal.
    assert not re.search(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d", wide), wide
    # Where columns can give way, no row of a list is wider than the terminal.
    if line.split()[1] in ("list", "versions", "windows", "decisions", "attempts", "steps"):
        assert max(map(len, narrow.splitlines())) <= 80, narrow
    full = json.loads(piped(world, *args, "-o", "json"))
    assert isinstance(full, dict)


def test_every_command_that_shows_is_tried(world):
    help_text = piped(world, "help")
    names = {m[1] for m in re.finditer(r"^  ((?:[a-z-]+ )+?)(?=[A-Z[ ])", help_text, re.M)}
    shows = {n.strip() for n in names if re.search(r"\b(list|show|versions|version|files|windows|metrics|decisions|history|steps|step"
                                                   r"|attempts|artifacts|members|status|explain)\b", n)} - {"version"}
    assert {n for n in shows if not any(line.split()[:len(n.split())] == n.split() for line in SHOWN)} == set()


def test_a_pipeline_as_people_read_it(world):
    text = on_a_terminal(world, "pipeline", "show", "full")
    fields = re.sub(r" {2,}", " | ", text)
    assert "INPUTS | n | integer, default 1, at least 0, at most 9\n | word | string, default a, one of a,b\n" in fields
    assert "DATA | data | d, version latest\n" in fields and "MODELS | champion | m, alias champion, optional\n" in fields
    assert "TRIGGERS | each new version of data set other\n" in fields
    assert "STEPS | first | echo 'two words'\n | second | echo one … | (needs first)\n" in fields
    assert "STEPS\tfirst: echo 'two words'; second: echo one …  (needs first)\n" in piped(world, "pipeline", "show", "full")
    assert piped(world, "pipeline", "show", "full", "--source") == FULL


def test_a_run_with_its_steps(world):
    text = on_a_terminal(world, "run", "show", words(world, "FULL")[0])
    assert re.search(r"^INPUTS +n +2\n +word +a$", text, re.M) and re.search(r"^DATA +data +d, version 1$", text, re.M)
    assert re.search(r"^NAME +ID +STATE", text, re.M) and re.search(r"^second +st_\w+ +waiting", text, re.M)
    assert re.search(r"^CREATED +20\d\d-\d\d-\d\d \d\d:\d\d:\d\dZ \(\d+[sm] ago\)$", text, re.M)
    plain = piped(world, "run", "show", world.ended_run)
    assert re.search(r"^DURATION\t\d+\.\d{3}$", plain, re.M) and re.search(r"^CREATED\t20\S+T\S+Z$", plain, re.M)


def test_artifacts_are_found_by_the_run(world):
    assert "out" in piped(world, "run", "step", world.ended_step)
    by_run, by_tracking = (piped(world, "run", "artifacts", x) for x in (world.run, world.tracking))
    assert by_run == by_tracking and "\nf.csv\t" in by_run
    full = words(world, "FULL")[0]
    done = subprocess.run([TIDEMILL, "run", "artifacts", full], env=env(world), capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "--step with one of: " in done.stderr
    assert piped(world, "run", "artifacts", full, "--step", "first").startswith("PATH\t")


def test_an_empty_list_says_so_on_a_terminal(world):
    assert on_a_terminal(world, "run", "list", "--pipeline", "none") == "There are none.\n"
    assert piped(world, "run", "list", "--pipeline", "none").startswith("ID\tPIPELINE\t")


def test_long_cells_are_cut_visibly(world):
    text = on_a_terminal(world, "monitor", "decisions", "m", columns=80)
    assert any(line.endswith("…") and len(line) <= 80 for line in text.splitlines())
    assert "…" not in piped(world, "monitor", "decisions", "m")
