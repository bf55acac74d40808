"""All jobs of one user on one machine: a SQLite file, the only truth about them.

Every change of a state is conditional on the state and the attempt that were read, and is written
with its event in one transaction.
"""

from __future__ import annotations

import binascii
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from .attempt import GpuUsage
from .job import Job, Spec
from .secret_values import SecretValues, keep_secrets
from .states import CONFIGURING, ENDED, MOVES, PENDING, RUNNING
from .store_reader import AMONG, COLUMNS, JSON, StoreReader

_END = """
INSERT INTO attempts (job, attempt, state, reason, started, ended, exit_code, exit_signal, gpus)
SELECT id, attempt, state, reason, started, ended, exit_code, exit_signal, gpus FROM jobs
WHERE id IN (SELECT job FROM events WHERE seq > ?) AND started IS NOT NULL
ON CONFLICT (job, attempt) DO UPDATE SET state = excluded.state, reason = excluded.reason,
started = excluded.started, ended = excluded.ended, exit_code = excluded.exit_code,
exit_signal = excluded.exit_signal, gpus = excluded.gpus
"""


class Store(StoreReader):
    """The user's jobs; see `StoreFile` for how it is opened."""

    def submit(
        self,
        jobs: Sequence[Job],
        token: str,
        *,
        environment: Mapping[str, str] | None = None,
        secrets: SecretValues | None = None,
        dependencies: Iterable[tuple[int, str]] = (),
        is_array: bool = False,
    ) -> range:
        """Add jobs with one spec, all or none; return their ids.

        The same `token` again adds nothing, and returns the same ids. `dependencies` are ids of
        other jobs, and how these must have ended: ``afterok`` and so on. The spec of a job of the
        store keeps its environment and secrets.
        """
        with self.writing():
            if (known := self.submitted(token)) is not None:
                return known
            spec = jobs[0].spec
            if not spec.environment:
                spec = msgspec.structs.replace(
                    spec,
                    environment=self._keep_environment(environment or {}),
                    secrets=keep_secrets(self.folder, secrets or SecretValues()),
                )
            number = self._keep_spec(spec)
            top = self._db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'jobs'").fetchone()
            first = (top["seq"] if top else 0) + 1
            ids = range(first, first + len(jobs))
            names = ", ".join(f'"{name}"' for name in ("id", "spec", *COLUMNS))
            marks = ", ".join("?" * (len(COLUMNS) + 2))
            one = vars(jobs[0])
            alike = {name: _to_sql(name, one[name]) for name in COLUMNS}
            alike["array"] = first if is_array else None
            rows = (
                (id, number, *_row(vars(job), one, alike))
                for id, job in zip(ids, jobs, strict=True)
            )
            self._db.executemany(f"INSERT INTO jobs ({names}) VALUES ({marks})", rows)
            upon = [(id, on, kind) for on, kind in dependencies for id in ids]
            self._db.executemany("INSERT OR IGNORE INTO dependencies VALUES (?, ?, ?)", upon)
            self._db.execute("INSERT INTO submissions VALUES (?, ?, ?)", (token, ids[0], ids[-1]))
            self._db.execute(
                "INSERT INTO events (job, at, was, state, reason) "
                "SELECT id, ?, NULL, ?, 'None' FROM jobs WHERE id >= ? ORDER BY id",
                (time.time(), PENDING, ids[0]),
            )
        return ids

    def _keep_spec(self, spec: Spec) -> int:
        body = json.dumps(msgspec.to_builtins(spec))  # unlike msgspec's, with any file name
        number = self._db.execute("INSERT INTO specs (body) VALUES (?)", (body,)).lastrowid
        assert number is not None
        return number

    def _keep_environment(self, environment: Mapping[str, str]) -> str:
        body = json.dumps(dict(sorted(environment.items()))).encode()
        # No cryptographic hash: to load OpenSSL takes as long as all the rest here.
        name = f"{binascii.crc32(body):08x}"
        while kept := self.read("SELECT body FROM environments WHERE hash = ?", name):
            if kept[0]["body"] == body:
                return name
            name += "+"
        self._db.execute("INSERT INTO environments VALUES (?, ?)", (name, body))
        return name

    def move(self, job: Job, state: str, **fields: Any) -> bool:
        """Change a job's state, and other columns; false if it has changed since it was read."""
        assert state in MOVES[job.state], (job.state, state)
        condition = "state = ? AND attempt = ? AND launch IS ?"
        if state == CONFIGURING:
            condition += " AND NOT held"
        if state == RUNNING:
            condition += " AND cancel_at IS NULL"
        values = (job.state, job.attempt, job.launch)
        return self.change([job.id], condition, *values, state=state, **fields) == 1

    def change_spec(self, ids: Sequence[int], **fields: Any) -> None:
        """Change how jobs run; other tasks of their arrays stay as they are."""
        fresh: dict[int, int] = {}
        with self.writing():
            for id in ids:
                ((number,),) = self.read("SELECT spec FROM jobs WHERE id = ?", id)
                if number not in fresh:
                    spec = msgspec.structs.replace(self._spec(number), **fields)
                    fresh[number] = self._keep_spec(spec)
                self._db.execute("UPDATE jobs SET spec = ? WHERE id = ?", (fresh[number], id))

    def change(self, ids: Sequence[int], condition: str = "1", *values: Any, **fields: Any) -> int:
        """Change jobs that a condition in SQL holds for; return how many were changed."""
        named = ", ".join(f'"{name}" = ?' for name in fields)
        new = [_to_sql(name, value) for name, value in fields.items()]
        chosen = f"{AMONG} AND {condition}", (json.dumps(list(ids)), *values)
        with self.writing():
            last = self.last_event()
            if "state" in fields:
                told = time.time(), fields["state"], fields.get("reason", "")
                self._db.execute(
                    "INSERT INTO events (job, at, was, state, reason) "
                    f"SELECT id, ?, state, ?, ? FROM jobs WHERE {chosen[0]} ORDER BY id",
                    (*told, *chosen[1]),
                )
            query = f"UPDATE jobs SET {named} WHERE {chosen[0]}"
            done = self._db.execute(query, (*new, *chosen[1])).rowcount
            if fields.get("state") in ENDED:
                self._db.execute(_END, (last,))
        return done

    def note_usage(self, job: Job, usage: Mapping[str, GpuUsage]) -> None:
        """Keep what was read of a job's GPUs."""
        with self.writing(wakes=False):
            self._db.execute(
                "INSERT INTO attempts (job, attempt, usage) VALUES (?, ?, ?) "
                "ON CONFLICT (job, attempt) DO UPDATE SET usage = excluded.usage",
                (job.id, job.attempt, msgspec.json.encode(usage).decode()),
            )


def _row(job: dict[str, Any], one: dict[str, Any], alike: dict[str, Any]) -> list[Any]:
    """Return the columns of a job; those that are `alike` in another one are not made again."""
    return [
        sql if job[name] is one[name] else _to_sql(name, job[name]) for name, sql in alike.items()
    ]


def _to_sql(name: str, value: Any) -> Any:
    if name in JSON:
        return json.dumps(value)
    if isinstance(value, str):  # names of files may be no Unicode; SQLite's texts are
        return value.encode(errors="replace").decode()
    return value
