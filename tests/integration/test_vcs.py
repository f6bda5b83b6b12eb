"""lib/vcs and tidemill-git against real repositories made with the git CLI, in place, over smart HTTP and against a server
that never answers."""
import base64
import fcntl
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, "build", os.environ.get("V", "debug"))
TOOL, GIT = os.path.join(BUILD, "vcs_tool"), os.path.join(BUILD, "tidemill-git")
ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "a",
       "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org"}


@pytest.fixture(scope="session", autouse=True)
def built():
    subprocess.run(["make", "-s", BUILD[len(ROOT) + 1:] + "/vcs_tool", BUILD[len(ROOT) + 1:] + "/tidemill-git"], cwd=ROOT,
                   check=True)


def git(repo, *args, data=None):
    return subprocess.run(["git", "-C", str(repo), *args], env=ENV, input=data, capture_output=True, check=True,
                          timeout=60).stdout.decode().strip()


def ask(*args, ok=True, timeout=60):
    done = subprocess.run([TOOL, *map(str, args)], capture_output=True, timeout=timeout)
    assert done.returncode == 0, done.stderr.decode()
    answer = json.loads(done.stdout)
    if ok:
        assert answer["error"] == "ok", answer
    return answer


def local(*args, **more):
    return ask("--allow-local", *args, **more)


def commit_tree(repo, entries, branch="main"):
    """A commit with exactly these (mode, name, bytes or commit id), names being bytes that git add would refuse."""
    lines = b""
    for mode, name, content in entries:
        name = name if isinstance(name, bytes) else name.encode()
        kind = {"040000": b"tree", "160000": b"commit"}.get(mode, b"blob")
        sha = content if kind != b"blob" else git(repo, "hash-object", "-w", "--stdin", data=content)
        lines += mode.encode() + b" " + name + b"\0" + bytes.fromhex(sha)
    tree = git(repo, "hash-object", "-t", "tree", "-w", "--literally", "--stdin", data=lines)
    commit = git(repo, "commit-tree", "-m", "made", tree)
    git(repo, "update-ref", "refs/heads/" + branch, commit)
    return commit


@pytest.fixture
def repo(tmp_path):
    path = tmp_path / "repo"
    path.mkdir()
    git(path, "init", "-q", "-b", "main")
    (path / "dir").mkdir()
    (path / "tidemill.yaml").write_text("kind: Pipeline\n")
    (path / "dir" / "run.sh").write_text("#!/bin/sh\n")
    (path / "dir" / "run.sh").chmod(0o755)
    (path / "dir" / "bytes").write_bytes(bytes(range(1, 128)) * 3)
    os.symlink("dir/run.sh", path / "link")
    os.symlink("../tidemill.yaml", path / "dir" / "up")
    git(path, "add", "-A")
    git(path, "commit", "-q", "-m", "one")
    git(path, "tag", "light")
    git(path, "tag", "-a", "v1", "-m", "v1")
    git(path, "branch", "feature/x")
    (path / "tidemill.yaml").write_text("kind: Pipeline\n# two\n")
    (path / "new").write_text("n")
    git(path, "rm", "-q", "dir/bytes")
    git(path, "add", "-A")
    git(path, "commit", "-q", "-m", "two")
    return path


def one_two(repo):
    return git(repo, "rev-parse", "v1^{commit}"), git(repo, "rev-parse", "main")


def test_revisions_resolve_to_full_commits(repo):
    one, two = one_two(repo)
    wanted = {"main": two, "HEAD": two, "v1": one, "light": one, "feature/x": one, "refs/heads/main": two,
              "refs/tags/v1": one, one: one, one[:10]: one}
    for ref, commit in wanted.items():
        assert local("resolve", repo, ref)["commit"] == commit, ref
    assert local("resolve", "file://" + str(repo), "main")["commit"] == two
    git(repo, "tag", "feature/x", two)  # a tag goes before a branch of the same name
    assert local("resolve", repo, "feature/x")["commit"] == two


def test_revisions_that_are_not_there_or_not_allowed(repo):
    for ref in ("nope", "f" * 40, "abcdef0"):
        assert local("resolve", repo, ref, ok=False)["error"] == "not_found", ref
    for ref in ("-x", "--upload-pack=/bin/true", "a b", "a..b", "main~1", "main^{tree}", ""):
        assert local("resolve", repo, ref, ok=False)["error"] == "invalid", ref
    for url in ("-x", "ext::sh -c id", "ssh://-oProxyCommand=id/r", "git://127.0.0.1/r", "https://u:p@127.0.0.1/r"):
        assert local("resolve", url, "main", ok=False)["error"] == "invalid", url
    assert ask("resolve", repo, "main", ok=False)["error"] == "invalid"  # local, not allowed
    assert ask("resolve", "http://127.0.0.1:9/r", "main", ok=False)["error"] == "invalid"
    assert local("resolve", repo / "dir", "main", ok=False)["error"] == "not_found"
    blob = git(repo, "rev-parse", "main:new")
    git(repo, "tag", "blob", blob)
    assert local("resolve", repo, "blob", ok=False)["error"] != "ok"


def test_shell_metacharacters_are_only_names(repo, tmp_path):
    one, _ = one_two(repo)
    git(repo, "update-ref", "refs/heads/$(touch${IFS}" + "x)", one)
    assert local("resolve", repo, "$(touch${IFS}x)")["commit"] == one
    assert not os.path.exists("x")


def test_files_are_shown_from_the_commit(repo):
    one, two = one_two(repo)
    (repo / "tidemill.yaml").write_text("changed in the work tree")
    files = local("show", repo, one, "tidemill.yaml", "missing", "dir", "link", "dir/run.sh", "dir/up")["files"]
    assert files == [["tidemill.yaml", "kind: Pipeline\n"], ["missing", None], ["dir", None], ["link", None],
                     ["dir/run.sh", "#!/bin/sh\n"], ["dir/up", None]]
    assert local("show", repo, two, "tidemill.yaml")["files"][0][1] == "kind: Pipeline\n# two\n"
    assert local("show", repo, one, "dir/bytes")["files"][0][1] == (bytes(range(1, 128)) * 3).decode()
    for path in ("../x", "/etc/passwd", "dir/", "a/../b", ""):
        assert local("show", repo, one, path, ok=False)["error"] == "invalid", path
    assert local("show", repo, "main", "tidemill.yaml", ok=False)["error"] == "invalid"
    assert local("--max-bytes", 381, "show", repo, one, "dir/bytes")["files"][0][1]
    assert local("--max-bytes", 380, "show", repo, one, "dir/bytes", ok=False)["error"] == "too_large"


def test_a_checkout_is_exactly_the_tree(repo, tmp_path):
    one, _ = one_two(repo)
    out = tmp_path / "out"
    answer = local("checkout", repo, one, out)
    assert (answer["files"], answer["links"], answer["submodules"], answer["lfs"]) == (3, 2, 0, 0)
    assert answer["commit"] == one
    found = sorted(os.path.relpath(os.path.join(d, f), out) for d, _, names in os.walk(out) for f in names)
    assert found == ["dir/bytes", "dir/run.sh", "dir/up", "link", "tidemill.yaml"]
    assert (out / "dir" / "bytes").read_bytes() == bytes(range(1, 128)) * 3
    assert os.stat(out / "dir" / "run.sh").st_mode & 0o777 == 0o755
    assert os.stat(out / "tidemill.yaml").st_mode & 0o777 == 0o644
    assert os.readlink(out / "link") == "dir/run.sh" and (out / "dir" / "up").read_text() == "kind: Pipeline\n"
    assert local("checkout", repo, one, out, ok=False)["error"] == "conflict"


def test_where_a_checkout_may_go(repo, tmp_path):
    one, _ = one_two(repo)
    for path in ("relative", str(tmp_path) + "/out/", "", "/" + "a" * 5000):
        assert local("checkout", repo, one, path, ok=False)["error"] == "invalid", path
    assert local("checkout", repo, one, tmp_path / "no" / "out", ok=False)["error"] == "io"


def test_a_checkout_comes_whole_or_not_at_all(repo, tmp_path):
    one, _ = one_two(repo)
    out = tmp_path / "out"
    (tmp_path / "out.partial").mkdir()
    (tmp_path / "out.partial" / "stale").write_text("left by one that was killed")
    assert local("--max-files", 5, "checkout", repo, one, out, ok=False)["error"] == "too_large"
    assert local("--max-bytes", 300, "checkout", repo, one, out, ok=False)["error"] == "too_large"
    assert sorted(os.listdir(tmp_path)) == ["repo"]
    assert local("--max-files", 6, "checkout", repo, one, out)["files"] == 3
    assert "stale" not in os.listdir(out)


HOSTILE_LINKS = ["/etc/passwd", "/", "../etc/passwd", "..", "a/../..", "dir/../../x", "x\x1b[31m", "a/..", ""]


@pytest.mark.parametrize("target", HOSTILE_LINKS)
def test_links_out_of_the_tree_are_refused(repo, tmp_path, target):
    commit = commit_tree(repo, [("100644", "a", b"x"), ("120000", "evil", target.encode())])
    answer = local("checkout", repo, commit, tmp_path / "out", ok=False)
    assert answer["error"] == "invalid" and "evil" in answer["message"]
    assert sorted(os.listdir(tmp_path)) == ["repo"]
    assert local("show", repo, commit, "evil")["files"] == [["evil", None]]


HOSTILE_NAMES = [b"\x1b[31mred", b"new\nline", b"\x7f", b".git", b".GIT", b".git ", b".git.", b"git~1", b".g\xe2\x80\x8cit",
                 b".git::$INDEX_ALLOCATION", b"..", b".", b"a" * 256]


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=repr)
def test_names_that_deceive_are_refused(repo, tmp_path, name):
    commit = commit_tree(repo, [("100644", name, b"x")])
    answer = local("checkout", repo, commit, tmp_path / "out", ok=False)
    assert answer["error"] in ("invalid", "corrupt"), answer
    assert all(c >= " " for c in answer["message"])
    assert sorted(os.listdir(tmp_path)) == ["repo"]


def test_names_that_only_look_odd_are_written(repo, tmp_path):
    names = [b".gitignore", b".github", b"git~2", b"-x", b"a b", "é".encode(), b"a" * 255, b".git-x", b"$(id)"]
    commit = commit_tree(repo, sorted(("100644", n, b"x") for n in names))
    assert local("checkout", repo, commit, tmp_path / "out")["files"] == len(names)
    assert sorted(os.listdir(os.fsencode(tmp_path / "out"))) == sorted(names)


def test_a_link_and_a_folder_of_one_name_are_refused(repo, tmp_path):
    inner = git(repo, "rev-parse", "main:dir")
    victim = tmp_path / "victim"
    victim.mkdir()
    commit = commit_tree(repo, [("120000", "a", b"b"), ("040000", "a", inner)])
    assert local("checkout", repo, commit, tmp_path / "out", ok=False)["error"] == "invalid"
    commit = commit_tree(repo, [("100644", "a", b"x"), ("100644", "a", b"y")])
    assert local("checkout", repo, commit, tmp_path / "out", ok=False)["error"] == "invalid"
    assert os.listdir(victim) == []


def test_submodules_stay_empty_and_lfs_pointers_are_told(repo, tmp_path):
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 5\n"
    commit = commit_tree(repo, [("100644", ".gitmodules", b"[submodule \"sub\"]\npath = sub\nurl = /etc\n"),
                                ("100644", "data.bin", pointer), ("160000", "sub", "1" * 40)])
    answer = local("checkout", repo, commit, tmp_path / "out")
    assert (answer["submodules"], answer["lfs"], answer["first_lfs"]) == (1, 1, "data.bin")
    assert os.listdir(tmp_path / "out" / "sub") == []
    assert (tmp_path / "out" / "data.bin").read_bytes() == pointer


def test_filters_hooks_and_attributes_do_nothing(repo, tmp_path):
    flag = tmp_path / "ran"
    git(repo, "config", "filter.evil.smudge", f"touch {flag}")
    git(repo, "config", "core.fsmonitor", f"touch {flag}")
    hook = repo / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {flag}\n")
    hook.chmod(0o755)
    commit = commit_tree(repo, [("100644", ".gitattributes", b"* filter=evil text eol=crlf ident\n"),
                                ("100644", "a", b"$Id$\none\n")])
    local("checkout", repo, commit, tmp_path / "out")
    assert (tmp_path / "out" / "a").read_bytes() == b"$Id$\none\n"
    assert not flag.exists()


def test_a_bomb_of_shared_trees_ends_at_the_cap(repo, tmp_path):
    tree = git(repo, "rev-parse", "main:dir")
    for _ in range(12):
        lines = b"".join(b"40000 %c\0" % c + bytes.fromhex(tree) for c in b"abcdefghij")
        tree = git(repo, "hash-object", "-t", "tree", "-w", "--stdin", data=lines)
    commit = git(repo, "commit-tree", "-m", "bomb", tree)
    answer = local("--max-files", 5000, "checkout", repo, commit, tmp_path / "out", ok=False, timeout=300)
    assert answer["error"] == "too_large"
    assert not (tmp_path / "out.partial").exists()


def test_depth_has_an_end(repo, tmp_path):
    tree = git(repo, "rev-parse", "main:dir")
    for _ in range(200):
        tree = git(repo, "mktree", data=f"040000 tree {tree}\td\n".encode())
    commit = git(repo, "commit-tree", "-m", "deep", tree)
    assert local("checkout", repo, commit, tmp_path / "out", ok=False)["error"] == "too_large"


def test_changed_paths(repo):
    one, two = one_two(repo)
    answer = local("changed", repo, one, two)
    assert answer["paths"] == ["dir/bytes", "new", "tidemill.yaml"] and answer["complete"]
    assert local("changed", repo, two, two)["paths"] == []
    assert "link" in local("changed", repo, "0" * 40, two)["paths"]
    many = [("100644", f"f{i:05}", b"x") for i in range(3)]
    commit = commit_tree(repo, many)
    assert local("changed", repo, one, commit)["paths"][-1] == "tidemill.yaml"
    assert local("changed", repo, one, "main", ok=False)["error"] == "invalid"


def test_a_damaged_repository_is_an_error(repo, tmp_path):
    one, two = one_two(repo)
    blob = git(repo, "rev-parse", "main:new")
    path = repo / ".git" / "objects" / blob[:2] / blob[2:]
    path.chmod(0o644)
    path.write_bytes(b"not zlib")
    assert local("checkout", repo, two, tmp_path / "out", ok=False)["error"] in ("corrupt", "io")
    path.unlink()
    assert local("checkout", repo, two, tmp_path / "out", ok=False)["error"] == "corrupt"
    assert sorted(os.listdir(tmp_path)) == ["repo"]


def test_a_missing_or_broken_helper_is_an_error(repo, tmp_path):
    assert local("--helper", "/nonexistent/git", "resolve", repo, "main", ok=False)["error"] == "io"
    assert local("--helper", "/bin/false", "resolve", repo, "main", ok=False)["error"] == "internal"
    assert local("--helper", "/bin/true", "resolve", repo, "main", ok=False)["error"] == "malformed"
    killed = tmp_path / "killed"
    killed.write_text("#!/bin/sh\nkill -SEGV $$\n")
    killed.chmod(0o755)
    assert "signal 11" in local("--helper", killed, "resolve", repo, "main", ok=False)["message"]


def test_the_program_takes_no_unknown_words():
    for args in ([], ["resolve"], ["resolve", "u"], ["fetch", "u", "r"], ["--nope", "resolve", "u", "r"],
                 ["--max-file", "x", "resolve", "u", "r"], ["--allow-net", "10.0.0.1/8", "resolve", "u", "r"]):
        done = subprocess.run([GIT, *args], capture_output=True, timeout=30)
        assert done.returncode == 1 and done.stdout == b""
        assert json.loads(done.stderr)["code"] == "invalid"


# ---- over the network ---------------------------------------------------------------------------------------------------

class SmartHttp(BaseHTTPRequestHandler):
    """git http-backend behind Python's server; real smart HTTP."""
    protocol_version = "HTTP/1.0"

    def log_message(self, *args):
        pass

    def serve(self):
        server = self.server
        server.seen.append((self.path, self.headers.get("Authorization")))
        if server.redirect and self.path.startswith("/moved"):
            self.send_response(302)
            self.send_header("Location", server.redirect + self.path[len("/moved"):])
            self.end_headers()
            return
        if server.password and self.headers.get("Authorization") != server.password:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.end_headers()
            return
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        env = {**ENV, "GIT_PROJECT_ROOT": str(server.root), "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path,
               "QUERY_STRING": query, "REQUEST_METHOD": self.command, "CONTENT_TYPE": self.headers.get("Content-Type", ""),
               "CONTENT_LENGTH": str(len(body)), "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", "")}
        done = subprocess.run(["git", "http-backend"], env=env, input=body, capture_output=True, timeout=60)
        head, _, rest = done.stdout.partition(b"\r\n\r\n")
        fields = [line.split(": ", 1) for line in head.decode().split("\r\n")]
        self.send_response(int(dict(fields).get("Status", "200").split()[0]))
        for name, value in fields:
            if name != "Status":
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(rest)

    do_GET = do_POST = serve


@pytest.fixture
def server(tmp_path):
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), SmartHttp)
    httpd.root, httpd.seen, httpd.password, httpd.redirect = tmp_path, [], None, None
    httpd.url = f"http://127.0.0.1:{httpd.server_address[1]}"
    threading.Thread(target=httpd.serve_forever, args=(0.02,), daemon=True).start()
    yield httpd
    httpd.shutdown()
    httpd.server_close()


def remote(tmp_path, *args, **more):
    return ask("--allow-http", "--cache", tmp_path / "cache", *args, **more)


def test_remote_names_resolve_without_a_fetch(repo, server, tmp_path):
    one, two = one_two(repo)
    url = server.url + "/repo/.git"
    for ref, commit in {"main": two, "HEAD": two, "v1": one, "light": one, "feature/x": one}.items():
        assert ask("--allow-http", "resolve", url, ref)["commit"] == commit
    assert not any("git-upload-pack" in path and "service=" not in path for path, _ in server.seen)
    assert remote(tmp_path, "resolve", url, "nope", ok=False)["error"] == "not_found"


def test_remote_commits_are_fetched_once_and_served_from_the_cache(repo, server, tmp_path):
    one, two = one_two(repo)
    url = server.url + "/repo/.git"
    assert remote(tmp_path, "show", url, one, "tidemill.yaml")["files"][0][1] == "kind: Pipeline\n"
    before = len(server.seen)
    assert remote(tmp_path, "checkout", url, two, tmp_path / "out")["files"] == 3
    assert remote(tmp_path, "resolve", url, one)["commit"] == one
    assert len(server.seen) == before
    assert remote(tmp_path, "resolve", url, one[:12])["commit"] == one
    assert os.stat(tmp_path / "cache").st_mode & 0o777 == 0o700
    assert remote(tmp_path, "show", url, "e" * 40, "x", ok=False)["error"] == "not_found"


def test_a_branch_may_give_way_to_a_folder_of_branches(repo, server, tmp_path):
    one, _ = one_two(repo)
    url = server.url + "/repo/.git"
    git(repo, "branch", "a", one)
    remote(tmp_path, "show", url, one, "tidemill.yaml")
    git(repo, "branch", "-D", "a")
    new = commit_tree(repo, [("100644", "n", b"1")], branch="a/b")
    assert remote(tmp_path, "show", url, new, "n")["files"] == [["n", "1"]]
    moved = commit_tree(repo, [("100644", "n", b"2")], branch="a/b")  # a forced push
    assert remote(tmp_path, "resolve", url, "a/b")["commit"] == moved
    assert remote(tmp_path, "show", url, moved, "n")["files"] == [["n", "2"]]


def test_what_a_killed_fetch_left_is_swept(repo, server, tmp_path):
    one, _ = one_two(repo)
    url = server.url + "/repo/.git"
    remote(tmp_path, "show", url, one, "tidemill.yaml")
    cache, = (tmp_path / "cache").glob("*.git")
    new = commit_tree(repo, [("100644", "n", b"1")])
    (cache / "refs" / "heads" / "main.lock").write_text("")
    (cache / "objects" / "pack" / "pack_git2_deadbeef").write_bytes(b"half")
    assert remote(tmp_path, "show", url, new, "n")["files"] == [["n", "1"]]
    assert not (cache / "objects" / "pack" / "pack_git2_deadbeef").exists()


def test_a_cache_of_many_packs_is_made_anew(repo, server, tmp_path):
    one, two = one_two(repo)
    url = server.url + "/repo/.git"
    remote(tmp_path, "show", url, one, "tidemill.yaml")
    cache, = (tmp_path / "cache").glob("*.git")
    packs = cache / "objects" / "pack"
    for i in range(70):
        (packs / f"pack-{i:040x}.pack").write_bytes(b"")
    used, = (tmp_path / "cache").glob("*.used")
    new = commit_tree(repo, [("100644", "n", b"1")])
    with open(used) as reader:
        fcntl.flock(reader, fcntl.LOCK_SH)
        assert remote(tmp_path, "show", url, new, "n")["files"] == [["n", "1"]]
        assert len(list(packs.glob("*.pack"))) > 70  # somebody reads: it stays
    new = commit_tree(repo, [("100644", "n", b"2")])
    assert remote(tmp_path, "show", url, new, "n")["files"] == [["n", "2"]]
    assert len(list(packs.glob("*.pack"))) == 1
    assert sorted(path.suffix for path in (tmp_path / "cache").iterdir()) == [".git", ".lock", ".used"]
    assert remote(tmp_path, "show", url, two, "new", ok=False)["error"] == "not_found"  # main was forced elsewhere


def test_many_at_once_fetch_once(repo, server, tmp_path):
    one, _ = one_two(repo)
    args = [TOOL, "--allow-http", "--cache", tmp_path / "cache", "show", server.url + "/repo/.git", one, "tidemill.yaml"]
    running = [subprocess.Popen(args, stdout=subprocess.PIPE) for _ in range(6)]
    for process in running:
        assert json.loads(process.communicate(timeout=60)[0])["error"] == "ok"
    assert sum("git-upload-pack" in path and "service=" not in path for path, _ in server.seen) <= 2


def test_a_fetch_past_its_limit_is_cut(repo, server, tmp_path):
    commit = commit_tree(repo, [("100644", "big", os.urandom(3 << 20))])
    url = server.url + "/repo/.git"
    answer = remote(tmp_path, "--max-fetch", 1 << 20, "show", url, commit, "big", ok=False)
    assert answer["error"] == "too_large" and "1048576" in answer["message"]
    answer = remote(tmp_path, "--max-bytes", 3 << 20, "checkout", url, commit, tmp_path / "out")
    assert answer["bytes"] == 3 << 20


def test_redirects_are_not_followed(repo, server, tmp_path):
    other = ThreadingHTTPServer(("127.0.0.1", 0), SmartHttp)
    other.root, other.seen, other.password, other.redirect = tmp_path, [], None, None
    threading.Thread(target=other.serve_forever, args=(0.02,), daemon=True).start()
    secret = json.dumps({"username": "u", "password": "secret"})
    for host in ("127.0.0.1", "localhost"):
        server.redirect = f"http://{host}:{other.server_address[1]}"
        answer = remote(tmp_path, "--credentials", secret, "resolve", server.url + "/moved/repo/.git", "main", ok=False)
        assert answer["error"] != "ok" and other.seen == []
    other.shutdown()
    other.server_close()


def test_credentials_come_by_pipe_and_only_when_asked_for(repo, server, tmp_path):
    _, two = one_two(repo)
    url = server.url + "/repo/.git"
    server.password = "Basic " + base64.b64encode(b"u:s3cret").decode()
    assert remote(tmp_path, "resolve", url, "main", ok=False)["error"] == "forbidden"
    wrong = json.dumps({"username": "u", "password": "wrong"})
    answer = remote(tmp_path, "--credentials", wrong, "resolve", url, "main", ok=False)
    assert answer["error"] == "forbidden" and "wrong" not in answer["message"]
    good = json.dumps({"username": "u", "password": "s3cret"})
    assert remote(tmp_path, "--credentials", good, "resolve", url, "main")["commit"] == two
    assert server.seen[0][1] is None
    for text in ("{", "[]", '{"passwort": "x"}', '{"password": 1}', " " * 70000):
        answer = remote(tmp_path, "--credentials", text, "resolve", url, "main", ok=False)
        assert answer["error"] in ("malformed", "invalid"), text[:20]


def test_addresses_are_guarded_where_they_are_connected(repo, server, tmp_path):
    _, two = one_two(repo)
    port = server.server_address[1]
    for host in ("127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "[::ffff:127.0.0.1]"):
        url = f"http://{host}:{port}/repo/.git"
        answer = remote(tmp_path, "--guard", "resolve", url, "main", ok=False)
        assert answer["error"] in ("forbidden", "network"), (host, answer)
    assert server.seen == []
    answer = remote(tmp_path, "--guard", "--allow-net", "127.0.0.0/8", "resolve", server.url + "/repo/.git", "main")
    assert answer["commit"] == two


def test_certificates_are_checked(repo, server, tmp_path):
    _, two = one_two(repo)
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                    key, "-out", cert, "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
                   check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    url = f"https://localhost:{server.server_address[1]}/repo/.git"
    assert ask("--cache", tmp_path / "cache", "resolve", url, "main", ok=False)["error"] in ("forbidden", "network")
    assert ask("--cache", tmp_path / "cache", "--ca-file", cert, "resolve", url, "main")["commit"] == two
    assert ask("--cache", tmp_path / "cache", "--ca-file", cert, "show", url, two, "new")["files"] == [["new", "n"]]
    other = url.replace("localhost", "127.0.0.1")
    assert ask("--cache", tmp_path / "cache", "--ca-file", cert, "resolve", other, "main", ok=False)["error"] != "ok"
    answer = ask("--ca-file", tmp_path / "none", "resolve", url, "main", ok=False)
    assert answer["error"] != "ok"


@pytest.fixture
def tarpit():
    """Accepts and never answers."""
    sock = socket.create_server(("127.0.0.1", 0), backlog=8)
    yield sock
    sock.close()


def test_a_server_that_never_answers_is_left_in_time(tarpit, tmp_path):
    url = f"http://127.0.0.1:{tarpit.getsockname()[1]}/r"
    start = time.monotonic()
    answer = remote(tmp_path, "--timeout-ms", 700, "resolve", url, "main", ok=False)
    assert answer["error"] == "timeout" and time.monotonic() - start > 0.6
    answer = remote(tmp_path, "--cancel-ms", 300, "resolve", url, "main", ok=False)
    assert answer["error"] == "cancelled"


def test_a_silent_server_ends_by_the_programs_own_clock(tarpit):
    url = f"http://127.0.0.1:{tarpit.getsockname()[1]}/r"
    done = subprocess.run([GIT, "--allow-http", "--stall", "1", "resolve", url, "main"], capture_output=True, timeout=60)
    assert done.returncode == 1 and json.loads(done.stderr)["code"] in ("network", "timeout")
    done = subprocess.run([GIT, "--allow-http", "--time", "1", "resolve", url, "main"], capture_output=True, timeout=60)
    assert done.returncode == -signal.SIGALRM


def test_nobody_listens(tmp_path):
    assert remote(tmp_path, "resolve", "http://127.0.0.1:1/r", "main", ok=False)["error"] == "network"
    assert remote(tmp_path, "resolve", "https://127.0.0.1:1/r", "main", ok=False)["error"] == "network"


def test_a_repository_of_another_user_can_be_read(repo, tmp_path):
    if os.getuid() != 0:
        pytest.skip("only root can give a folder away")
    for folder, folders, files in os.walk(repo):
        for name in [".", *folders, *files]:
            os.chown(os.path.join(folder, name), 65534, 65534, follow_symlinks=False)
    assert local("resolve", repo, "main")["commit"]


def test_the_program_may_run_as_another_user(repo, tmp_path):
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    one, _ = one_two(repo)
    folder = tempfile.mkdtemp(prefix="tidemill-test-")
    try:
        os.chmod(folder, 0o777)
        subprocess.run(["git", "clone", "-q", "--bare", repo, folder + "/r"], env=ENV, check=True)
        shutil.copy(GIT, folder + "/tidemill-git")
        local("--helper", folder + "/tidemill-git", "--as-user", 65534, "checkout", folder + "/r", one, folder + "/out")
        assert os.stat(folder + "/out/tidemill.yaml").st_uid == 65534
    finally:
        shutil.rmtree(folder)
