"""Params, metrics and artifacts of the step's tracking run, by plain HTTP calls to the MLflow REST API.

The mlflow package would do as well; this file shows that nothing but the standard library is needed. Address, token and
run come from MLFLOW_TRACKING_URI, MLFLOW_TRACKING_TOKEN and MLFLOW_RUN_ID. Without them nothing is sent.

Tracking never fails the training: what cannot be delivered is said on stderr. Calls are repeated for up to RETRY_FOR
seconds after a lost connection or a 5xx answer (the API takes a repeated point once); points that still did not get
through go out together with `finish`.
"""
import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

RETRY_FOR = 30.0
TIMEOUT = 20.0
MLFLOW = "/api/2.0/mlflow"
ARTIFACTS = "/api/2.0/mlflow-artifacts/artifacts"


class TrackingError(Exception):
    pass


class Tracking:
    def __init__(self, env=os.environ, retry_for=RETRY_FOR):
        self.base = env.get("MLFLOW_TRACKING_URI", "").rstrip("/")
        self.token = env.get("MLFLOW_TRACKING_TOKEN", "")
        self.run_id = env.get("MLFLOW_RUN_ID", "")
        self.retry_for = retry_for
        self.down = False  # the last call was given up: try the next ones once only, until one gets through
        self.late = {"metrics": [], "params": []}
        self.root = None
        if not self.on:
            print("tracking: no tracking server is set, nothing is recorded", file=sys.stderr)

    @property
    def on(self):
        return bool(self.base and self.run_id)

    def param(self, key, value):
        point = {"key": key, "value": str(value)}
        if not self._try(f"param {key}", self._post, "/runs/log-parameter", point):
            self.late["params"].append(point)

    def metric(self, key, value, step=0):
        point = {"key": key, "value": wire(value), "timestamp": int(time.time() * 1000), "step": step}
        if not self._try(f"metric {key}", self._post, "/runs/log-metric", point):
            self.late["metrics"].append(point)

    def batch(self, metrics=None, params=None, tags=None, step=0):
        """Several at once: three dicts of key and value."""
        now = int(time.time() * 1000)
        body = {
            "metrics": [{"key": k, "value": wire(v), "timestamp": now, "step": step} for k, v in (metrics or {}).items()],
            "params": [{"key": k, "value": str(v)} for k, v in (params or {}).items()],
            "tags": [{"key": k, "value": str(v)} for k, v in (tags or {}).items()],
        }
        return self._try("batch", self._post, "/runs/log-batch", body)

    def artifact(self, path, data, content_type="application/octet-stream"):
        """Stores bytes as a file of the run; path is relative, with '/'."""
        return self._try(f"artifact {path}", self._put, path, data, content_type)

    def finish(self):
        """Sends what did not get through before."""
        late, self.late = self.late, {"metrics": [], "params": []}
        count = sum(map(len, late.values()))
        if count and not self._try(f"{count} late points", self._post, "/runs/log-batch", late):
            print(f"tracking: {count} points are lost", file=sys.stderr)

    def _post(self, path, body):
        data = json.dumps(dict(body, run_id=self.run_id), allow_nan=False).encode()
        self._call("POST", MLFLOW + path, data, "application/json")

    def _put(self, path, data, content_type):
        if self.root is None:
            query = urllib.parse.urlencode({"run_id": self.run_id})
            uri = json.loads(self._call("GET", f"{MLFLOW}/runs/get?{query}"))["run"]["info"]["artifact_uri"]
            parsed = urllib.parse.urlsplit(uri)
            if parsed.scheme != "mlflow-artifacts":
                raise TrackingError(f"artifacts of this run are kept at {uri}, which this script cannot write to")
            self.root = parsed.path.strip("/")
        self._call("PUT", f"{ARTIFACTS}/{urllib.parse.quote(f'{self.root}/{path}')}", data, content_type)

    def _try(self, what, call, *args):
        if not self.on:
            return True
        try:
            call(*args)
            self.down = False
            return True
        except (TrackingError, KeyError, TypeError, ValueError) as e:
            print(f"tracking: {what}: {e}", file=sys.stderr)
            return False

    def _call(self, method, path, data=None, content_type=None):
        """One request, repeated while the server is away. Returns the body; raises TrackingError."""
        headers = {"Accept": "application/json"}
        if content_type:
            headers["Content-Type"] = content_type
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        end = time.monotonic() + (0 if self.down else self.retry_for)
        pause = 0.1
        while True:
            request = urllib.request.Request(self.base + path, data=data, headers=headers, method=method)
            try:
                with urllib.request.urlopen(request, timeout=TIMEOUT) as reply:
                    return reply.read()
            except urllib.error.HTTPError as e:
                problem = f"{e.code} {e.read(500).decode('utf-8', 'replace').strip()}"
                if e.code < 500 and e.code != 429:
                    raise TrackingError(problem) from None
            except (OSError, http.client.HTTPException) as e:
                problem = str(e) or type(e).__name__
            if time.monotonic() + pause > end:
                self.down = True
                raise TrackingError(f"{problem} (given up)")
            time.sleep(pause)
            pause = min(pause * 2, 3.0)


def wire(value):
    """A number as the API's JSON takes it: NaN and the infinities are strings."""
    value = float(value)
    if value != value:
        return "NaN"
    return ("Infinity" if value > 0 else "-Infinity") if abs(value) == float("inf") else value
