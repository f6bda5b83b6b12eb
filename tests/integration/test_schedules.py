"""Runs by the clock and at the end of other runs: each once, however the server comes and goes."""
import datetime
import hashlib
import re

import pytest
from harness import until
from test_engine import Hand, data_of, ended, pipeline, project, step, steps_of  # noqa: F401


@pytest.fixture
def hand(server, admin, project):
    return Hand(server, admin, f"w-{project}", pool=project)


def put(admin, project, triggers, name="p", expect=200, **more):
    source = pipeline({"a": step(project)}, name=name, spec=f"  triggers: [{triggers}]\n", **more)
    return admin.put(f"/api/v1/projects/{project}/pipelines/{name}", {"source": source}, expect=expect).json()


def runs(admin, project, name="p"):
    items = admin.get(f"/api/v1/projects/{project}/runs?pipeline={name}&limit=100", expect=200).json()["items"]
    return sorted(r["trigger_key"] for r in items)


def show(admin, project, name="p"):
    return admin.get(f"/api/v1/projects/{project}/pipelines/{name}", expect=200).json()


def set_back(server, project, span, name="p"):
    """As if no server had looked at the schedules for so long."""
    server.sql(f"UPDATE pipeline_schedule SET settled_at = now() - interval '{span}', next_at = now() - interval '{span}'"
               f" WHERE pipeline_id = (SELECT id FROM pipeline WHERE name = '{name}' AND project_id ="
               f" (SELECT id FROM project WHERE name = '{project}'))")


def sweep(server):
    """A new leader makes up for what may have been missed, first of all."""
    server.kill()
    server.start()


def days_at(hour, minute, n):
    """The last so many instants at this time of the day, in UTC."""
    now = datetime.datetime.now(datetime.timezone.utc)
    last = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
    if last > now:
        last -= datetime.timedelta(days=1)
    return sorted((last - datetime.timedelta(days=i)).strftime("%Y-%m-%dT%H:%M:%SZ") for i in range(n))


def far_time():
    """Half a day away from now, so that no test meets it."""
    return (datetime.datetime.now(datetime.timezone.utc).hour + 12) % 24, 30


def test_a_minute_starts_one_run_at_its_time(admin, project):
    got = put(admin, project, '{schedule: {cron: "* * * * *"}}')
    assert got["schedules"][0]["cron"] == "* * * * *" and got["schedules"][0]["timezone"] == "UTC" and got["owed"] == []
    first = got["schedules"][0]["next_at"]
    until(lambda: runs(admin, project), 75)
    assert runs(admin, project)[0] == first
    assert show(admin, project)["schedules"][0]["next_at"] > first
    admin.post(f"/api/v1/projects/{project}/pipelines/p/pause", expect=200)


@pytest.mark.parametrize("missed,want", [("none", 0), ("last", 1), ("all, max: 3", 3), ("all", 5)])
def test_what_was_missed_is_started_as_the_file_says(server, admin, project, missed, want):
    hour, minute = far_time()
    put(admin, project, f'{{schedule: {{cron: "{minute} {hour} * * *", missed: {missed}}}}}')
    set_back(server, project, "5 days")
    until(lambda: show(admin, project)["schedules"][0]["next_at"] > datetime.datetime.utcnow().isoformat(), 20)
    until(lambda: len(runs(admin, project)) == want and not show(admin, project)["owed"], 20)
    assert runs(admin, project) == days_at(hour, minute, want)
    told = server.sql("SELECT data ->> 'missed', data ->> 'started' FROM event WHERE type = 'pipeline.schedule_missed'"
                      f" AND project_id = (SELECT id FROM project WHERE name = '{project}')")
    assert told == [f"5|{want}"]


def test_instants_are_decided_once_when_the_server_is_killed(server, admin, project):
    hour, minute = far_time()
    put(admin, project, f'{{schedule: {{cron: "{minute} {hour} * * *", missed: all, max: 100}}}}')
    set_back(server, project, "40 days")
    for _ in range(3):
        server.kill()
        server.start()
        set_back(server, project, "40 days")  # looks again at what it has decided
    until(lambda: len(runs(admin, project)) == 40 and not show(admin, project)["owed"], 150)
    assert runs(admin, project) == days_at(hour, minute, 40)


def test_a_schedule_that_stays_in_the_file_keeps_what_it_has_decided(server, admin, project):
    hour, minute = far_time()
    put(admin, project, f'{{schedule: {{cron: "{minute} {hour} * * *"}}}}')
    before = server.sql("SELECT settled_at FROM pipeline_schedule WHERE pipeline_id = "
                        f"(SELECT id FROM pipeline WHERE project_id = (SELECT id FROM project WHERE name = '{project}'))")
    got = put(admin, project, f'{{schedule: {{cron: "{minute} {hour} * * *", dst: skip}}}}, '
                              '{schedule: {cron: "0 0 29 2 *", timezone: Europe/Berlin}}')
    assert [s["timezone"] for s in got["schedules"]] == ["UTC", "Europe/Berlin"]
    assert re.match(r"20\d\d-02-28T23:00:00Z", got["schedules"][1]["next_at"])
    after = server.sql("SELECT settled_at FROM pipeline_schedule WHERE timezone = 'UTC' AND pipeline_id = "
                       f"(SELECT id FROM pipeline WHERE project_id = (SELECT id FROM project WHERE name = '{project}'))")
    assert after == before
    got = put(admin, project, '{schedule: {cron: "0 0 29 2 *", timezone: Europe/Berlin}}')
    assert [s["timezone"] for s in got["schedules"]] == ["Europe/Berlin"]


def test_a_paused_pipeline_passes_its_instants_over(server, admin, project):
    hour, minute = far_time()
    put(admin, project, f'{{schedule: {{cron: "{minute} {hour} * * *", missed: all}}}}')
    paused = admin.post(f"/api/v1/projects/{project}/pipelines/p/pause", expect=200).json()
    assert paused["paused"] is True
    again = admin.post(f"/api/v1/projects/{project}/pipelines/p/pause", expect=200).json()
    assert again["version"] == paused["version"]
    set_back(server, project, "5 days")
    until(lambda: show(admin, project)["schedules"][0]["next_at"] > datetime.datetime.utcnow().isoformat(), 20)
    assert admin.post(f"/api/v1/projects/{project}/pipelines/p/resume", expect=200).json()["paused"] is False
    # Neither what a server looks at only after it was resumed; the other pipeline tells that it has looked.
    put(admin, project, f'{{schedule: {{cron: "{minute} {hour} * * *", missed: all}}}}', name="other")
    set_back(server, project, "2 days")
    set_back(server, project, "2 days", name="other")
    until(lambda: len(runs(admin, project, "other")) == 2, 20)
    until(lambda: show(admin, project)["schedules"][0]["next_at"] > datetime.datetime.utcnow().isoformat(), 20)
    assert show(admin, project)["owed"] == [] and runs(admin, project) == []
    server.sql(f"UPDATE pipeline SET resumed_at = now() - interval '1 day' WHERE id = '{paused['id']}'")
    set_back(server, project, "5 days")
    until(lambda: runs(admin, project), 20)
    assert runs(admin, project) == days_at(hour, minute, 1)
    assert admin.post(f"/api/v1/projects/{project}/pipelines/none/pause").status == 404


def test_a_paused_pipeline_passes_new_data_and_ends_of_runs_over(server, admin, project, hand):
    put(admin, project, "", name="first")
    triggers = "{dataset: {name: d}}, {pipeline: {name: first}}"
    put(admin, project, triggers)
    put(admin, project, triggers, name="awake")
    path = f"/api/v1/projects/{project}"

    def push(name):
        digest = hashlib.sha256(b"x").hexdigest()
        return admin.post(f"{path}/datasets/d/versions", {"files": [{"path": name, "digest": digest, "size": 1}]}, expect=201).json()["id"]

    def run_first():
        run = admin.post(f"{path}/runs", {"pipeline": "first"}, expect=201).json()["id"]
        jobs = hand.take(1)
        while jobs[0]["run"] != run:
            hand.finish(jobs[0])
            jobs = hand.take(1)
        hand.finish(jobs[0])
        return run

    data_of(server, admin, project, "d", 1)
    until(lambda: len(runs(admin, project)) == 1 and len(runs(admin, project, "awake")) == 1, 20)
    before = runs(admin, project)
    admin.post(f"{path}/pipelines/p/pause", expect=200)
    passed = {push("meanwhile"), run_first()}
    until(lambda: passed <= set(runs(admin, project, "awake")), 20)
    admin.post(f"{path}/pipelines/p/resume", expect=200)
    # A sweep owes the other one its runs again, when they are forgotten.
    keys = "'" + "', '".join(passed) + "'"
    server.sql(f"UPDATE run SET trigger_key = 'gone-' || id WHERE pipeline = 'awake' AND trigger_key IN ({keys});"
               f" DELETE FROM trigger_due WHERE key IN ({keys})")
    sweep(server)
    until(lambda: passed <= set(runs(admin, project, "awake")), 30)
    assert show(admin, project)["owed"] == [] and runs(admin, project) == before
    later = {push("later"), run_first()}
    until(lambda: set(runs(admin, project)) == set(before) | later, 30)


def test_what_cannot_be_started_is_tried_again_and_says_why(server, admin, project):
    hour, minute = far_time()
    put(admin, project, f'{{schedule: {{cron: "{minute} {hour} * * *"}}}}', keys="")
    source = pipeline({"a": step(project)}, name="p", spec=f'  triggers: [{{schedule: {{cron: "{minute} {hour} * * *"}}}}]\n'
                      "  datasets: {in: {name: away}}\n")
    admin.put(f"/api/v1/projects/{project}/pipelines/p", {"source": source}, expect=200)
    set_back(server, project, "1 day")
    owed = until(lambda: [o for o in show(admin, project)["owed"] if o["error"]], 20)
    assert owed[0]["trigger"] == "schedule" and owed[0]["key"] == days_at(hour, minute, 1)[0] and owed[0]["tries"] == 1
    assert "away" in owed[0]["error"], owed
    put(admin, project, f'{{schedule: {{cron: "{minute} {hour} * * *"}}}}')
    until(lambda: runs(admin, project) == days_at(hour, minute, 1), 30)
    assert show(admin, project)["owed"] == []


def test_the_end_of_a_run_starts_the_pipelines_that_follow(server, admin, project, hand):
    put(admin, project, "", name="first")
    put(admin, project, "{pipeline: {name: first}}", name="good")
    put(admin, project, "{pipeline: {name: first, state: failed}}", name="bad")
    put(admin, project, "{pipeline: {name: first, state: ended}}", name="any")

    def go(**end):
        run = admin.post(f"/api/v1/projects/{project}/runs", {"pipeline": "first"}, expect=201).json()
        job = hand.take()[0]
        assert job["run"] == run["id"]
        hand.finish(job, **end)
        until(lambda: run["id"] in runs(admin, project, "any"), 20)
        for _ in range(len(runs(admin, project, "any")) and 2):
            hand.finish(hand.take()[0])
        return run["id"]

    one = go()
    two = go(state="failed", reason="exit_code")
    assert runs(admin, project, "good") == [one]
    assert runs(admin, project, "bad") == [two]
    assert runs(admin, project, "any") == sorted([one, two])


def test_pipelines_that_start_each_other_are_refused(server, admin, project):
    put(admin, project, "", name="a")
    put(admin, project, "{pipeline: {name: a}}", name="b")
    put(admin, project, "{pipeline: {name: b}}", name="c")
    problem = put(admin, project, '{schedule: {cron: "@daily"}}, {pipeline: {name: c}}', name="a", expect=422)
    assert problem["errors"][0]["pointer"] == "/source/spec/triggers/1/pipeline/name"
    problem = put(admin, project, "{pipeline: {name: a}}", name="a", expect=422)
    assert problem["errors"][0]["pointer"].endswith("/triggers/0/pipeline/name")


@pytest.mark.parametrize("trigger,pointer,words", [
    ("{}", "/triggers/0", "give one of"),
    ('{schedule: {cron: "@daily"}, dataset: {name: d}}', "/triggers/0", "give one of"),
    ('{schedule: {cron: "61 * * * *"}}', "/triggers/0/schedule/cron", "minute: '61' is not in 0-59"),
    ('{schedule: {cron: "0 0 30 2 *"}}', "/triggers/0/schedule/cron", "no year has"),
    ('{schedule: {cron: "@daily", timezone: Mars/Olympus}}', "/triggers/0/schedule/timezone", "no time zone 'Mars/Olympus'"),
    ('{schedule: {cron: "@daily", timezone: ../../etc/passwd}}', "/triggers/0/schedule/timezone", "no time zone"),
    ('{schedule: {cron: "@daily", missed: some}}', "/triggers/0/schedule/missed", "none"),
    ('{schedule: {cron: "@daily", max: 101}}', "/triggers/0/schedule/max", "100"),
    ('{schedule: {cron: "@daily"}}, {schedule: {cron: "@daily"}}', "/triggers/1/schedule", "given twice, in items 0 and 1"),
    ('{schedule: {}}', "/triggers/0/schedule/cron", ""),
])
def test_bad_triggers_are_named(admin, project, trigger, pointer, words):
    problem = put(admin, project, trigger, expect=422)
    assert problem["errors"][0]["pointer"].endswith(pointer), problem
    assert words in str(problem["errors"]), problem
