"""The stream of a project's events: live, by topic, resumed, and cut when the caller may not read any more."""
import subprocess
import threading
import time

import pytest

from harness import until
from spool import sse


class Listener(threading.Thread):
    def __init__(self, api, project, query="", last_id=None):
        super().__init__(daemon=True)
        self.events, self.error = [], None
        self.args = (api, f"/api/v1/projects/{project}/events{query}", last_id)
        self.start()

    def run(self):
        try:
            for ev in sse(*self.args, timeout=20):
                self.events.append(ev)
        except Exception as e:
            self.error = e

    def ids(self):
        return [int(e[0]) for e in list(self.events)]

    def subjects(self):
        return [e[2].get("subject") for e in list(self.events)]


@pytest.fixture(scope="module")
def project_id(api, project):
    return api.get(f"/api/v1/projects/{project}").json()["id"]


@pytest.fixture
def listen(server, api, project):
    def start(query="", last_id=None, client=None):
        before = streams(api)
        listener = Listener(client or api, project, query, last_id)
        until(lambda: streams(api) > before or not listener.is_alive())
        return listener
    return start


def streams(api):
    text = api.get("/metrics", expect=200).body.decode()
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith("tidemill_event_streams ")))


def add(server, project_id, subject, parent="", kind="test.happened"):
    """An event as a server writes it; returns its id."""
    project = f"'{project_id}'" if project_id else "NULL"
    return int(server.sql(f"INSERT INTO event (project_id, type, subject, parent, data) VALUES ({project}, '{kind}', "
                          f"'{subject}', nullif('{parent}', ''), '{{\"n\": 1}}') RETURNING id")[0])


def test_live(server, api, project, project_id, listen):
    listener = listen()
    event = add(server, project_id, "thing_1", "parent_1")
    add(server, "", "of no project")
    other = api.post("/api/v1/projects", {"name": "other"}, expect=201).json()["id"]
    add(server, other, "of another project")
    last = add(server, project_id, "thing_2")
    until(lambda: last in listener.ids())
    # The project was made a moment before: its own event comes, too, when the server had not read it yet.
    heard = [e for e in listener.events if (e[1], e[2].get("subject")) != ("project.created", project_id)]
    assert [int(e[0]) for e in heard] == [event, last]
    assert heard[0][1] == "test.happened"
    data = heard[0][2]
    assert (data["id"], data["subject"], data["parent"], data["project"], data["data"]) == (
        event, "thing_1", "parent_1", project, {"n": 1})


def test_our_own_writes_come_at_once(api, project, listen):
    """Written right after the event before was seen: a reader that only looks every second would need one each."""
    listener = listen()
    api.post("/api/v1/principals", {"name": "events-member"}, expect=201)
    took = []
    for n in range(1, 7):
        start = time.monotonic()
        api.put(f"/api/v1/projects/{project}/members/events-member", {"role": ["viewer", "ci"][n % 2]}, expect=200)
        until(lambda: sum(e[1] == "project.members_changed" for e in listener.events) == n, 20)
        took.append(time.monotonic() - start)
    assert min(took[1:]) < 0.5, took


@pytest.mark.parametrize("topic", ["zz", "run", "run_", "zz_1", "run_a,zz", "Project"])
def test_a_topic_that_nothing_is_about_is_refused(server, project_id, topic):
    [error] = server.admin().get(f"/api/v1/projects/demo/events?topic={topic}", expect=422).json()["errors"]
    assert (error["in"], error["parameter"]) == ("query", "topic") and "run_" in error["detail"] and "project" in error["detail"]


def test_topics(server, project_id, listen):
    listener = listen("?topic=run_a,run_b")
    for subject, parent in (("run_a", ""), ("run_x", ""), ("st_1", "run_a"), ("st_2", "run_x"), ("run_b", ""), ("run_ab", "")):
        last = add(server, project_id, subject, parent)
    end = add(server, project_id, "run_b", kind="test.end")
    until(lambda: end in listener.ids())
    assert listener.subjects() == ["run_a", "st_1", "run_b", "run_b"]
    assert last not in listener.ids()


def test_resume_misses_nothing_and_repeats_nothing(server, project_id, listen):
    ids = [add(server, project_id, f"r{i}") for i in range(5)]
    server.sql(f"INSERT INTO event (project_id, type, subject) SELECT '{project_id}', 'test.many', 'm' || i "
               "FROM generate_series(1, 1000) i")
    listener = listen(last_id=ids[1])
    for i in range(20):
        last = add(server, project_id, f"after{i}")
    until(lambda: last in listener.ids())
    time.sleep(1.2)  # the hub tells late what the table gave already
    got = listener.ids()
    assert got[:3] == ids[2:] and len(got) == len(set(got)) == 3 + 1000 + 20
    by_query = listen(f"?from={ids[3]}")
    until(lambda: last in by_query.ids())
    assert by_query.ids()[0] == ids[4]


def test_reset(server, project_id, listen):
    add(server, project_id, "before")
    listener = listen(last_id=999_999_999)
    until(lambda: listener.events)
    assert listener.events[0][1] == "reset"
    junk = listen(last_id="what?")
    until(lambda: junk.events)
    assert junk.events[0][1] == "reset"
    event = add(server, project_id, "after")
    until(lambda: event in listener.ids()[1:])
    again = listen(last_id=listener.events[0][0])  # the position of a reset is one to come back to
    until(lambda: event in again.ids())
    assert "reset" not in [e[1] for e in again.events]


def test_order_of_overlapping_transactions(server, project_id, listen):
    """A transaction that began later writes the lower id and commits last: its event is told all the same."""
    listener = listen()
    start = listener.ids()

    def psql(text):
        return subprocess.Popen(["psql", "-X", "-q", server.database, "-c", text], stdout=subprocess.DEVNULL)

    insert = "INSERT INTO event (project_id, type, subject) VALUES ('%s', 'test.order', '%s')"
    first = psql("BEGIN; SELECT pg_current_xact_id(); SELECT pg_sleep(1); " + insert % (project_id, "early") + "; COMMIT")
    time.sleep(0.4)
    second = psql("BEGIN; " + insert % (project_id, "late") + "; SELECT pg_sleep(2); COMMIT")
    assert first.wait(20) == 0 and second.wait(20) == 0
    until(lambda: len(listener.ids()) == len(start) + 2, 5, message=lambda: listener.events)
    assert listener.subjects()[-2:] == ["early", "late"]
    ids = listener.ids()[-2:]
    assert ids[1] < ids[0]
    resumed = listen(last_id=ids[0])
    until(lambda: ids[1] in resumed.ids())


def test_cut_when_revoked(server, api, project, listen):
    person = server.person("events-reader", project, "viewer")
    listener = listen(client=person)
    member = server.person("events-leaver", project, "viewer")
    leaving = listen(client=member)
    staying = listen()
    api.delete("/api/v1/principals/events-reader", expect=204)
    api.delete(f"/api/v1/projects/{project}/members/events-leaver", expect=204)
    listener.join(8)
    leaving.join(8)
    assert not listener.is_alive() and not leaving.is_alive() and staying.is_alive()


def test_no_outsiders(server, api, project, project_id):
    api.post("/api/v1/projects", {"name": "elsewhere"}, expect=201)
    outsider = server.person("events-outsider", "elsewhere", "owner")
    assert outsider.get(f"/api/v1/projects/{project}/events").status == 404
    assert server.client().get(f"/api/v1/projects/{project}/events").status == 401
