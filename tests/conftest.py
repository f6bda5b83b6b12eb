"""With CI=true a test that is skipped because something is missing fails. Reasons that begin with "n/a: " are fine: there
is nothing to test in that case."""
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "lib"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if os.environ.get("CI") != "true" or not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if "n/a: " not in reason:
        report.outcome = "failed"
        report.longrepr = f"skipped where nothing may be: {reason}"
