"""Models scored here, from the files that the registry keeps, with the example's own code."""
import datetime
import sys
from pathlib import Path

CHICAGO = Path(__file__).resolve().parents[1] / "chicago"
sys.path.insert(0, str(CHICAGO))
import ridership  # noqa: E402

import tide  # noqa: E402


class Outside:
    def __init__(self, state):
        self.folder = state / "models"
        self.rows = ridership.read(str(CHICAGO / "chicago.csv.gz"))
        self.models = {}

    def model(self, number):
        if number not in self.models:
            where = self.folder / str(number)
            tide.call("model", "download", "ridership", number, where, "-q")
            found = next(where.rglob("model.json"))
            self.models[number] = ridership.LinearModel.load(str(found.parent))
        return self.models[number]

    def error(self, number, first, last):
        """The mean absolute error of a version on the days from first to last."""
        rows = ridership.between(self.rows, first, last)
        return ridership.mae(ridership.labels(rows), self.model(number).predict(rows))


def day_before(day):
    return (datetime.date.fromisoformat(day) - datetime.timedelta(days=1)).isoformat()


def year_after(day):
    """The twelve months after a day."""
    first = datetime.date.fromisoformat(day) + datetime.timedelta(days=1)
    return first.isoformat(), day_before(first.replace(year=first.year + 1).isoformat())
