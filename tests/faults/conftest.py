import shutil
import tempfile
from pathlib import Path

import pytest


@pytest.fixture
def witness():
    """A folder that steps of any user can write to."""
    path = Path(tempfile.mkdtemp(prefix="tidemill-witness-", dir="/tmp"))
    path.chmod(0o1777)
    yield path
    shutil.rmtree(path, ignore_errors=True)
