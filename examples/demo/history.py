"""The data of the example, cut by time. Rows are passed on as they are written in the file."""
import csv
import datetime
import gzip
from collections import namedtuple

Quarter = namedtuple("Quarter", "year number")


def name(q):
    return f"{q.year}Q{q.number}"


def parse(text):
    year, _, number = text.partition("Q")
    if not (year.isdigit() and number in ("1", "2", "3", "4")):
        raise SystemExit(f"demo: '{text}' is not a quarter like 2011Q4")
    return Quarter(int(year), int(number))


def of_day(day):
    return Quarter(int(day[:4]), (int(day[5:7]) + 2) // 3)


def following(q):
    return Quarter(q.year, q.number + 1) if q.number < 4 else Quarter(q.year + 1, 1)


def first_day(q):
    return datetime.date(q.year, 3 * q.number - 2, 1).isoformat()


class History:
    def __init__(self, path):
        with gzip.open(path, "rt", encoding="utf-8", newline="") as f:
            rows = csv.reader(f)
            self.header = next(rows)
            at = self.header.index("date")
            self.rows = sorted((row[at], row) for row in rows)

    def write(self, path, keep):
        """The rows whose day `keep` takes; returns how many."""
        chosen = [row for day, row in self.rows if keep(day)]
        with open(path, "w", encoding="utf-8", newline="") as f:
            out = csv.writer(f, lineterminator="\n")
            out.writerow(self.header)
            out.writerows(chosen)
        return len(chosen)

    def quarters(self, first, last):
        end = min(last, of_day(self.rows[-1][0]))
        q = first
        while q <= end:
            yield q
            q = following(q)
