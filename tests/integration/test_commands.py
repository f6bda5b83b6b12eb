"""The local commands of tidemill-server: what they take, and what they say of what they do not."""
import subprocess

import pytest
from harness import program


def run(env, *args):
    return subprocess.run([str(program("tidemill-server")), *args], env=env, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("args,words", [
    (("bogus",), "unknown command bogus"),
    (("fsck", "extra"), "fsck takes --deep, not extra"),
    (("fsck", "--deep", "more"), "fsck takes --deep, not"),
    (("migrate", "now"), "migrate takes no argument, not now"),
    (("join-token", "a", "b"), "join-token takes one argument, not b"),
    (("replay",), "usage: replay FILE [STEP_ID]"),
    (("--listen=999.1.1.1:99999", "check"), "listen"),
])
def test_mistakes_are_named(server, args, words):
    for env in (server.env(), {k: v for k, v in server.env().items() if k != "TIDEMILL_DATABASE_URL"} if args[0] != "--listen=999.1.1.1:99999"
                else server.env()):
        done = run(env, *args)
        assert done.returncode == 1 and words in done.stderr, (args, done)


def test_only_what_was_asked_for_is_printed(server, tmp_path):
    assert "database-url is needed" in run({k: v for k, v in server.env().items() if k != "TIDEMILL_DATABASE_URL"}, "migrate").stderr
    done = run(server.env(), "snapshot")
    assert done.returncode == 0 and done.stderr == "" and done.stdout
    path = tmp_path / "snapshot"
    path.write_text(done.stdout)
    assert run({}, "replay", str(path)).returncode == 0
    gone = run({}, "replay", str(path), "st_none")
    assert gone.returncode == 1 and "there is no step st_none in the snapshot" in gone.stderr
    assert run(server.env(), "migrate").stderr == ""
    assert run(server.env(), "check").returncode == 0
