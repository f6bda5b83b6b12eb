"""One PostgreSQL for all tests of a session, one server for each file of tests that asks for it."""
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
import harness  # noqa: E402


@pytest.fixture(scope="session")
def postgres():
    with harness.Postgres() as pg:
        yield pg


@pytest.fixture(scope="module")
def server(postgres):
    if not harness.program("tidemill-server").exists():
        pytest.skip("tidemill-server is not built")
    with harness.Server(postgres) as s:
        yield s


@pytest.fixture(scope="module")
def admin(server):
    return server.admin()


@pytest.fixture(scope="module")
def api(server):
    client = server.admin()
    yield client
    client.close()


@pytest.fixture(scope="module")
def project(api):
    api.post("/api/v1/projects", {"name": "demo"}, expect=201)
    return "demo"


@pytest.fixture
def shared():
    """A folder that steps can write to."""
    with tempfile.TemporaryDirectory(prefix="tidemill-shared-", dir="/tmp") as name:
        Path(name).chmod(0o777)
        yield Path(name)
