"""What came of it, from what the server has stored and from the models' files: a table, and summary.json."""
import json

import history
from outside import day_before, year_after
from tide import get, say


def last_day(quarter):
    return day_before(history.first_day(history.following(quarter)))


def promoted(decision):
    """None when there was nothing to promote."""
    verdict = decision.get("verdict")
    return None if not verdict or verdict == "none" else verdict == "promoted"


def holdout_end(version):
    run = get("run", "show", version["run_id"])
    return run["inputs"]["holdout_to"]


def rows_of_versions(outside, last):
    """Of each version, oldest first: when it was trained, its error on the year after its holdout, and the error of the
    champion that it met there."""
    out, champion = [], None
    for version in sorted(get("model", "versions", "ridership", "--limit", 0), key=lambda v: v["number"]):
        first, end = year_after(holdout_end(version))
        known = end <= last
        out.append({"version": version["number"], "trained_from": version["training_data"]["from"],
                    "trained_to": version["training_data"]["to"], "verdict": version["verdict"], "year": f"{first} to {end}",
                    "after": outside.error(version["number"], first, end) if known else None,
                    "before": outside.error(champion, first, end) if known and champion else None})
        if version["verdict"] == "promoted":
            champion = version["number"]
    return out


def errors(told, outside):
    return {history.name(q): {"with_retraining": window["performance"],
                              "without_retraining": outside.error(1, history.first_day(q), last_day(q))}
            for q, window, _ in told}


def years(told, outside):
    whole = sorted({q.year for q, _, _ in told if q.number == 4})
    return {str(y): outside.error(1, f"{y}-01-01", f"{y}-12-31") for y in whole}


def decisions_of(told):
    return [{"window": history.name(q), "fired": d["fired"], "reason": d["reason"], "run": d.get("run_id"),
             "promoted": promoted(d)} for q, _, decisions in told for d in decisions]


def number(value):
    return "-" if value is None else f"{value:.2f}"


def table(versions, by_year, told):
    say("\nversion  trained on                  MAE on the twelve months after its holdout")
    for v in versions:
        before = f"; the champion before it: {number(v['before'])}" if v["before"] is not None else ""
        say(f"{v['version']:>7}  {v['trained_from']} to {v['trained_to']}    {number(v['after'])} ({v['year']}){before}; "
            f"{v['verdict']}")
    say("\nMAE by year     with    without retraining")
    for year in by_year:
        inside = [w for q, w, _ in told if str(q.year) == year and w["performance"] is not None]
        rows = sum(w["labelled"] for w in inside)
        mean = sum(w["performance"] * w["labelled"] for w in inside) / rows if rows else None
        say(f"{year:<14}  {number(mean):>4}    {number(by_year[year]):>4}")
    say("\ndecisions on performance, with their reasons")
    for q, _, decisions in told:
        for d in decisions:
            if d["cause"] == "performance" and d["action"] != "record":
                say(f"{history.name(q)}  {d['action']}{'' if d['fired'] else ' (not taken)'}: {d['reason']}")
    drift = [d["action"] for _, _, decisions in told for d in decisions if d["cause"] == "drift" and d["fired"]]
    say(f"Beside it, on input drift: warnings {drift.count('warn')}, alerts {drift.count('alert')}; they start no training.")


def tell(path, told, outside):
    versions = rows_of_versions(outside, last_day(told[-1][0]))
    by_year, by_window = years(told, outside), errors(told, outside)
    table(versions, by_year, told)
    summary = {
        "versions": [{"version": v["version"], "trained_from": v["trained_from"], "trained_to": v["trained_to"],
                      "mae_next_year": v["after"]} for v in versions],
        "mae_without_retraining": by_year,
        "decisions": decisions_of(told),
        "error": by_window,
    }
    with open(path, "w", encoding="utf-8") as f:
        json.dump(summary, f, indent=2)
        f.write("\n")
    say(f"\nThe same in {path}")
