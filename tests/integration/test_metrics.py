"""/metrics: the text format, what it counts, and who may read it."""
import re

LINE = re.compile(r'^[a-z_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? -?[0-9.e+-]+$')


def read(api):
    reply = api.get("/metrics", expect=200)
    assert reply.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    return reply.body.decode()


def value(text, name):
    return float(next(line.rsplit(" ", 1)[1] for line in text.splitlines() if line.startswith(name + " ")))


def test_format(api, project):
    text = read(api)
    typed = set()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            assert line.split()[2] not in typed, "a metric is announced twice"
            typed.add(line.split()[2])
        elif not line.startswith("#"):
            assert LINE.match(line), line
            name = re.match("[a-z_]+", line).group()
            assert name in typed or re.sub("_(bucket|sum|count)$", "", name) in typed, line
    assert value(text, "process_resident_memory_bytes") > 1 << 20
    assert value(text, "process_open_fds") > 10
    assert 0 <= value(text, "tidemill_uptime_seconds") < 600


def test_requests_are_counted(api, project):
    name = 'tidemill_http_requests_total{route="projects.get",code="%s"}'
    duration = 'tidemill_http_request_duration_seconds_%s{route="projects.get"}'
    api.get(f"/api/v1/projects/{project}", expect=200)
    before = read(api)
    for _ in range(5):
        api.get(f"/api/v1/projects/{project}", expect=200)
    api.get("/api/v1/projects/no-such-project", expect=404)
    after = read(api)
    assert value(after, name % "2xx") == value(before, name % "2xx") + 5
    assert value(after, name % "4xx") >= 1
    assert value(after, duration % "count") == value(before, duration % "count") + 6
    assert value(after, 'tidemill_http_request_duration_seconds_bucket{route="projects.get",le="+Inf"}') == value(
        after, duration % "count")
    assert value(after, 'tidemill_db_connections_up{lane="write"}') >= 1


def test_who(server):
    assert server.client().get("/metrics").status == 401
