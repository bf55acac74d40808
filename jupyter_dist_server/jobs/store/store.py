"""All jobs of one user on one machine: a SQLite file, the only truth about them.

Every change of a state is conditional on the state and the attempt that were read, and is written
with its event in one transaction.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ...common.errors import DistError
from .attempt import Attempt, Event, GpuUsage
from .job import Job, Spec, label_of
from .states import CONFIGURING, ENDED, MOVES, PENDING, RUNNING
from .store_file import StoreFile

_END = """
INSERT INTO attempts (job, attempt, state, reason, started, ended, exit_code, exit_signal, gpus)
SELECT id, attempt, state, reason, started, ended, exit_code, exit_signal, gpus FROM jobs
WHERE id = ? AND started IS NOT NULL
ON CONFLICT (job, attempt) DO UPDATE SET state = excluded.state, reason = excluded.reason,
started = excluded.started, ended = excluded.ended, exit_code = excluded.exit_code,
exit_signal = excluded.exit_signal, gpus = excluded.gpus
"""
_JSON = ("params", "gpu_ids", "gpu_uuids")
_COLUMNS = [name for name in Job.__dataclass_fields__ if name not in ("id", "spec")]
_SELECT = (
    "SELECT " + ", ".join(f'jobs."{name}"' for name in ("id", "spec", *_COLUMNS)) + " FROM jobs"
)


class Store(StoreFile):
    """The user's jobs; see `StoreFile` for how it is opened."""

    def __init__(self, folder: Path) -> None:
        self._specs: dict[int, Spec] = {}
        super().__init__(folder)

    def _open(self) -> None:
        super()._open()
        self._specs.clear()

    def submit(
        self,
        jobs: Sequence[Job],
        token: str,
        *,
        environment: Mapping[str, str] | None = None,
        dependencies: Iterable[tuple[int, str]] = (),
        is_array: bool = False,
    ) -> range:
        """Add jobs with one spec, all or none.

        Parameters
        ----------
        jobs : sequence of Job
            Without ids.
        token : str
            Names the submission: the same one again adds nothing, and returns what it added.
        environment : mapping or None
            Variables of the jobs.
        dependencies : iterable of (int, str)
            Ids of jobs and how they must have ended: ``afterok`` and so on.
        is_array : bool
            Whether they are tasks of one array.

        Returns
        -------
        range
            Their ids.
        """
        with self.writing():
            if known := self._db.execute(
                "SELECT first, last FROM submissions WHERE token = ?", (token,)
            ).fetchone():
                return range(known["first"], known["last"] + 1)
            spec = msgspec.structs.replace(
                jobs[0].spec, environment=self._keep_environment(environment or {})
            )
            body = json.dumps(msgspec.to_builtins(spec))  # unlike msgspec's, with any file name
            number = self._db.execute("INSERT INTO specs (body) VALUES (?)", (body,)).lastrowid
            top = self._db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'jobs'").fetchone()
            first = (top["seq"] if top else 0) + 1
            ids = range(first, first + len(jobs))
            names = ", ".join(f'"{name}"' for name in ("id", "spec", *_COLUMNS))
            marks = ", ".join("?" * (len(_COLUMNS) + 2))
            rows = []
            for id, job in zip(ids, jobs, strict=True):
                fields = {name: getattr(job, name) for name in _COLUMNS}
                fields["array"] = first if is_array else None
                rows.append((id, number, *map(_to_sql, fields, fields.values())))
            self._db.executemany(f"INSERT INTO jobs ({names}) VALUES ({marks})", rows)
            upon = [(id, on, kind) for on, kind in dependencies for id in ids]
            self._db.executemany("INSERT OR IGNORE INTO dependencies VALUES (?, ?, ?)", upon)
            self._db.execute("INSERT INTO submissions VALUES (?, ?, ?)", (token, ids[0], ids[-1]))
            self._db.executemany(
                "INSERT INTO events (job, at, was, state, reason) VALUES (?, ?, NULL, ?, 'None')",
                [(id, time.time(), PENDING) for id in ids],
            )
        self.changed()
        return ids

    def _keep_environment(self, environment: Mapping[str, str]) -> str:
        body = json.dumps(dict(sorted(environment.items()))).encode()
        name = hashlib.sha256(body).hexdigest()
        self._db.execute("INSERT OR IGNORE INTO environments VALUES (?, ?)", (name, body))
        return name

    def environment(self, job: Job) -> dict[str, str]:
        """Return the variables that a job was submitted with."""
        rows = self.read("SELECT body FROM environments WHERE hash = ?", job.spec.environment)
        return dict(json.loads(rows[0]["body"])) if rows else {}

    def get(self, id: int) -> Job:
        """Return a job.

        Raises
        ------
        DistError
            If there is none.
        """
        found = self.select("id = ?", id)
        if not found:
            raise DistError("unknown_job", f"There is no job {id}.", "jdist queue lists your jobs.")
        return found[0]

    def select(self, where: str = "1", *values: Any, order: str = "id") -> list[Job]:
        """Return the jobs that a condition in SQL holds for."""
        rows = self.read(f"{_SELECT} WHERE {where} ORDER BY {order}", *values)
        return [self._job(row) for row in rows]

    def pending(self, most: int = -1) -> list[Job]:
        """Return the jobs that wait, in the user's order; `most` of them."""
        return self.select("state = 'PENDING'", order=f"priority DESC, queued, id LIMIT {most}")

    def active(self) -> list[Job]:
        """Return the jobs that a runner has."""
        return self.select("state IN ('CONFIGURING', 'RUNNING', 'COMPLETING')")

    def dependencies(self) -> dict[int, list[tuple[Job, str]]]:
        """Return what pending jobs depend on: by id, other jobs and how they must have ended."""
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

    def move(self, job: Job, state: str, **fields: Any) -> bool:
        """Give a job another state, unless it has changed since it was read.

        Parameters
        ----------
        job : Job
            As it was read.
        state : str
            The new one.
        **fields
            Other columns that change with it.

        Returns
        -------
        bool
            Whether it was done.
        """
        assert state in MOVES[job.state], (job.state, state)
        condition = "state = ? AND attempt = ? AND launch IS ?"
        if state == CONFIGURING:
            condition += " AND NOT held"
        if state == RUNNING:
            condition += " AND cancel_at IS NULL"
        values = (job.state, job.attempt, job.launch)
        return self._change([job.id], condition, values, state=state, **fields) == 1

    def change(self, ids: Sequence[int], condition: str = "1", **fields: Any) -> int:
        """Change jobs that a condition in SQL holds for; return how many were changed."""
        return self._change(ids, condition, (), **fields)

    def _change(
        self, ids: Sequence[int], condition: str, values: Sequence[Any], **fields: Any
    ) -> int:
        named = ", ".join(f'"{name}" = ?' for name in fields)
        new = [_to_sql(name, value) for name, value in fields.items()]
        done = 0
        with self.writing():
            for id in ids:
                was = self._db.execute("SELECT state FROM jobs WHERE id = ?", (id,)).fetchone()
                count = self._db.execute(
                    f"UPDATE jobs SET {named} WHERE id = ? AND {condition}", (*new, id, *values)
                ).rowcount
                done += count
                if count and "state" in fields:
                    self._db.execute(
                        "INSERT INTO events (job, at, was, state, reason) VALUES (?, ?, ?, ?, ?)",
                        (id, time.time(), was["state"], fields["state"], fields.get("reason", "")),
                    )
                    if fields["state"] in ENDED:
                        self._db.execute(_END, (id,))
        if done:
            self.changed()
        return done

    def usage(self, job: Job) -> dict[str, GpuUsage]:
        """Return what was seen of a job's GPUs in its present attempt, by UUID."""
        rows = self.read(
            "SELECT usage FROM attempts WHERE job = ? AND attempt = ?", job.id, job.attempt
        )
        return _usage(rows[0]["usage"]) if rows else {}

    def note_usage(self, job: Job, usage: Mapping[str, GpuUsage]) -> None:
        """Keep what was seen of a job's GPUs."""
        with self.writing():
            self._db.execute(
                "INSERT INTO attempts (job, attempt, usage) VALUES (?, ?, ?) "
                "ON CONFLICT (job, attempt) DO UPDATE SET usage = excluded.usage",
                (job.id, job.attempt, msgspec.json.encode(usage).decode()),
            )

    def attempts(self, ids: Iterable[int]) -> dict[int, list[Attempt]]:
        """Return the attempts of jobs, the oldest first, with what they used of their GPUs."""
        found: dict[int, list[Attempt]] = {}
        for id in ids:
            rows = self.read("SELECT * FROM attempts WHERE job = ? ORDER BY attempt", id)
            found[id] = [Attempt(**dict(row) | {"usage": _usage(row["usage"])}) for row in rows]
        return found

    def changed(self) -> None:
        """Wake whoever watches the folder."""
        with contextlib.suppress(OSError):  # a full disk: they look again later
            (self.watched / "changed").touch()

    def is_idle(self) -> bool:
        """Tell that no job waits to be started: who releases a held one starts a dispatcher."""
        waits = "SELECT 1 FROM jobs WHERE state = 'PENDING' AND NOT held LIMIT 1"
        return not self.read(waits)

    def run_lock(self, job: Job) -> Path:
        """Return the file that a job's runner has locked, and before it the one who starts it."""
        return self.watched / f"{job.id}.lock"

    def _job(self, row: sqlite3.Row) -> Job:
        fields = dict(row)
        number = fields.pop("spec")
        if number not in self._specs:
            (body,) = self.read("SELECT body FROM specs WHERE id = ?", number)
            self._specs[number] = msgspec.convert(json.loads(body["body"]), Spec)
        for name in _JSON:
            fields[name] = json.loads(fields[name])
        fields["gpu_ids"], fields["gpu_uuids"] = map(
            tuple, (fields["gpu_ids"], fields["gpu_uuids"])
        )
        fields["held"], fields["kill"] = bool(fields["held"]), bool(fields["kill"])
        return Job(spec=self._specs[number], **fields)


_usage = msgspec.json.Decoder(dict[str, GpuUsage]).decode


def _to_sql(name: str, value: Any) -> Any:
    if name in _JSON:
        return json.dumps(value)
    if isinstance(value, str):  # names of files may be no Unicode; SQLite's texts are
        return value.encode(errors="replace").decode()
    return value
