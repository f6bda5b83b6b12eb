import shutil
import tempfile
from pathlib import Path

import pytest

import netns
from harness import Postgres, Server
from stack import Worker

pytestmark = pytest.mark.skipif(netns.missing() is not None, reason=str(netns.missing()))


class Wide(Server):
    """Not only at the loopback interface."""

    def env(self):
        return {**super().env(), "TIDEMILL_LISTEN": f"0.0.0.0:{self.port}", "TIDEMILL_INSECURE_HTTP": "1"}


@pytest.fixture(scope="session")
def server():
    if netns.missing():
        pytest.skip(netns.missing())
    with Postgres() as pg, Wide(pg) as one:
        yield one


@pytest.fixture(scope="session")
def workers(server):
    """One on each of two hosts."""
    with netns.Switch(2) as net:
        made = [Worker(server, f"w{i}", url=f"http://{net.host}:{server.port}", prefix=host.prefix, insecure_http=1, cpus=2)
                for i, host in enumerate(net.hosts)]
        entered = []
        try:
            for w in made:
                entered.append(w.__enter__())
            yield entered
        finally:
            for w in entered:
                w.__exit__(None, None, None)


@pytest.fixture(scope="session")
def api(server, workers):
    client = server.admin()
    client.post("/api/v1/projects", {"name": "jobs"}, expect=201)
    return client


@pytest.fixture
def folder():
    """One that steps of any user can write to."""
    path = Path(tempfile.mkdtemp(prefix="tidemill-witness-", dir="/tmp"))
    path.chmod(0o1777)
    yield path
    shutil.rmtree(path, ignore_errors=True)
