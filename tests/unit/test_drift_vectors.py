"""Every case of tests/fixtures/drift_vectors.json through build/<variant>/drift_case."""
import json
import math
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "build" / os.environ.get("V", "debug") / "drift_case"
CASES = json.loads((ROOT / "tests/fixtures/drift_vectors.json").read_text())["vectors"]
# Fields that need a law that is not computed here, and tests that come later.
LEFT_OUT = {"p_value_scipy_asymp"}
MAY_SKIP = {"edf_tests", "cvm_2samp", "mmd2_rbf", "cbpe_binary", "isotonic", "label_join", "sequential"}


def number(v):
    return float(v) if v in ("NaN", "Infinity", "-Infinity") else v


def compare(got, want, tolerance, path=""):
    if isinstance(want, dict):
        for key, value in want.items():
            if key in LEFT_OUT:
                continue
            assert key in got, f"{path}/{key} is missing"
            compare(got[key], value, tolerance.get(key, tolerance), f"{path}/{key}")
    elif isinstance(want, list):
        assert len(got) == len(want), path
        for i, value in enumerate(want):
            compare(got[i], value, tolerance, f"{path}/{i}")
    elif isinstance(want, bool) or want is None or isinstance(want, int):
        assert got == want, path
    elif isinstance(number(want), float):
        limit = tolerance if isinstance(tolerance, float) else 1e-9
        assert math.isclose(number(got), number(want), rel_tol=limit, abs_tol=limit), f"{path}: {got} != {want}"
    else:
        assert got == want, path


@pytest.mark.parametrize("case", CASES, ids=[c["name"] for c in CASES])
def test_vector(case, tmp_path):
    path = tmp_path / "case.json"
    path.write_text(json.dumps({k: v for k, v in case.items() if k != "expected"}))
    run = subprocess.run([TOOL, path], capture_output=True, timeout=60)
    assert run.returncode == 0, run.stderr.decode()
    out = json.loads(run.stdout)
    assert out["name"] == case["name"]
    if "skipped" in out:
        assert case["test"] in MAY_SKIP, out["skipped"]
        pytest.skip("n/a: " + out["skipped"])
    compare(out["result"], case["expected"], case.get("tolerance", {}))


def test_bad_case_is_refused(tmp_path):
    path = tmp_path / "case.json"
    path.write_text("{")
    assert subprocess.run([TOOL, path], capture_output=True, timeout=60).returncode == 2
