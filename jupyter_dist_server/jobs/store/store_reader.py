"""Reads the jobs of a user: nothing here changes the file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ...common.errors import DistError
from .attempt import Attempt, Event, GpuUsage
from .job import Job, Spec, label_of
from .secret_values import SecretValues, read_secrets
from .store_file import StoreFile

JSON = ("params", "gpu_ids", "gpu_uuids")
"""Columns that are kept as JSON."""
COLUMNS = [name for name in Job.__dataclass_fields__ if name not in ("id", "spec")]
_NAMES = ("id", "spec", *COLUMNS)
AMONG = "id IN (SELECT value FROM json_each(?))"
"""A condition in SQL; its value is a JSON array of ids, of which there may be 100,000."""
_ACTIVE = "state IN ('CONFIGURING', 'RUNNING', 'COMPLETING')"
"""As the index has it: SQLite would look at all jobs otherwise."""
_SELECT = "SELECT " + ", ".join(f'jobs."{name}"' for name in _NAMES) + " FROM jobs"
_ARE_ALIKE = "SELECT " + ", ".join(f'min("{name}" IS ?)' for name in _NAMES)


_decode = json.JSONDecoder().raw_decode
"""Unlike msgspec, with any file name; unlike `json.loads`, without a search for blanks."""


def _params(texts: Sequence[str]) -> list[dict[str, str]]:
    # At once: of 10,000, one by one takes four times as long.
    return list(_decode(f"[{','.join(texts)}]")[0])


def _uuids(texts: Sequence[str]) -> list[tuple[str, ...]]:
    return [() if text == "[]" else tuple(_decode(text)[0]) for text in texts]


_READERS: dict[str, Callable[[Sequence[Any]], Sequence[Any]]] = {
    "params": _params,
    "gpu_ids": _uuids,
    "gpu_uuids": _uuids,
    "held": lambda values: [*map(bool, values)],
    "kill": lambda values: [*map(bool, values)],
}
"""What makes the fields of jobs from the values of a column."""


class StoreReader(StoreFile):
    """The user's jobs, as they are; see `StoreFile` for how it is opened."""

    def __init__(self, folder: Path) -> None:
        self._specs: dict[int, Spec] = {}
        super().__init__(folder)

    def _open(self) -> None:
        super()._open()
        self._specs.clear()

    def submitted(self, token: str) -> range | None:
        """Return the ids of the jobs that a submission has added, if there is one of this name."""
        rows = self.read("SELECT first, last FROM submissions WHERE token = ?", token)
        return range(rows[0]["first"], rows[0]["last"] + 1) if rows else None

    def environment(self, job: Job) -> dict[str, str]:
        """Return the variables that a job was submitted with; `secrets` has what is hidden."""
        rows = self.read("SELECT body FROM environments WHERE hash = ?", job.spec.environment)
        return dict(json.loads(rows[0]["body"])) if rows else {}

    def secrets(self, job: Job) -> SecretValues:
        """Return the values of a job that are hidden elsewhere."""
        return read_secrets(self.folder, job.spec.secrets)

    def get(self, id: int) -> Job:
        """Return a job; an unknown id is an error."""
        found = self.select("id = ?", id)
        if not found:
            raise DistError("unknown_job", f"There is no job {id}.", "jdist queue lists your jobs.")
        return found[0]

    def select(self, where: str = "1", *values: Any, order: str = "id") -> list[Job]:
        """Return the jobs that a condition in SQL holds for."""
        rows = self.read(f"{_SELECT} WHERE {where} ORDER BY {order}", *values)
        return self._jobs(_NAMES, rows)

    def select_many(self, where: str, *values: Any, order: str = "id", most: int = -1) -> list[Job]:
        """Return jobs as `select` does; of tasks of an array, what all have alike is read once."""
        which = f"WHERE {where} ORDER BY {order} LIMIT {most}"
        # To sort all of them would only take time.
        among = f"WHERE {where}" if most < 0 else which
        with self.at_one_time():
            first = self.read(f"SELECT * FROM ({_SELECT} {which}) LIMIT 1", *values)
            if not first:
                return []
            (alike,) = self.read(
                f"{_ARE_ALIKE} FROM (SELECT * FROM jobs {among})", *first[0], *values
            )
            names = ["id"]
            names += [name for name, are in zip(_NAMES[1:], alike[1:], strict=True) if not are]
            columns = ", ".join(f'"{name}"' for name in names)
            rows = self.read(f"SELECT {columns} FROM jobs {which}", *values)
        (common,) = self._jobs(_NAMES, first)
        return self._jobs(names, rows, vars(common))

    def get_all(self, ids: Sequence[int]) -> list[Job]:
        """Return some jobs, in the order of their ids here, without those that are gone."""
        found = {job.id: job for job in self.select_many(AMONG, json.dumps(list(ids)))}
        return [found[id] for id in ids if id in found]

    def pending(self, most: int = -1) -> list[Job]:
        """Return the jobs that wait, in the user's order; `most` of them."""
        order = "priority DESC, queued, id"
        return self.select_many("state = 'PENDING'", order=order, most=most)

    def active(self) -> list[Job]:
        """Return the jobs that a runner has."""
        return self.select(_ACTIVE)

    def dependencies(self) -> dict[int, list[tuple[Job, str]]]:
        """Return what pending jobs depend on: by id, other jobs and how they must have ended."""
        with self.at_one_time():
            rows = self.read(
                "SELECT job, upon, type FROM dependencies JOIN jobs ON jobs.id = job "
                "WHERE jobs.state = 'PENDING'"
            )
            others = {
                job.id: job
                for job in self.select(
                    "id IN (SELECT upon FROM dependencies JOIN jobs AS j ON j.id = job "
                    "WHERE j.state = 'PENDING')"
                )
            }
        found: dict[int, list[tuple[Job, str]]] = {}
        for row in rows:
            found.setdefault(row["job"], []).append((others[row["upon"]], row["type"]))
        return found

    def upon(self, id: int) -> list[tuple[Job, str]]:
        """Return what a job depends on: other jobs, and how they must have ended."""
        rows = self._db.execute("SELECT upon, type FROM dependencies WHERE job = ?", (id,))
        return [(self.get(row["upon"]), row["type"]) for row in rows.fetchall()]

    def events(self, after: int = 0, most: int = -1) -> list[Event]:
        """Return the changes of state after a number, the oldest first, `most` of them."""
        rows = self.read(
            "SELECT events.*, jobs.array, jobs.task, jobs.name FROM events JOIN jobs "
            "ON jobs.id = job WHERE seq > ? ORDER BY seq LIMIT ?",
            after,
            most,
        )
        found = []
        for row in map(dict, rows):
            label = label_of(row["job"], row.pop("array"), row.pop("task"))
            found.append(Event(**row, label=label))
        return found

    def last_event(self) -> int:
        """Return the number of the newest change of state."""
        return int(self.read("SELECT ifnull(max(seq), 0) FROM events")[0][0])

    def count_pending(self) -> int:
        """Return how many jobs wait, also held ones, without reading them."""
        return int(self.read("SELECT count(*) FROM jobs WHERE state = 'PENDING'")[0][0])

    def dependencies_of(self, id: int) -> list[tuple[str, str]]:
        """Return what a job was submitted to start after: labels of jobs, and the types."""
        rows = self.read(
            "SELECT type, id, array, task FROM dependencies JOIN jobs ON id = upon WHERE job = ?",
            id,
        )
        return [(label_of(row["id"], row["array"], row["task"]), row["type"]) for row in rows]

    def cancelled_with(self, ids: Sequence[int]) -> list[int]:
        """Return the jobs that were cancelled since they depend on these, or on one of them."""
        rows = self.read(
            "WITH RECURSIVE chain (id) AS (SELECT value FROM json_each(?) UNION "
            "SELECT job FROM chain JOIN dependencies ON upon = chain.id JOIN jobs ON jobs.id = job "
            "WHERE jobs.state = 'CANCELLED' AND jobs.reason = 'DependencyNeverSatisfied') "
            "SELECT id FROM chain ORDER BY id",
            json.dumps(list(ids)),
        )
        return [id for (id,) in rows if id not in ids]

    def tasks_of(self, array: int) -> tuple[int, int, int]:
        """Return how many tasks an array has, and its least and greatest number."""
        (row,) = self.read("SELECT count(*), min(task), max(task) FROM jobs WHERE array = ?", array)
        return tuple(row)

    def usage(self, job: Job) -> dict[str, GpuUsage]:
        """Return what was read of a job's GPUs in its present attempt, by UUID."""
        rows = self.read(
            "SELECT usage FROM attempts WHERE job = ? AND attempt = ?", job.id, job.attempt
        )
        return _usage_of(rows[0]["usage"]) if rows else {}

    def attempts(self, ids: Iterable[int]) -> dict[int, list[Attempt]]:
        """Return the attempts of jobs, the oldest first."""
        found: dict[int, list[Attempt]] = {}
        for id in ids:
            rows = self.read("SELECT * FROM attempts WHERE job = ? ORDER BY attempt", id)
            found[id] = [Attempt(**dict(row) | {"usage": _usage_of(row["usage"])}) for row in rows]
        return found

    def is_idle(self) -> bool:
        """Tell whether no job waits but held ones: their release starts a dispatcher."""
        waits = "SELECT 1 FROM jobs WHERE state = 'PENDING' AND NOT held LIMIT 1"
        return not self.read(waits)

    def is_starting(self) -> bool:
        """Tell whether a runner has been given a job that it has not started yet."""
        starting = f"SELECT 1 FROM jobs WHERE {_ACTIVE} AND state = 'CONFIGURING' LIMIT 1"
        return bool(self.read(starting))

    def run_lock(self, job: Job) -> Path:
        """Return the file that a job's runner locks, and before it its dispatcher."""
        return self.watched / f"{job.id}.lock"

    def _jobs(
        self,
        names: Sequence[str],
        rows: Sequence[sqlite3.Row],
        others: Mapping[str, Any] | None = None,
    ) -> list[Job]:
        """Return jobs from some of their columns, and the fields that all have alike."""
        if not rows:
            return []
        readers = {"spec": lambda numbers: [*map(self._spec, numbers)]} | _READERS
        # By column: looking 30 columns of each row up by name takes four times as long.
        columns = [
            readers[name](values) if name in readers else values
            for name, values in zip(names, zip(*rows, strict=True), strict=True)
        ]
        alike = dict(others or ())
        found = []
        for values in zip(*columns, strict=True):
            fields = alike.copy()
            fields.update(zip(names, values, strict=True))
            found.append(Job.of(fields))
        return found

    def _spec(self, number: int) -> Spec:
        if number not in self._specs:
            (body,) = self.read("SELECT body FROM specs WHERE id = ?", number)
            self._specs[number] = msgspec.convert(json.loads(body["body"]), Spec)
        return self._specs[number]


_usage_of = msgspec.json.Decoder(dict[str, GpuUsage]).decode
