"""Ten years of schedules in all time zones, held against Python's zoneinfo, which reads the same data with code of its own."""
import datetime
import os
import pathlib
import random
import subprocess
import time
import zoneinfo

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "build" / os.environ.get("V", "debug") / "cron_tool"
UTC = datetime.timezone.utc
BEGIN, END = datetime.datetime(2020, 1, 1, tzinfo=UTC), datetime.datetime(2030, 1, 1, tzinfo=UTC)
FROM, UNTIL = int(BEGIN.timestamp()), int(END.timestamp())


def zones():
    """Names that Debian's tzdata has, but for trees and files that are no zones of the data base."""
    root = pathlib.Path("/usr/share/zoneinfo")
    names = (str(p.relative_to(root)) for p in root.rglob("*") if p.is_file() and p.read_bytes()[:4] == b"TZif")
    return sorted(n for n in names if n[0].isupper())


def instants(lines):
    text = "".join("\t".join(line) + "\n" for line in lines)
    out = subprocess.run([TOOL, str(FROM), str(UNTIL)], input=text, capture_output=True, text=True, check=True, timeout=300)
    return [[int(word) for word in line.split()] for line in out.stdout.splitlines()]


def goes_over(zone, before, after):
    """The second between two instants at which the zone's offset changes."""
    was = datetime.datetime.fromtimestamp(before, zone).utcoffset()
    while after - before > 1:
        middle = (before + after) // 2
        if datetime.datetime.fromtimestamp(middle, zone).utcoffset() == was:
            before = middle
        else:
            after = middle
    return after


def daily(zone, hour, minute, skip):
    """What a schedule of one fixed time a day comes to."""
    found, day = set(), BEGIN.date() - datetime.timedelta(days=2)
    while day <= END.date():
        local = datetime.datetime.combine(day, datetime.time(hour, minute), zone)
        at = int(local.timestamp())
        if datetime.datetime.fromtimestamp(at, zone).replace(tzinfo=None) == local.replace(tzinfo=None):
            found.add(at)  # fold is 0: the first of two
        elif not skip:
            found.add(goes_over(zone, at - 2 * 86400, at + 86400))
        day += datetime.timedelta(days=1)
    return sorted(at for at in found if FROM < at <= UNTIL)


def hourly(zone, minute):
    """Every instant, on a grid of a quarter of an hour, at which the clocks show that minute."""
    step = 60 * 15
    return [at for at in range(FROM + step, UNTIL + 1, step)
            if datetime.datetime.fromtimestamp(at, zone).minute == minute]


def test_daily_schedules_of_all_zones():
    names = zones()
    assert len(names) > 400 and "Europe/Berlin" in names
    policies = ["skip" if i % 2 else "once" for i in range(len(names))]
    got = instants([(n, p, "30 2 * * *") for n, p in zip(names, policies)])
    for name, policy, times in zip(names, policies, got):
        assert times == daily(zoneinfo.ZoneInfo(name), 2, 30, policy == "skip"), (name, policy)


def test_midnights_that_the_clocks_go_over():
    """Zones that change at midnight, where the day itself begins late or ends twice."""
    names = ["Africa/Cairo", "Asia/Beirut", "America/Asuncion", "America/Havana", "Asia/Gaza", "Asia/Tehran",
             "Asia/Amman", "Asia/Damascus", "America/Santiago", "Atlantic/Azores", "America/Scoresbysund"]
    lines = [(n, p, "0 0 * * *") for n in names for p in ("once", "skip")]
    for (name, policy, _), times in zip(lines, instants(lines)):
        assert times == daily(zoneinfo.ZoneInfo(name), 0, 0, policy == "skip"), (name, policy)


def test_hourly_schedules_follow_the_clock():
    seed = int(os.environ.get("SEED", time.time_ns() % 1_000_000))
    print(f"SEED={seed}")
    some = random.Random(seed).sample(zones(), 3) + ["Australia/Lord_Howe", "Europe/Berlin"]
    for name, times in zip(some, instants([(n, "once", "15 * * * *") for n in some])):
        assert times == hourly(zoneinfo.ZoneInfo(name), 15), name
