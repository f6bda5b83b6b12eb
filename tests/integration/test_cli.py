"""The command line: against the real server where that can be made to do it, else against tests/fakes/fake_api.py."""
import hashlib
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "fakes"))
from fake_api import TOKEN, FakeApi  # noqa: E402
from harness import BUILD, ROOT, SANITIZERS, Server, until  # noqa: E402
from stack import Worker  # noqa: E402

TIDEMILL = BUILD / "tidemill"


@pytest.fixture(scope="session", autouse=True)
def built():
    subprocess.run(["make", "-s", str(TIDEMILL.relative_to(ROOT))], cwd=ROOT, check=True)


class Cli:
    """The program with a home of its own."""

    def __init__(self, home, **env):
        self.home = home
        self.env = {"PATH": os.environ["PATH"], "XDG_CONFIG_HOME": str(home), **SANITIZERS, **env}

    def start(self, *args, **kw):
        return subprocess.Popen([str(TIDEMILL), *map(str, args)], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, **kw)

    def run(self, *args, stdin="", expect=0):
        done = subprocess.run([str(TIDEMILL), *map(str, args)], env=self.env, input=stdin, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=60)
        assert done.returncode == expect, (done.returncode, done.stdout, done.stderr)
        return done

    def json(self, *args, **kw):
        return json.loads(self.run(*args, "-o", "json", **kw).stdout)


@pytest.fixture
def fake(tmp_path):
    with FakeApi() as api:
        cli = Cli(tmp_path, TIDEMILL_SERVER=api.url, TIDEMILL_TOKEN=TOKEN, TIDEMILL_PROJECT="p")
        cli.api = api
        yield cli


# ---- the words on the command line ---------------------------------------------------------------


def all_commands(cli):
    lines = cli.run("help").stdout.split("\nFlags of every command:")[0].splitlines()[1:]
    return [re.match(r"  ((?:[a-z-]+ ?)+)", line)[1].split() for line in lines if line]


def test_help_needs_no_server(tmp_path):
    cli = Cli(tmp_path)
    names = all_commands(cli)
    assert len(names) > 70
    for words in names:
        for flag in ("--help", "-h"):
            assert f"usage: tidemill {' '.join(words)}" in cli.run(*words, flag).stdout
    groups = {tuple(w[:n]) for w in names for n in range(1, len(w))} - {tuple(w) for w in names}
    assert ("model", "alias") in groups
    for group in groups:
        want = [" ".join(w) for w in names if tuple(w[:len(group)]) == group]
        for asked in ([*group, "--help"], [*group, "-h"], ["-h", *group], ["help", *group]):
            done = cli.run(*asked)
            assert all(f"  {name} " in done.stdout for name in want) and done.stderr == ""
        said = cli.run(*group, expect=2)
        assert said.stdout == "" and f"  {want[0]} " in said.stderr
    assert cli.run("--help").stdout == cli.run("help").stdout == cli.run("-h").stdout
    assert " 10  the run failed" in cli.run("help", "exit-codes").stdout
    for version in (["--version"], ["-V"], ["run", "list", "--version"]):
        assert re.fullmatch(r"tidemill [0-9.]+\n", cli.run(*version).stdout)


def test_the_versions_of_both_sides(tmp_path, real):
    ours = Cli(tmp_path).run("--version").stdout
    done = real.run("version")
    assert done.stdout == ours + f"server {ours.split()[1]}, API v1, at {real.url}\n" and done.stderr == ""
    assert real.json("version") == {"client": ours.split()[1], "server": {"server": ours.split()[1], "api": "v1"}}
    alone = Cli(tmp_path).run("version")
    assert alone.stdout == ours and "no server is known" in alone.stderr
    away = Cli(tmp_path).run("version", "--server", "http://127.0.0.1:1")
    assert away.stdout == ours and "Failed to connect" in away.stderr


@pytest.mark.parametrize("args, said", [
    (["run", "lst"], "did you mean 'run list'?; see 'tidemill help'"), (["runs"], "did you mean 'run'?"),
    (["run", "frobnicate", "x"], "no command 'run frobnicate x', only: submit, list, "), (["help", "rnu"], "did you mean 'run'?"),
    (["frobnicate", "--bogus"], "no command 'frobnicate'; see 'tidemill help'"), (["run", "list", "--limt", "3"], "unknown flag '--limt'"),
    (["run", "list", "--limit", "x"], "whole number"), (["run", "show"], "usage: tidemill run show RUN"),
    (["run", "show", "a", "b"], "usage: tidemill run show RUN"), (["run", "list", "-o", "xml"], "table, json, jsonl or name"),
    (["run", "list", "--limit"], "needs a value"), (["run", "submit"], "PIPELINE or give --file"), (["run", "submit", "a", "--pipeline", "b"], "named twice"),
    (["monitor", "close", "m", "--start", "2004-01-01", "--before", "2004-04-01"], "not both"),
    (["run", "delete", "run_1"], "give --yes"), (["run", "wait", "r", "--timeout", "1y"], "a time like"),
    (["run", "submit", "x", "--input", "novalue"], "NAME=VALUE"), (["run", "show", ".."], "cannot be the name"),
    (["completion", "tcsh"], "bash, zsh and fish")])
def test_a_mistake_is_named(fake, args, said):
    assert said in fake.run(*args, expect=2).stderr


PROBES = [("model alias ", ["history", "remove", "set", "show"]), ("run submit --fo", ["--follow"]), ("run steps --limi", ["--limit"]),
          ("run step --limi", []), ("--qui", ["--quiet"]), ("dataset pus", ["push"])]


@pytest.mark.parametrize("typed, words", PROBES)
def test_bash_completes(tmp_path, typed, words):
    text = Cli(tmp_path).run("completion", "bash").stdout
    probe = text + f"\nCOMP_WORDS=(tidemill {typed}{' ' * typed.endswith(' ')}{chr(39) * 2 * typed.endswith(' ')})" \
        '\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _tidemill; printf "%s\\n" "${COMPREPLY[@]}"'
    out = subprocess.run(["bash", "-c", probe], capture_output=True, text=True, check=True, cwd=tmp_path).stdout.split()
    assert sorted(out) == words


@pytest.mark.parametrize("typed, words", PROBES)
def test_fish_completes(tmp_path, typed, words):
    if not shutil.which("fish"):
        pytest.skip("n/a: fish is not installed")
    (tmp_path / "c.fish").write_text(Cli(tmp_path).run("completion", "fish").stdout)
    out = subprocess.run(["fish", "--no-config", "-c", f"source {tmp_path}/c.fish; complete -C 'tidemill {typed}'"], cwd=tmp_path,
                         env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)}, capture_output=True, text=True, check=True).stdout
    assert sorted(line.split("\t")[0] for line in out.splitlines()) == words


@pytest.mark.parametrize("typed, words", PROBES)
def test_zsh_completes(tmp_path, typed, words):
    if not shutil.which("zsh"):
        pytest.skip("n/a: zsh is not installed")
    text = Cli(tmp_path).run("completion", "zsh").stdout
    # What the completion system does with the words is its own; here they are printed, those that begin as typed.
    given = typed.split() + [""] * typed.endswith(" ")
    probe = "compdef() { : }\n_files() { : }\n" \
        'compadd() { shift; for w in "$@"; do [[ $w == ${words[CURRENT]}* ]] && print -r -- $w; done; true }\n' \
        f"{text}\nwords=(tidemill {' '.join(w or chr(39) * 2 for w in given)}); CURRENT=${{#words}}; _tidemill"
    out = subprocess.run(["zsh", "-f", "-c", probe], capture_output=True, text=True, check=True, cwd=tmp_path).stdout.split()
    assert sorted(out) == words


def test_the_manual_page(tmp_path):
    cli = Cli(tmp_path)
    page = cli.run("help", "man").stdout
    assert page.startswith('.TH TIDEMILL 1 ""')
    for words in all_commands(cli):
        assert f"\n.SS {' '.join(words)}".replace("-", "\\-") in page
    for head in ("NAME", "SYNOPSIS", "OPTIONS", "EXIT STATUS", "ENVIRONMENT"):
        assert f"\n.SH {head}\n" in page
    if not shutil.which("groff"):
        pytest.skip("n/a: groff is not installed")
    read = subprocess.run(["groff", "-man", "-Tutf8", "-K", "utf8", "-ww"], input=page, capture_output=True, text=True, check=True)
    assert read.stderr == "" and "TIDEMILL_TOKEN_FILE" in re.sub(".\b", "", read.stdout)


OPENS = [["dataset", "push", "d"], ["monitor", "observe", "m"], ["monitor", "labels", "m"], ["apply", "-f"], ["run", "submit", "-f"],
         ["api", "post", "/x", "-f"], ["run", "list", "--ca-file"]]


@pytest.mark.parametrize("args", OPENS, ids=" ".join)
def test_only_regular_files_are_opened(fake, tmp_path, args):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "locked").write_text("x")
    for name, said in (("pipe", "is a pipe; it must be a regular file"), ("/dev/null", "is a device; it must be a regular file"),
                       ("missing", "No such file"), ("locked/x", "Not a directory"), ("folder", "")):
        error = fake.run(*args, tmp_path / name, expect=2).stderr
        assert name in error and said in error
    assert not [s for s in fake.api.seen if s[0] != "GET"]


def test_what_is_no_file_in_a_folder_is_left_out(real, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    os.mkfifo(data / "pipe")
    assert "there are no files" in real.run("dataset", "push", "mixed", data, expect=2).stderr
    (data / "empty").write_text("")
    done = real.run("dataset", "push", "mixed", data, "-o", "json")
    assert "pipe is no regular file: left out" in done.stderr and json.loads(done.stdout)["files"] == 1


def test_a_missing_token_file_is_named(fake, tmp_path):
    del fake.env["TIDEMILL_TOKEN"]
    fake.env["TIDEMILL_TOKEN_FILE"] = str(tmp_path / "gone")
    assert "TIDEMILL_TOKEN_FILE" in fake.run("run", "list", expect=2).stderr


@pytest.mark.parametrize("variable", ["TIDEMILL_TOKEN_FILE", "TIDEMILL_CONFIG"])
def test_settings_are_regular_files(fake, tmp_path, variable):
    del fake.env["TIDEMILL_TOKEN"]
    os.mkfifo(tmp_path / "pipe")
    for path, what in ((tmp_path / "pipe", "a pipe"), (tmp_path, "a folder"), ("/dev/zero", "a device")):
        fake.env[variable] = str(path)
        assert f"{path} is {what}; it must be a regular file" in fake.run("run", "list", expect=2).stderr


def test_the_token_that_is_refused_is_named(fake, tmp_path):
    def error():
        return fake.run("run", "list", expect=4).stderr.splitlines()[1:]
    login = f"To log in: tidemill auth login --server {fake.api.url}"
    first = "; then unset the variable, which goes first"
    fake.env["TIDEMILL_TOKEN"] = "wrong"
    assert error() == ["The token that was sent is that of the variable TIDEMILL_TOKEN.", login + first]
    del fake.env["TIDEMILL_TOKEN"]
    config = tmp_path / "tidemill" / "config"
    assert error() == [f"No token was sent: {config} has none, and TIDEMILL_TOKEN is not set.", login]
    config.parent.mkdir()
    config.write_text("token = wrong\n")
    config.chmod(0o600)
    assert error() == [f"The token that was sent is that of {config}.", login]
    (tmp_path / "token").write_text("wrong\n")
    fake.env["TIDEMILL_TOKEN_FILE"] = str(tmp_path / "token")
    assert error() == [f"The token that was sent is that of {tmp_path}/token (TIDEMILL_TOKEN_FILE).", login + first]
    (tmp_path / "token").write_text("\n")
    assert "token is empty" in fake.run("run", "list", expect=2).stderr
    assert "that of stdin." in fake.run("auth", "login", "--token-stdin", stdin="wrong\n", expect=4).stderr


def test_plain_http_goes_to_this_host_only(tmp_path):
    cli = Cli(tmp_path, TIDEMILL_TOKEN=TOKEN)
    assert "plain HTTP to another host" in cli.run("auth", "status", "--server", "http://192.0.2.1:1", expect=2).stderr


def test_an_unreachable_server_is_6(tmp_path):
    cli = Cli(tmp_path, TIDEMILL_TOKEN=TOKEN, TIDEMILL_PROJECT="p")
    done = cli.run("events", "--server", "http://127.0.0.1:1", "--from", "1", expect=6)
    assert done.stderr.splitlines()[-1].startswith("error: The server cannot be reached: ")


# ---- runs, against the fake ----------------------------------------------------------------------


@pytest.mark.parametrize("run, code", [("run_ok", 0), ("run_failed", 10), ("run_cancelled", 11), ("run_lost", 13), ("run_none", 3)])
def test_the_exit_code_tells_how_the_run_ended(fake, run, code):
    done = fake.run("run", "wait", run, expect=code)
    if code == 3:
        assert done.stderr == "error: Not found: there is no run run_none (request req_fake)\n"
    if code == 10:
        assert "Step train failed: The command ended with exit code 3" in done.stderr
        assert "five" in done.stderr and "tidemill logs run_failed --step train" in done.stderr


def test_a_refused_model_fails_when_asked(fake):
    assert "refused. Because." in fake.run("run", "wait", "run_refused").stderr
    fake.run("run", "wait", "run_refused", "--fail-on-refused", expect=12)
    fake.run("run", "wait", "run_ok", "--fail-on-refused")


def test_a_timeout_leaves_the_run(fake):
    assert "goes on" in fake.run("run", "wait", "run_never", "--timeout", "1s", expect=7).stderr


def test_an_interrupt_says_that_the_run_goes_on(fake):
    waiting = fake.start("run", "wait", "run_never")
    until(lambda: any("wait=" in s[1] for s in fake.api.seen))
    waiting.send_signal(signal.SIGINT)
    _, err = waiting.communicate(timeout=20)
    assert waiting.returncode == 130 and "The run goes on" in err


def test_a_creating_post_is_repeated_with_its_key(tmp_path):
    with FakeApi(failing_posts=2) as api:
        cli = Cli(tmp_path, TIDEMILL_SERVER=api.url, TIDEMILL_TOKEN=TOKEN, TIDEMILL_PROJECT="p")
        assert cli.run("run", "submit", "--pipeline", "train", "-o", "name").stdout == "run_ok\n"
        keys = [s[2]["Idempotency-Key"] for s in api.seen if s[0] == "POST"]
        assert len(keys) == 3 and len(set(keys)) == 1


def test_what_is_waited_for_is_said_once(tmp_path):
    for quiet, said in (([], ["Not ready; trying again for up to 29 s"]), (["--quiet"], [])):
        with FakeApi(failing_posts=3) as api:
            cli = Cli(tmp_path, TIDEMILL_SERVER=api.url, TIDEMILL_TOKEN=TOKEN, TIDEMILL_PROJECT="p")
            assert cli.run("run", "submit", "train", "-o", "name", *quiet).stderr.splitlines() == said


def test_trying_again_has_an_end(tmp_path):
    with FakeApi(failing_posts=3, Retry_After="31") as api:  # later than it would try
        cli = Cli(tmp_path, TIDEMILL_SERVER=api.url, TIDEMILL_TOKEN=TOKEN, TIDEMILL_PROJECT="p")
        assert cli.run("run", "submit", "train", expect=6).stderr == "error: Not ready (request req_fake)\n"
        assert len(api.seen) == 1


def test_a_person_is_told_what_is_waited_for(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        cli = Cli(tmp_path, TIDEMILL_TOKEN=TOKEN, TIDEMILL_PROJECT="p", TIDEMILL_SERVER=f"http://127.0.0.1:{deaf.getsockname()[1]}")
        master, slave = pty.openpty()
        asking = subprocess.Popen([str(TIDEMILL), "run", "list"], env=cli.env, stdout=subprocess.DEVNULL, stderr=slave)
        try:
            assert select.select([master], [], [], 20)[0]
            assert os.read(master, 200).decode().startswith("Waiting for an answer of http://127.0.0.1:")
        finally:
            asking.kill()
            asking.wait()
            os.close(slave)
            os.close(master)


def test_who_breaks_off_while_a_token_is_asked_for_sees_again_what_he_types(tmp_path):
    master, slave = pty.openpty()
    asking = subprocess.Popen([str(TIDEMILL), "auth", "login", "--server", "http://127.0.0.1:9"], env=Cli(tmp_path).env,
                              stdin=slave, stdout=subprocess.DEVNULL, stderr=slave)

    def shown():
        return bool(termios.tcgetattr(slave)[3] & termios.ECHO)
    try:
        until(lambda: not shown(), 20)
        asking.send_signal(signal.SIGINT)
        assert asking.wait(20) == 130 and shown()
    finally:
        asking.kill()
        asking.wait()
        os.close(slave)
        os.close(master)


def test_inputs_get_the_type_that_the_pipeline_wants(fake):
    fake.run("run", "submit", "train", "-i", "n=0.5", "-i", "text=7", "-i", "other=true", "--label", "a=b")
    body = json.loads(next(s[3] for s in fake.api.seen if s[0] == "POST"))
    assert body == {"pipeline": "train", "inputs": {"n": 0.5, "text": "7", "other": True}, "labels": {"a": "b"}}


def test_a_followed_log_has_every_line_once(fake):
    done = fake.run("logs", "run_ok", "--follow")
    assert done.stdout == "one\nthree\ntwo, now whole\nfour \x1b[31mred\x1b[0m\n[tidemill] five\n"
    asked = [s[1] for s in fake.api.seen if "follow" in s[1]]
    assert [a.split("from=")[1].split("&")[0] for a in asked] == ["1", "2", "5"]


def test_a_log_by_its_end(fake):
    done = fake.run("logs", "run_ok", "--tail", "2", "--timestamps", "-q")
    assert done.stdout == "2026-01-01T00:00:04Z four \x1b[31mred\x1b[0m\n2026-01-01T00:00:05Z [tidemill] five\n"
    assert done.stderr == ""
    none = fake.run("logs", "run_ok", "--tail", "0")
    assert (none.stdout, none.stderr) == ("", "")
    assert fake.run("logs", "run_ok", "--tail", "0", "--attempt", "at_1").stdout == ""
    assert "goes with neither" in fake.run("logs", "run_ok", "--tail", "0", "--raw", expect=2).stderr
    assert "no step gone" in fake.run("logs", "run_ok", "--step", "gone", expect=3).stderr


def test_a_followed_log_is_searched_as_it_comes(fake):
    done = fake.run("logs", "run_ok", "--follow", "--grep", "t[hw]", "--regex")
    assert done.stdout == "3:three\n2:two, now whole\n"
    assert fake.run("logs", "run_ok", "--follow", "--grep", "T[HW]").stdout == ""
    assert "is no regular expression: missing ]" in fake.run("logs", "run_ok", "--grep", "[", "--regex", expect=2).stderr
    assert "go with --grep" in fake.run("logs", "run_ok", "--regex", expect=2).stderr
    assert "go with neither" in fake.run("logs", "run_ok", "--grep", "x", "--tail", "2", expect=2).stderr


# ---- output --------------------------------------------------------------------------------------


def test_lists_go_over_all_pages(fake):
    assert len(fake.json("run", "list", "--limit", "0")["items"]) == 250
    part = fake.json("run", "list", "--limit", "120")
    assert len(part["items"]) == 120 and part["next_cursor"] == "120"
    assert fake.run("run", "list", "--limit", "3", "-o", "name").stdout == "run_0\nrun_1\nrun_2\n"
    assert len(fake.run("run", "list", "--limit", "0", "-o", "jsonl").stdout.splitlines()) == 250


def test_a_pipe_gets_tabs_and_no_colours(fake):
    head, row = fake.run("run", "list", "--limit", "1").stdout.splitlines()
    assert head.split("\t")[:4] == ["ID", "PIPELINE", "NUMBER", "STATE"]
    assert row.split("\t")[:4] == ["run_0", "train", "1", "succeeded"]


def test_a_list_without_pages_is_longer_than_a_screen(fake):
    rows = fake.run("monitor", "metrics", "m", "win_1").stdout.splitlines()
    assert len(rows) == 501 and rows[500].split("\t")[:4] == ["f499", "", "psi", repr(499 / 7)]


def test_a_decision_is_explained(fake):
    text = fake.run("drift", "explain", "dec_1").stdout
    assert text.startswith("Monitor m, window 2008-01-01 to 2008-04-01, cause drift\n\nIt moved.\n\nAction: alert, not taken: muted\n")
    assert "    rows: 91\n" in text and "    name=f9,value=9\n    and 2 more\n" in text


def on_a_terminal(cli, *args):
    master, slave = pty.openpty()
    done = subprocess.Popen([str(TIDEMILL), *args], env=cli.env, stdout=slave, stdin=slave, stderr=slave)
    os.close(slave)
    text = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:
            break
        if not piece:
            break
        text += piece
    os.close(master)
    assert done.wait(20) == 0, text
    return text.decode()


def test_a_terminal_gets_a_table(fake):
    text = on_a_terminal(fake, "run", "list", "--limit", "2")
    assert "\x1b[32msucceeded\x1b[0m" in text and "\t" not in text
    assert "\x1b[" not in on_a_terminal(fake, "run", "list", "--limit", "2", "--no-color")
    fake.env["NO_COLOR"] = "1"
    assert "\x1b[" not in on_a_terminal(fake, "run", "list", "--limit", "2")


def test_a_failed_run_shows_what_its_end_rests_on(fake):
    text = on_a_terminal(fake, "run", "show", "run_failed", "--no-color").replace("\r\n", "\n")
    end = text[text.index("Step train failed\n"):]
    assert [re.split(r" {2,}", line) for line in end.splitlines()] == [
        ["Step train failed"], ["REASON", "exit_code"], ["MESSAGE", "the command ended with exit code 3"], ["WORKER", "w1"], ["EXIT", "3"],
        ["PEAK MEMORY", "84 MiB"], ["PROCESSOR TIME", "0.81 s, and 0.09 s in the kernel"], ["OUTPUT", "412 B"],
        ["LOG ENDS WITH", "one"], ["", "boom [2J"], ["", "two"]]
    assert "Step train" not in on_a_terminal(fake, "run", "show", "run_ok")


def test_conflict_is_5_and_no_permission_4(fake):
    assert fake.run("dataset", "create", "d", expect=5).stderr == \
        "error: Conflict with the current state: the name is taken (request req_fake)\n"
    fake.env["TIDEMILL_TOKEN"] = "tdm_pat_wrong"
    fake.run("auth", "status", expect=4)
    del fake.env["TIDEMILL_TOKEN"]
    fake.run("auth", "status", expect=4)


# ---- the real server -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(postgres):
    with Server(postgres, allow_local_git="1") as s:
        yield s


@pytest.fixture(scope="module")
def real(server, tmp_path_factory):
    """Logged in by a bootstrap token, as a first administrator does it."""
    cli = Cli(tmp_path_factory.mktemp("home"))
    cli.url = f"http://127.0.0.1:{server.port}"
    server.admin()  # the first administrator is the harness's
    token = server.command("bootstrap", "--recover").split()[-1]
    cli.server = server
    cli.bootstrap = token
    pat = server.admin().post("/api/v1/tokens", {"name": "cli"}, expect=201).json()["token"]
    cli.run("auth", "login", "--server", cli.url, "--project", "transit", "--token-stdin", stdin=pat + "\n")
    cli.run("project", "create", "transit", "--logs", "30d")
    return cli


def test_login_keeps_what_it_needs(real):
    path = real.home / "tidemill" / "config"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert f"server = {real.url}" in path.read_text() and "project = transit" in path.read_text()
    assert real.json("auth", "status")["admin"] is True
    path.chmod(0o644)
    assert "others may read it" in real.run("auth", "status", expect=2).stderr
    path.chmod(0o600)


def test_a_token_file_beats_the_config(real, tmp_path):
    token = real.run("token", "create", "ci", "--kind", "ci", "--role", "ci", "--only-project", "transit", "-q").stdout
    (tmp_path / "token").write_text(token)
    ci = Cli(real.home, TIDEMILL_TOKEN_FILE=str(tmp_path / "token"))
    assert ci.json("auth", "status")["kind"] == "ci"
    assert "request " in ci.run("project", "create", "other", expect=4).stderr
    row = next(t for t in real.json("token", "list")["items"] if t["name"] == "ci")
    assert real.run("token", "revoke", row["id"], "--yes").stderr == f"{row['id']}: revoked\n"
    ci.run("auth", "status", expect=4)


def test_logout_forgets(real, tmp_path):
    token = real.run("token", "create", "short", "-q").stdout
    other = Cli(tmp_path)
    other.run("auth", "login", "--server", real.url, "--token-stdin", stdin=token)
    other.run("auth", "logout", "--revoke")
    assert "token" not in (tmp_path / "tidemill" / "config").read_text().replace("auth login", "")
    other.run("auth", "login", "--server", real.url, "--token-stdin", stdin=token, expect=4)


def test_projects_and_members(real):
    assert real.json("project", "show")["retention"] == {"logs": "30d"}
    real.run("project", "retention", "--runs", "90d", "--logs", "keep")
    assert real.json("project", "show")["retention"] == {"runs": "90d"}
    assert real.json("project", "retention")["retention"] == {"runs": "90d"}
    assert "runs=90d" in real.run("project", "retention").stdout
    real.run("principal", "create", "ben")
    real.run("member", "set", "ben", "viewer")
    assert real.json("project", "members")["items"] == [{"principal": "ben", "role": "viewer"}]
    token = real.run("token", "create", "theirs", "--for", "ben", "-q").stdout.strip()
    ben = Cli(real.home, TIDEMILL_TOKEN=token)
    assert [p["name"] for p in ben.json("project", "list")["items"]] == ["transit"]
    assert real.run("token", "revoke", real.json("token", "list")["items"][0]["id"], expect=2).stderr.count("give --yes") == 1
    disabled = real.run("principal", "disable", "ben", "--yes")
    assert disabled.stderr == "ben: disabled\n"
    assert real.run("member", "set", "ben", "king", expect=2).stderr.startswith("error: The request is not valid: /role: ")
    real.run("member", "remove", "ben", "--yes")
    real.run("project", "create", "gone")
    real.run("project", "delete", "gone", "--yes")
    real.run("project", "show", "gone", expect=3)


@pytest.mark.parametrize("name,words", [(b"a\xffb", "a?b is not UTF-8"), (b"a\nb", "a?b has a control character")])
def test_files_that_no_data_set_can_name_are_named(fake, tmp_path, name, words):
    folder = tmp_path / "data"
    folder.mkdir()
    with open(os.path.join(os.fsencode(folder), name), "w") as f:
        f.write("x")
    assert words in fake.run("dataset", "push", "d", str(folder), expect=2).stderr


def test_push_append_and_download(real, tmp_path):
    data = tmp_path / "data"
    (data / "sub").mkdir(parents=True)
    (data / "a.csv").write_text("x\n1\n")
    (data / "sub" / "b c%.csv").write_bytes(os.urandom(3_000_000))
    first = real.json("dataset", "push", "rides", data)
    assert (first["number"], first["files"]) == (1, 2)
    (tmp_path / "late.csv").write_text("x\n2\n")
    second = real.json("dataset", "push", "rides", tmp_path / "late.csv", "--append", "--label", "quarter=2004Q1")
    assert (second["number"], second["files"], second["labels"]) == (2, 3, {"quarter": "2004Q1"})
    out = tmp_path / "out"
    real.run("dataset", "download", "rides", "latest", out)
    assert (out / "sub" / "b c%.csv").read_bytes() == (data / "sub" / "b c%.csv").read_bytes()
    assert sorted(p.name for p in out.rglob("*") if p.is_file()) == ["a.csv", "b c%.csv", "late.csv"]
    digests = {f["path"]: f["digest"] for f in real.json("dataset", "files", "rides", "2")["items"]}
    assert digests["late.csv"] == hashlib.sha256(b"x\n2\n").hexdigest()
    assert "would both be called" in real.run("dataset", "push", "rides", data / "a.csv", data, expect=2).stderr
    real.run("dataset", "delete", "rides", "--yes")
    real.run("dataset", "show", "rides", expect=3)


def test_any_address(real):
    assert json.loads(real.run("api", "get", "/api/v1/auth/self").stdout)["admin"] is True
    made = json.loads(real.run("api", "post", "/api/v1/projects/transit/datasets", "-d", '{"name": "raw"}').stdout)
    assert made["name"] == "raw"
    refused = real.run("api", "POST", "/api/v1/projects/transit/datasets", "-f", "-", stdin='{"name": 7}', expect=2)
    assert json.loads(refused.stdout)["status"] == 422 and "/name" in refused.stderr


# ---- runs, on a real worker ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def worker(real):
    subprocess.run(["make", "-s", *(str((BUILD / p).relative_to(ROOT)) for p in ("tidemill-worker", "tidemill-init", "tidemill-git"))],
                   cwd=ROOT, check=True)
    with Worker(real.server, "cli-worker") as w:
        yield w


def write_pipeline(folder, name, script, needs=None):
    path = folder / f"{name}.yaml"
    after = f"\n    then: {{needs: [work], run: {json.dumps(needs)}}}" if needs else ""
    path.write_text(f"""apiVersion: tidemill/v1
kind: Pipeline
metadata: {{name: {name}}}
spec:
  inputs: {{n: {{type: integer, default: 3}}, word: {{type: string, default: "7"}}}}
  defaults: {{runtimes: [process], resources: {{cpus: 0.1, memory: 16MiB}}}}
  steps:
    work: {{run: {json.dumps(script)}}}{after}
""")
    return path


def test_apply_says_what_changed(real, tmp_path):
    path = write_pipeline(tmp_path, "applied", "echo one")
    assert real.run("apply", "-f", path).stderr == "pipeline applied created\n"
    assert real.run("apply", "-f", path).stderr == "pipeline applied unchanged\n"
    write_pipeline(tmp_path, "applied", "echo two")
    assert '/spec/steps/work/run: "echo one" -> "echo two"' in real.run("apply", "-f", path).stderr
    path.write_text(path.read_text().replace("inputs:", "inptus:"))
    assert "did you mean" in real.run("apply", "-f", path, expect=2).stderr
    path.write_text("kind: [")
    assert str(path) in real.run("apply", "-f", path, expect=2).stderr


HEAD = "apiVersion: tidemill/v1\nkind: Pipeline\nmetadata: {name: %s}\nspec:\n"
MONITOR = """apiVersion: tidemill/v1
kind: Monitor
metadata: {name: m}
spec:
  subject: {model: nothing, alias: champion}
  reference: training
  columns: {id: a, time: %s, prediction: c}
  window: {size: 1d}
  min_samples: 60
  tests: {numeric: psi, categorical: psi}
"""


@pytest.mark.parametrize("text, said", [
    ("  steps:\n    a: {run: x, needs: [b]}\n    b: {run: x, needs: [a]}\n", "6:17: /spec/steps/a/needs: steps need each other"),
    ("  steps:\n    a:\n      run: x\n      needs:\n      - b\n", "9:9: /spec/steps/a/needs/0: there is no step 'b'"),
    ("  inputs: {n: {type: integer, default: x}}\n  steps: {a: {run: x}}\n", "5:31: /spec/inputs/n/default: must be"),
    ("  steps:\n    a:\n      run: x\n      env: {a b: x}\n", "8:13: /spec/steps/a/env/a b: must be"),
    ("  steps:\n    a:\n      run: x\n      outputs: {o: {path: ../x, kind: model}}\n", "8:21: /spec/steps/a/outputs/o/path:"),
    ("  stesp: {}\n", "5:3: /spec/stesp: is not known here; did you mean 'steps'?")])
def test_apply_names_file_line_and_column(real, tmp_path, text, said):
    path = tmp_path / "wrong.yaml"
    path.write_text(HEAD % "wrong" + text)
    for args in (["apply", "-f", path], ["run", "submit", "-f", path]):
        assert f"error: The request is not valid: {path}:{said}" in real.run(*args, expect=2).stderr


def test_a_run_that_cannot_be_says_where_in_its_file(real, tmp_path):
    path = tmp_path / "wrong.yaml"
    path.write_text(HEAD % "wrong" + "  inputs: {n: {type: integer}}\n  datasets:\n    d: {name: nothing}\n  steps: {a: {run: x}}\n")
    assert f"{path}:7:5: /spec/datasets/d: there is no" in real.run("run", "submit", "-f", path, "-i", "n=1", expect=2).stderr
    assert "not valid: /inputs/n: " in real.run("run", "submit", "-f", path, "-i", "n=x", expect=2).stderr  # not of the file


def test_files_of_several_documents(real, tmp_path):
    path = tmp_path / "two.yaml"
    good = HEAD % "first" + "  steps: {a: {run: x}}\n---\n"
    path.write_text("# both\n---\n" + good + MONITOR % "a")
    done = real.run("apply", "-f", path, expect=2)
    assert "created" not in done.stderr and f"{path}:15:20: /spec/columns/time: must be" in done.stderr
    path.write_text(good + MONITOR % "b")
    assert f"{path}:11:13: /spec/subject/model: there is no model" in real.run("apply", "-f", path, expect=2).stderr
    path.write_text(good + "kind: [\n")
    assert real.run("apply", "-f", path, expect=2).stderr.startswith(f"error: The command is not valid: {path}:8:1: ")  # nothing was sent
    assert "holds 2 documents" in real.run("run", "submit", "-f", path, expect=2).stderr
    assert real.run("apply", "-f", "-", stdin=good + good.replace("first", "second")).stderr.splitlines() == [
        "pipeline first created", "pipeline second created"]


def triggered(folder, name, by=None):
    path = folder / f"{name}.yaml"
    path.write_text(HEAD % name + "  steps: {a: {run: x}}\n" + (f"  triggers:\n  - pipeline: {{name: {by}}}\n" if by else ""))
    return path


def test_of_several_documents_none_is_sent_when_one_is_refused(real, tmp_path):
    good, bad = triggered(tmp_path, "whole"), tmp_path / "bad.yaml"
    bad.write_text(HEAD % "bad" + "  steps:\n    a: {run: x, needs: [a]}\n")
    assert f"{bad}:6:25: /spec/steps/a/needs/0: a step cannot need itself" in real.run("apply", "-f", good, "-f", bad, expect=2).stderr
    real.run("pipeline", "show", "whole", expect=3)
    own = triggered(tmp_path, "own", "own")
    assert f"{own}:7:16: /spec/triggers/0/pipeline/name: a pipeline cannot" in real.run("apply", "-f", good, "-f", own, expect=2).stderr
    one, two, three = triggered(tmp_path, "one", "three"), triggered(tmp_path, "two", "one"), triggered(tmp_path, "three", "two")
    said = real.run("apply", "-f", good, "-f", one, "-f", two, "-f", three, expect=2).stderr
    assert f"{three}:7:16: /spec/triggers/0/pipeline/name: runs of two start at the end of this" in said
    for name in ("whole", "one", "two", "three"):
        real.run("pipeline", "show", name, expect=3)
    real.run("apply", "-f", two)  # a part of the circle that is there already, seen from what is not
    assert "runs of two start" in real.run("apply", "-f", one, "-f", three, expect=2).stderr
    real.run("pipeline", "show", "one", expect=3)
    real.run("apply", "-f", triggered(tmp_path, "three", "two"), "-f", triggered(tmp_path, "one"))
    triggered(tmp_path, "three"), triggered(tmp_path, "one", "three"), triggered(tmp_path, "two", "one")
    turned = real.run("apply", "-f", three, "-f", one, "-f", two).stderr  # the first opens what the second would close
    assert "pipeline three changed" in turned and "pipeline one changed" in turned


def test_a_dry_put_writes_nothing(real):
    api, url = real.server.admin(), "/api/v1/projects/transit/pipelines/dry"
    text = HEAD % "dry" + "  steps: {a: {run: x}}\n  triggers:\n  - schedule: {cron: '0 3 * * *', timezone: UTC}\n"
    would = api.put(url + "?dry_run=true", {"source": text}, expect=200).json()
    api.get(url, expect=404)
    assert (would["id"], would["name"], would["source"], would["version"]) == ("", "dry", text, 1)
    is_ = api.put(url, {"source": text}, expect=200).json()
    times = ("id", "created_at")
    assert {k: v for k, v in would.items() if k not in times} == {k: v for k, v in is_.items() if k not in times}
    assert api.put(url + "?dry_run=true", {"source": text}, expect=200).json() == is_
    other = text.replace("run: x", "run: y").replace("0 3", "0 4")
    would = api.put(url + "?dry_run=true", {"source": other}, expect=200).json()
    assert api.get(url).json() == is_
    assert would == api.put(url, {"source": other}, expect=200).json() and would["version"] == 2
    assert api.put(url + "?dry_run=true", {"source": text.replace("a:", "'':")}, expect=422).json()["errors"]


@pytest.fixture
def repository(tmp_path):
    """A git repository with one pipeline file; returns the folder and a function that commits what is there."""
    folder = tmp_path / "repo"
    folder.mkdir()

    def git(*args):
        who = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false"]
        return subprocess.run(["git", "-C", str(folder), *who, *args], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()

    def commit():
        git("add", "-A")
        git("commit", "-q", "-m", "change")
        return git("rev-parse", "HEAD")

    git("init", "-q", "-b", "main")
    return folder, git, commit


def test_a_pipeline_keeps_its_repository(real, worker, repository, tmp_path):
    folder, git, commit = repository
    path = write_pipeline(folder, "attached", "cat word.txt")
    (folder / "word.txt").write_text("from the repository\n")
    first = commit()

    def where():
        p = real.json("pipeline", "show", "attached")
        return {k: p[k] for k in ("repository", "ref", "path", "commit")}

    attached = {"repository": str(folder), "ref": "main", "path": "attached.yaml", "commit": first}
    said = real.run("apply", "-f", path, "--repository", folder).stderr
    assert said.startswith("pipeline attached created\n") and f"from {folder}, attached.yaml at main (commit {first[:12]})" in said
    assert where() == attached
    said = real.run("apply", "-f", path).stderr
    assert said.startswith("pipeline attached unchanged\n") and str(folder) in said and "note:" not in said
    assert where() == attached
    assert real.run("run", "submit", "attached", "--follow").stdout == "from the repository\n"

    write_pipeline(folder, "attached", "echo changed; cat word.txt")
    said = real.run("apply", "-f", path).stderr
    assert f"note: {path} differs from the file there" in said and "--detach" in said
    assert where() == attached
    second = commit()
    assert '"cat word.txt" -> "echo changed; cat word.txt"' in real.run("apply", "-f", path).stderr
    assert where() == {**attached, "commit": second}
    git("branch", "old", first)
    real.run("apply", "-f", path, "--ref", "old")
    real.run("apply", "-f", path)
    assert where() == {**attached, "ref": "old"}

    assert "not both" in real.run("apply", "-f", path, "--repository", folder, "--detach", expect=2).stderr
    assert "of a repository" in real.run("apply", "-f", path, "--ref", "main", "--detach", expect=2).stderr
    assert where() == {**attached, "ref": "old"}
    said = real.run("apply", "-f", path, "--detach").stderr
    assert f'/repository: "{folder}" -> ""' in said
    assert where() == dict.fromkeys(attached, "")
    assert "of a repository" in real.run("apply", "-f", path, "--ref", "main", expect=2).stderr
    real.run("apply", "-f", path)
    assert where() == dict.fromkeys(attached, "")


def test_what_a_put_leaves_out_stays(real, repository):
    folder, _, commit = repository
    path = write_pipeline(folder, "kept", "true")
    first = commit()
    api, url = real.server.admin(), "/api/v1/projects/transit/pipelines/kept"

    def where(reply):
        return tuple(reply.json()[k] for k in ("repository", "ref", "path", "commit"))

    assert api.put(url, {}, expect=422).json()["errors"][0]["pointer"] == "/repository"
    assert api.put(url, {"source": ""}, expect=422).json()["errors"][0]["pointer"] == "/source"
    api.put(url, {"repository": str(folder), "path": "kept.yaml", "ref": first}, expect=200)
    here = (str(folder), first, "kept.yaml", first)
    text = path.read_text()
    for body in ({}, {"source": text}, {"repository": str(folder)}, {"path": "kept.yaml"}):
        assert where(api.put(url, body, expect=200)) == here, body
    refused = api.put(url, {"source": text + "# changed\n"}, expect=409).json()
    assert "repository null" in refused["detail"] and where(api.get(url)) == here
    write_pipeline(folder, "kept", "false")
    second = commit()
    assert where(api.put(url, {"ref": None}, expect=200)) == (str(folder), "main", "kept.yaml", second)
    assert api.put(url, {"path": None}, expect=422).json()["errors"][0]["pointer"] == "/path"  # no tidemill.yaml there
    assert api.put(url, {"repository": None, "ref": "main"}, expect=422).json()["errors"][0]["pointer"] == "/ref"
    cleared = api.put(url, {"repository": None}, expect=200)
    assert where(cleared) == ("", "", "", "") and cleared.json()["source"] == path.read_text()
    assert where(api.put(url, {"source": text}, expect=200)) == ("", "", "", "")


def test_what_leads_to_no_file_is_named(real, repository):
    folder, _, commit = repository
    write_pipeline(folder, "named", "true")
    (folder / "other.yaml").write_text((folder / "named.yaml").read_text().replace("name: named", "name: other"))
    (folder / "broken.yaml").write_text((folder / "named.yaml").read_text().replace("steps:", "stepz:"))
    commit()
    api, base = real.server.admin(), "/api/v1/projects/transit"
    here = {"repository": str(folder), "path": "named.yaml"}
    for body, pointer in (({"repository": "ftp://x"}, "/repository"), ({"repository": "/no"}, "/repository"), ({"repository": "x"}, "/repository"),
                          ({**here, "ref": "-x"}, "/ref"), ({**here, "ref": "nowhere"}, "/ref"), ({**here, "ref": "0" * 40}, "/ref"),
                          ({**here, "path": "../x"}, "/path"), ({**here, "path": "nowhere.yaml"}, "/path"),
                          ({**here, "path": "other.yaml"}, "/path"), ({**here, "path": "broken.yaml"}, "/path"),
                          ({"source": (folder / "other.yaml").read_text()}, "/source/metadata/name")):
        [error] = api.put(f"{base}/pipelines/named", body, expect=422).json()["errors"]
        assert (error["in"], error["pointer"]) == ("body", pointer), (body, error)
    [error] = api.put(f"{base}/pipelines/Not%20A%20Name", here, expect=422).json()["errors"]
    assert (error["in"], error["parameter"]) == ("path", "pipeline")
    api.put(f"{base}/pipelines/named", here, expect=200)
    for body, pointer in (({"pipeline": "named", "ref": "nowhere"}, "/ref"), ({"pipeline": "nobody"}, "/pipeline"),
                          ({"pipeline": "named", "inputs": {"no": 1}}, "/inputs/no")):
        [error] = api.post(f"{base}/runs", body, expect=422).json()["errors"]
        assert (error["in"], error["pointer"]) == ("body", pointer), (body, error)
    (folder / "named.yaml").write_text("apiVersion: tidemill/v1\nkind: [\n")
    at = commit()
    api.put(f"{base}/pipelines/named", {"path": "named.yaml"}, expect=422)
    for args in (["run", "submit", "named"], ["pipeline", "register", "named", folder, "--path", "named.yaml"]):
        said = real.run(*args, expect=2).stderr
        assert f"named.yaml at commit {at[:12]}: line 3" in said and "cannot be parsed" not in said
    (folder / "named.yaml").write_text((folder / "broken.yaml").read_text())
    at = commit()
    [error] = api.post(f"{base}/runs", {"pipeline": "named"}, expect=422).json()["errors"]
    assert error["pointer"] == "/pipeline" and error["detail"].startswith(f"named.yaml at commit {at[:12]}: line ") and "/spec/stepz" in error["detail"]
    (folder / "named.yaml").unlink()
    commit()
    [error] = api.post(f"{base}/runs", {"pipeline": "named"}, expect=422).json()["errors"]
    assert error["pointer"] == "/pipeline" and "named.yaml" in error["detail"]


def test_a_run_is_followed_over_its_steps(real, worker, tmp_path):
    path = write_pipeline(tmp_path, "followed", 'echo "n=${inputs.n} word=${inputs.word}"; echo oops >&2; printf "no end"',
                          "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo line $i; done")
    done = real.run("run", "submit", "-f", path, "-i", "n=5", "-i", "word=9", "--follow")
    lines = done.stdout.splitlines()
    assert sorted(lines[:3]) == ["n=5 word=9", "no end", "oops"] and lines[3:] == [f"line {i}" for i in range(1, 2001)]
    assert "==> work <==" in done.stderr and "succeeded" in done.stderr
    run = real.json("run", "list", "--pipeline", "followed")["items"][0]
    assert run["inputs"] == {"n": 5, "word": "9"}
    assert real.run("logs", run["id"], "--step", "then", "--tail", "2").stdout == "line 1999\nline 2000\n"
    assert real.run("logs", run["id"], "--step", "then", "--grep", "e 19[0-9]5$", "--regex").stdout == "".join(
        f"{n}:line {n}\n" for n in range(1905, 2000, 10))
    assert real.run("logs", run["id"], "--step", "then", "--grep", "LINE 2000", "--ignore-case").stdout == "2000:line 2000\n"
    until(lambda: real.run("logs", run["id"], "--step", "then", "--grep", "line 7", "--since", "1s").stdout == "")  # older by then
    assert len(real.run("logs", run["id"], "--step", "then", "--since", "1h").stdout.splitlines()) == 2000
    raw = real.run("logs", run["id"], "--step", "work", "--raw").stdout
    assert sorted(raw.replace("no end", "no end\n").splitlines()) == ["n=5 word=9", "no end", "oops"]
    steps = {s["name"]: s["attempt_id"] for s in real.json("run", "steps", run["id"])["items"]}
    assert list(steps) == ["work", "then"]
    said = [json.loads(line) for line in real.run("logs", run["id"], "-o", "json").stdout.splitlines()]
    assert [(x["step"], x["attempt"]) for x in said] == [("work", steps["work"])] * 3 + [("then", steps["then"])] * 2000
    assert {"line", "time", "stream", "text", "step", "attempt"} <= set(said[0])
    [last] = real.run("logs", run["id"], "--attempt", steps["then"], "--tail", "1", "-o", "json").stdout.splitlines()
    assert (json.loads(last)["step"], json.loads(last)["attempt"], json.loads(last)["text"]) == ("then", steps["then"], "line 2000")
    assert any("run.succeeded" in e for e in real.run("events", "--from", "1", "--topic", run["id"]).stdout.splitlines())
    real.run("run", "delete", run["id"], "--yes")
    real.run("run", "show", run["id"], expect=3)


def test_a_log_from_now_on(real, worker, tmp_path):
    with tempfile.TemporaryDirectory(dir="/tmp") as gate:
        Path(gate).chmod(0o755)
        path = write_pipeline(tmp_path, "gated", f"echo one; echo two; while [ ! -e {gate}/open ]; do sleep 0.05; done; echo three", "echo four")
        run = real.run("run", "submit", "-f", path, "-o", "name").stdout.strip()
        until(lambda: real.run("logs", run).stdout == "one\ntwo\n", 60)
        assert real.run("logs", run, "--tail", "0").stdout == ""
        following = real.start("logs", run, "--tail", "0", "--follow")
        assert following.stderr.readline() == "==> work <==\n"  # what was there has been counted
        Path(gate, "open").touch()
        assert following.communicate(timeout=60)[0] == "three\nfour\n" and following.returncode == 0


def test_a_reader_that_is_slow_sees_the_log_and_nothing_else(real, worker, tmp_path):
    """As a pager is. That it holds up the program is no news to the one who reads."""
    path = write_pipeline(tmp_path, "long", "seq 100000")
    run = real.run("run", "submit", "-f", path, "-o", "name").stdout.strip()
    real.run("run", "wait", run)
    reading = real.start("logs", run, "--follow")
    started = time.monotonic()
    until(lambda: time.monotonic() > started + 1.0 and reading.poll() is None)  # a pipe takes a ninth of it
    out, err = reading.communicate(timeout=60)
    assert (reading.returncode, out.split(), err) == (0, [str(i + 1) for i in range(100000)], "==> work <==\n")


def test_a_real_failure_is_10_with_the_end_of_its_log(real, worker, tmp_path):
    path = write_pipeline(tmp_path, "failing", "seq 1 100; exit 3")
    done = real.run("run", "submit", "-f", path, "--wait", expect=10)
    assert "\n71\n72\n" in done.stderr and "\n70\n" not in done.stderr and "--step work" in done.stderr


def test_a_run_that_has_ended_is_not_cancelled(real, worker, tmp_path):
    path = write_pipeline(tmp_path, "short", "exit 3")
    run = real.run("run", "submit", "-f", path, "-o", "name").stdout.strip()
    real.run("run", "wait", run, expect=10)
    done = real.run("run", "cancel", run, "-o", "json")
    assert re.match(r"The run had ended already: failed \d+s ago: .*exit code 3", done.stderr), done.stderr
    assert json.loads(done.stdout)["id"] == run and json.loads(done.stdout)["state"] == "failed"


def test_what_is_taken_away_is_an_object(real, tmp_path):
    (tmp_path / "a").write_text("x")
    real.run("dataset", "push", "gone", tmp_path / "a")
    assert real.json("dataset", "download", "gone", "latest", tmp_path / "down") == {"folder": str(tmp_path / "down"), "files": 1, "bytes": 1}
    assert "1 file, 1 byte in" in real.run("dataset", "download", "gone", "latest", tmp_path / "down").stderr
    error = real.run("dataset", "delete", "gone", expect=2).stderr
    assert error == "error: The command is not valid: stdin is not a terminal, so give --yes to delete the data set gone\n"
    told = {"kind": "data set", "name": "gone", "deleted": False, "dry_run": True}
    assert real.json("dataset", "delete", "gone", "--dry-run") == told
    assert real.json("dataset", "delete", "gone", "--yes") == {**told, "deleted": True, "dry_run": False}
    real.run("dataset", "show", "gone", expect=3)


def test_a_real_cancellation_is_11(real, worker, tmp_path):
    path = write_pipeline(tmp_path, "cancelled", "sleep 600")
    run = real.run("run", "submit", "-f", path, "-o", "name").stdout.strip()
    waiting = real.start("run", "wait", run)
    until(lambda: real.json("run", "show", run)["state"] == "running", 30)
    assert real.json("run", "show", run)["cancel_requested_at"] is None
    done = real.run("run", "cancel", run, "-o", "json")
    assert done.stderr.startswith("cancelling: ") and json.loads(done.stdout)["cancel_requested_at"]
    assert "cancelled" in waiting.communicate(timeout=60)[1] and waiting.returncode == 11


def test_a_failed_step_says_which_budgets_its_attempts_used(real, worker, tmp_path):
    path = write_pipeline(tmp_path, "again", "exit 3")
    text = path.read_text()
    path.write_text(text.replace("work: {", "work: {retries: {user: 1, backoff: {first: 0s}}, "))
    assert path.read_text() != text
    run = real.run("run", "submit", "-f", path, "--wait", "-o", "name", expect=10).stdout.split()[0]
    shown = " ".join(on_a_terminal(real, "run", "show", run, "--no-color").split())
    assert "after 2 attempts: 2 failures of the command (retries.user: 1), 0 of what is around it (retries.infra: 5)" in shown, shown


# ---- the queue -----------------------------------------------------------------------------------


def test_what_waits_says_why(real, tmp_path):
    path = tmp_path / "vain.yaml"
    path.write_text("apiVersion: tidemill/v1\nkind: Pipeline\nmetadata: {name: vain}\nspec: {steps: {a: {run: [x], placement: {pool: nowhere}},"
                    " b: {run: [x], needs: [a]}}}\n")
    run = real.json("run", "submit", "-f", path)["id"]
    until(lambda: real.json("run", "show", run).get("blocked"), 20)
    shown = real.run("run", "show", run)
    assert "WAITS FOR\tin vain: no worker belongs to pool nowhere\n" in shown.stdout and "STATE\tqueued\n" in shown.stdout
    assert shown.stderr == f"Warning: its step a waits for what no worker has. See tidemill queue why {run}\n"
    listed = real.run("run", "list", "--pipeline", "vain")
    assert "in vain: no worker belongs to pool nowhere" in listed.stdout
    assert listed.stderr == "Warning: 1 of these runs waits in vain. See tidemill queue why RUN\n"
    why = real.run("queue", "why", run).stdout
    step = real.json("queue", "list", "--pool", "nowhere")["items"][0]["step_id"]
    lines = why.splitlines()
    assert lines[0].startswith(f"vain, step a ({step}): queued since ") and lines[0].endswith(", place 1 of 1, pool nowhere, priority 0")
    assert lines[1:3] == ["  no worker belongs to pool nowhere", "  No waiting helps: the fleet or the step must change."]
    assert lines[-1] == "  waits for step a (queued: no worker belongs to pool nowhere)"
    again = real.run("queue", "why", step).stdout.splitlines()
    assert [line.split("queued since")[0] for line in again[:2]] == [line.split("queued since")[0] for line in lines[:2]]  # its age moves on
    assert [w["name"] for w in real.json("queue", "why", run)["items"]] == ["a", "b"]
    assert real.json("queue", "why", step)["unsatisfiable"] is True
    assert real.run("queue", "list", "-o", "name").stdout.splitlines().count(step) == 1
    waited = real.run("run", "wait", run, "--timeout", "6s", expect=7)
    assert "Waits in vain: no worker belongs to pool nowhere. No waiting helps" in waited.stderr
    assert "Waits in vain: " in real.run("run", "wait", run, "--follow", "--timeout", "6s", expect=7).stderr
    real.run("run", "cancel", run)
    until(lambda: real.json("run", "show", run)["state"] == "cancelled", 20)
    assert real.run("queue", "why", run).stderr == "Nothing of it waits.\n"
    assert real.run("queue", "why", step).stdout.splitlines()[1] == "  it does not wait"
    real.run("queue", "why", "st_00000000000000000000000000", expect=3)


def test_a_ref_of_what_has_no_repository_is_refused(real, tmp_path):
    real.run("apply", "-f", write_pipeline(tmp_path, "homeless", "true"))
    said = real.run("run", "submit", "homeless", "--ref", "main", expect=2).stderr
    assert "/ref: the pipeline has no repository" in said, said


def test_pools(real):
    made = real.json("pool", "set", "fast", "--sensitivity", "restricted, public")
    assert (made["policy"], made["sensitivity"], made["preemption"], made["workers"]) == ("auto", ["public", "restricted"], "none", 0)
    assert real.json("pool", "set", "fast", "--policy", "spread", "--preemption", "quota")["sensitivity"] == ["public", "restricted"]
    assert real.json("pool", "set", "fast", "--sensitivity", "internal")["sensitivity"] == ["internal"]
    assert "/sensitivity/1: must be one of" in real.run("pool", "set", "fast", "--sensitivity", "public,foo", expect=2).stderr
    assert real.json("pool", "set", "fast", "--sensitivity", "restricted,public")["sensitivity"] == ["public", "restricted"]
    assert "fast\t0\tspread\tpublic,restricted\tquota\n" in real.run("pool", "list").stdout
    assert real.json("pool", "show", "fast")["version"] == 4
    assert "/policy" in real.run("pool", "set", "fast", "--policy", "most", expect=2).stderr
    real.run("pool", "remove", "fast", "--yes")
    real.run("pool", "show", "fast", expect=3)


def test_quotas(real):
    real.run("project", "create", "greedy")
    assert real.json("quota", "show", "greedy")["gpus"] == {"nominal": None, "borrow": 0, "used": 0}
    real.run("quota", "set", "greedy", "--gpus", "8", "--gpus-borrow", "4", "--weight", "2")
    made = real.json("quota", "set", "greedy", "--steps", "20")
    assert (made["weight"], made["gpus"], made["steps"]) == (
        2.0, {"nominal": 8, "borrow": 4, "used": 0}, {"nominal": 20, "borrow": 0, "used": 0})
    assert real.json("quota", "set", "greedy", "--gpus", "none")["gpus"]["nominal"] is None
    assert "greedy\t2.0\t0\t\t0\t0\t20\t0\n" in real.run("quota", "list").stdout
    assert "--gpus must be a number or 'none'" in real.run("quota", "set", "greedy", "--gpus", "many", expect=2).stderr
    assert "needs --gpus" in real.run("quota", "set", "greedy", "--gpus-borrow", "1", expect=2).stderr
    real.run("quota", "set", "nosuch", "--steps", "1", expect=3)
    real.run("project", "delete", "greedy", "--yes")
