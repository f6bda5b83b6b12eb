"""Where images come from: registries with and without passwords, what is said when one cannot be had, and that all attempts
of a run get the same bytes."""
import json
import os
import shutil
import subprocess
import sys
import uuid

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_docker_runtime import attempt, daemon, root_tar  # noqa: E402,F401
from test_worker import Worker, built, running, server, sh, wait_for  # noqa: E402,F401
from registry import OwnRegistry, Registry  # noqa: E402

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="a private daemon needs root")
needs_registry = pytest.mark.skipif(shutil.which("docker-registry") is None, reason="there is no docker-registry")
PASSWORD = "c0rrect h0rse:battery"


@pytest.fixture(scope="module")
def shared(daemon):  # noqa: F811
    """Open to everybody; `one` and `two` are the digests of two images, both called x:1, the second one last."""
    r = Registry()
    r.digests = []
    try:
        for mark in ("one", "two"):
            r.digests.append(push(daemon, r, "x:1", mark))
        yield r
    finally:
        r.close()


def docker(daemon, *args, **how):  # noqa: F811
    return subprocess.run(["docker", *args], env=daemon["env"], capture_output=True, check=True, **how).stdout.decode()


def push(daemon, registry, name, mark, config=None):  # noqa: F811
    """Returns the digest; the daemon forgets the image, so that it has to be pulled."""
    image = f"{registry.address}/{name}"
    docker(daemon, "import", "-", image, input=root_tar(f"{mark} {uuid.uuid4()}"))
    docker(daemon, *(["--config", config] if config else []), "push", "-q", image)
    digest = json.loads(docker(daemon, "inspect", image))[0]["RepoDigests"][0].split("@")[1]
    docker(daemon, "rmi", image)
    return digest


def mark_of(a):
    assert a.wait_state("ended")["code"] == 0
    return a.output().split()[0]


@needs_registry
def test_the_reference_names_exactly_what_was_pulled(attempt, shared):  # noqa: F811
    image = f"{shared.address}/x:1"
    answer = attempt.start("cat", "/mark", image=image)
    assert answer["image_ref"] == f"{shared.address}/x@{shared.digests[1]}" and mark_of(attempt) == "two"
    # Whoever has the reference gets those bytes, whatever the tag means now, and without the tag.
    earlier = attempt.another()
    answer = earlier.start("cat", "/mark", image=image, options=["--image-ref", f"{shared.address}/x@{shared.digests[0]}"])
    assert answer["image_ref"] == f"{shared.address}/x@{shared.digests[0]}" and mark_of(earlier) == "one"


def test_an_image_of_no_registry_is_known_by_its_id(attempt):  # noqa: F811
    answer = attempt.start("true")
    assert answer["image_ref"] == answer["image"] and answer["image"].startswith("sha256:")
    again = attempt.another()
    assert again.start("true", options=["--image-ref", answer["image_ref"]])["image"] == answer["image"]
    elsewhere = attempt.another().start("true", options=["--image-ref", "sha256:" + "1" * 64], check=False)
    assert (elsewhere["error"], elsewhere["blame"], elsewhere["image_fault"]) == ("not_found", 1, "elsewhere")
    assert "not on this host" in elsewhere["detail"]


@needs_registry
def test_a_registry_with_a_password(attempt, daemon, tmp_path):  # noqa: F811
    registry = Registry("ann", PASSWORD)
    try:
        login = str(tmp_path / "login")
        docker(daemon, "--config", login, "login", "-u", "ann", "--password-stdin", registry.address, input=PASSWORD.encode())
        digest = push(daemon, registry, "p/x:1", "secret", login)
        image = f"{registry.address}/p/x:1"
        refused = attempt.start("true", image=image, check=False)
        assert (refused["blame"], refused["image_fault"]) == (1, "denied") and image in refused["detail"], refused
        wrong = registry.auth_file(str(tmp_path / "wrong.json"), username="ann", password="no")
        assert attempt.start("true", image=image, options=["--auth-file", wrong], check=False)["image_fault"] == "denied"
        # What `docker login` writes, and the same in words.
        config = os.path.join(login, "config.json")
        answer = attempt.start("cat", "/mark", image=image, options=["--auth-file", config])
        assert answer["image_ref"] == f"{registry.address}/p/x@{digest}" and mark_of(attempt) == "secret"
        seen = json.dumps(attempt.inspect()) + json.dumps(answer) + open(os.path.join(daemon["folder"], "dockerd.log")).read()
        entry = json.load(open(config))["auths"][registry.address]["auth"]
        assert PASSWORD not in seen and entry not in seen
        attempt.call("remove")
        docker(daemon, "rmi", image)
        plain = registry.auth_file(str(tmp_path / "plain.json"), username="ann", password=PASSWORD)
        again = attempt.another()
        again.start("true", image=image, options=["--auth-file", plain])
    finally:
        registry.close()


@pytest.mark.parametrize("text, mode, words", [
    ('{"auths": {}}', 0o644, "chmod 600"), ("{", 0o600, "is not JSON"), ('{"credsStore": "pass"}', 0o600, '"auths"')])
def test_a_file_of_passwords_must_be_one(attempt, tmp_path, text, mode, words):  # noqa: F811
    path = tmp_path / "auth.json"
    path.write_text(text)
    path.chmod(mode)
    tool = subprocess.run([os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "build",
                                        os.environ.get("V", "debug"), "runtime_tool"),
                           "--auth-file", str(path), "probe"], capture_output=True, text=True, timeout=60)
    assert tool.returncode == 2 and words in tool.stderr


@needs_registry
def test_an_image_that_is_not_there(attempt, shared):  # noqa: F811
    for image in (f"{shared.address}/x:none", f"{shared.address}/none:1", f"{shared.address}/x@sha256:{'0' * 64}"):
        answer = attempt.start("true", image=image, check=False)
        assert (answer["blame"], answer["image_fault"]) == (1, "not_found") and image in answer["detail"], answer


def test_a_registry_that_does_not_answer(attempt):  # noqa: F811
    answer = attempt.start("true", image="127.0.0.1:1/x:1", check=False)
    assert (answer["blame"], answer["image_fault"]) == (1, "unreachable") and "connection refused" in answer["detail"]


def test_bytes_that_are_not_those_of_the_digest(attempt):  # noqa: F811
    registry = OwnRegistry(root_tar(str(uuid.uuid4())), damage=True)
    try:
        answer = attempt.start("true", image=registry.image + ":1", check=False)
        assert (answer["blame"], answer["image_fault"]) == (1, "damaged"), answer
    finally:
        registry.close()


# ---- the worker ---------------------------------------------------------------------------------
@pytest.fixture
def worker(server, daemon):  # noqa: F811
    w = Worker(server)
    w.settings = {"TIDEMILL_RUNTIMES": "docker", "TIDEMILL_DOCKER_SOCKET": daemon["socket"], "TIDEMILL_DOCKER_NETWORK": "none"}
    with running(w):
        yield w


def step(server, registry, script="true", **more):  # noqa: F811
    return server.assign(sh(script), runtimes=["docker"], image=registry.image + ":1", **more)


def test_many_attempts_pull_once_and_say_how_far(server, worker):  # noqa: F811
    registry = OwnRegistry(root_tar(str(uuid.uuid4())))
    registry.held.clear()
    try:
        ids = [step(server, registry, "echo began", step=f"stp_{i}") for i in range(4)]
        # The log begins while the image is still on its way.
        for a in ids:
            server.wait(lambda s: b"tidemill: pulling" in s.output(a, 3), 60)
        registry.held.set()
        for a in ids:
            end = server.wait_end(a, 60)
            assert end["state"] == "succeeded", (end, worker.text())
            assert end["evidence"]["image_ref"] == f"{registry.image}@{registry.digest}"
            assert end["evidence"]["image_digest"] == registry.digest and end["evidence"]["image"] == registry.image + ":1"
            notes = server.output(a, 3).decode().splitlines()
            assert notes[-1].startswith(f"tidemill: pulled {registry.image}:1 in ") and len(notes) <= 4
            assert server.output(a, 1) == b"began\n"
        assert registry.layer_asked() == 1
        assert sum("as another attempt does" in server.output(a, 3).decode() for a in ids) == 3
    finally:
        registry.close()


def test_the_start_timeout_counts_from_the_last_progress(server, worker):  # noqa: F811
    """A pull that takes longer than the limit, but comes further all the time, is not ended; one that stands still is."""
    registry = OwnRegistry(root_tar(str(uuid.uuid4())), pause=0.5, pieces=14)
    try:
        a = step(server, registry, start_timeout=3_500_000)
        end = server.wait_end(a, 60)
        assert end["state"] == "succeeded", (end, worker.text())
        assert "layers, " in server.output(a, 3).decode()
    finally:
        registry.close()
    still = OwnRegistry(root_tar(str(uuid.uuid4())))
    still.held.clear()
    try:
        a = step(server, still, start_timeout=2_000_000)
        end = server.wait_end(a, 60)
        assert (end["state"], end["reason"]) == ("failed", "start_timeout"), (end, worker.text())
        assert b"tidemill: pulling" in server.output(a, 3)
    finally:
        still.close()


def test_one_that_leaves_does_not_end_the_pull_of_others(server, worker):  # noqa: F811
    registry = OwnRegistry(root_tar(str(uuid.uuid4())))
    registry.held.clear()
    try:
        first, second = (step(server, registry, step=f"stp_{i}") for i in range(2))
        for a in (first, second):
            server.wait(lambda s: b"pulling" in s.output(a, 3), 60)
        server.cancel(first)
        assert server.wait_end(first, 60)["state"] == "cancelled"
        registry.held.set()
        assert server.wait_end(second, 60)["state"] == "succeeded" and registry.layer_asked() == 1
    finally:
        registry.close()


def test_a_worker_that_dies_while_it_pulls(server, worker):  # noqa: F811
    registry = OwnRegistry(root_tar(str(uuid.uuid4())))
    registry.held.clear()
    try:
        a = step(server, registry, "echo began")
        server.wait(lambda s: b"pulling" in s.output(a, 3), 60)
        worker.kill()
        worker.start()
        registry.held.set()
        end = server.wait_end(a, 60)
        assert end["state"] == "succeeded" and server.output(a, 1) == b"began\n", (end, worker.text())
        assert server.output(a, 3).decode().splitlines()[-1].startswith("tidemill: pulled")
    finally:
        registry.close()


@needs_registry
def test_what_the_step_is_told(server, worker, shared):  # noqa: F811
    a = server.assign(sh("true"), runtimes=["docker"], image=f"{shared.address}/none:1")
    end = server.wait_end(a, 60)
    assert (end["state"], end["reason"]) == ("failed", "image_not_found") and f"{shared.address}/none:1" in end["message"]
    assert end["evidence"]["image_fault"] == "not_found"
    assert f"tidemill: image {shared.address}/none:1: " in server.output(a, 3).decode()
    wait_for(lambda: worker.attempts() == [])
