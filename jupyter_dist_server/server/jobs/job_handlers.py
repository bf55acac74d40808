"""``/jupyter-dist/jobs``, what belongs to one job, and ``/jupyter-dist/queue``."""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import Callable, Sequence

import msgspec
from tornado import web

from ...common.errors import DistError
from ...jobs import job_control
from ...jobs.job_command import job_command, log_paths, output_notebook
from ...jobs.job_end import any_is_lost
from ...jobs.schedule.may_start import ANY, write_dependency
from ...jobs.schedule.overview import overview
from ...jobs.select_jobs import select
from ...jobs.start_dispatcher import ensure
from ...jobs.store.job import Job
from ...jobs.store.states import FAILURES, LETTERS
from ...jobs.store.store import Store
from ...jobs.submit.dry_run import dry_run
from ...jobs.submit.job_request import JobRequest, request_like
from ...jobs.submit.prepare_submission import Submission, prepare, signal_number
from ...jobs.submit.submit_schema import submit_schema
from ..gpus.gpu_messages import GpuFeed
from .job_handler_base import MOST, JobHandlerBase, in_store, jobs_json, stopped_notices

_FIELDS = JobRequest.__struct_fields__
_ORDERS = {"id": "id DESC", "ended": "ended DESC, id DESC"}
"""In SQL: the newest job first, or the newest end."""


def _refresh(store: Store) -> None:
    """Start a dispatcher if it has work; the server itself only reads."""
    ensure(store, also_if=any_is_lost(store))


class SubmittingHandler(JobHandlerBase):
    """Handlers whose body requests jobs."""

    def read_request(self) -> Callable[[Store], Submission]:
        """Check the body; return the rest of the work, which needs the store and a thread."""
        request = JobRequest.from_json(self.body(_FIELDS))
        assert self.serverapp is not None
        folder = self.serverapp.root_dir
        return lambda store: prepare(request, store, folder)


class JobsHandler(SubmittingHandler):
    @web.authenticated
    async def get(self) -> None:
        """List one's own jobs: ``?states=R,FAILED&name=NAME&last=100&order=ended``."""
        await self.require("read")
        condition, values = _condition(
            self.get_query_argument("states", ""), self.get_query_argument("name", "")
        )
        last = _whole("last", self.get_query_argument("last", "100"), 1, MOST)
        order = self.get_query_argument("order", "id")
        if order not in _ORDERS:
            raise DistError("bad_request", "order must be id or ended.", field="order")

        def look(store: Store) -> str:
            _refresh(store)
            jobs = store.select(condition, *values, order=f"{_ORDERS[order]} LIMIT {last}")
            return jobs_json(jobs, notices=stopped_notices(store))

        self.answer(await in_store(look))

    @web.authenticated
    async def post(self) -> None:
        """Submit jobs; return the first of them."""
        await self.require("execute")
        ready = self.read_request()

        def work(store: Store) -> str:
            asked = ready(store)
            ids = asked.submit(store)
            first = store.select("id BETWEEN ? AND ?", ids[0], ids[:MOST][-1])
            notices = [*asked.notices, *stopped_notices(store)]
            return jobs_json(first, count=len(ids), notices=notices)

        self.answer(await in_store(work), 201)


class SubmitSchemaHandler(JobHandlerBase):
    @web.authenticated
    async def get(self) -> None:
        """Return the schema of the form for jobs."""
        await self.require("read")
        self.finish(await asyncio.to_thread(submit_schema))  # it lists kernels, from the disk


class PlanHandler(SubmittingHandler):
    @web.authenticated
    async def post(self) -> None:
        """Return when a job would start; queue nothing."""
        await self.require("execute")
        ready = self.read_request()
        told = await in_store(lambda store: dry_run(ready(store), store))
        self.finish(told.to_json())


class QueueHandler(JobHandlerBase):
    @web.authenticated
    async def get(self) -> None:
        """List jobs and pools of all users in order, with ``?start=1`` also expected starts."""
        await self.require("read")
        start = self.flag("start")
        await in_store(_refresh)  # first: the driver may take long
        feed: GpuFeed = self.settings["jupyter_dist_gpus"]
        gpus = await feed.state.get()

        def look(store: Store) -> str:
            rows = overview(store, gpus, start=start)
            told = [row.to_json() for row in rows[:MOST]]
            notices = stopped_notices(store)
            return json.dumps({"rows": told, "count": len(rows), "notices": notices})

        self.answer(await in_store(look))


class OneJobHandler(JobHandlerBase):
    """Handlers of a job, or of all tasks of an array."""

    async def change(self, label: str, work: Callable[[Store, list[Job]], Sequence[str]]) -> None:
        """Change the jobs of a label; return them, and sentences about unchanged ones."""
        await self.require("execute")

        def run(store: Store) -> str:
            jobs = select(store, [label])
            left = work(store, jobs)
            fresh = store.get_all([job.id for job in jobs])
            return jobs_json(fresh, left=list(left), notices=stopped_notices(store))

        self.answer(await in_store(run), 202)


class JobHandler(OneJobHandler):
    @web.authenticated
    async def get(self, job: str) -> None:
        """Show a job; of an array, the states of all tasks and the ``?first=1000`` tasks."""
        await self.require("read")
        first = _whole("first", self.get_query_argument("first", str(MOST)), 0, MOST)

        def look(store: Store) -> str:
            _refresh(store)
            jobs = select(store, [job])
            attempts = store.attempts([one.id for one in jobs[:first]])
            failed = [one for one in jobs if one.state in FAILURES]
            last = max(failed, key=lambda one: one.ended or 0.0, default=None)
            return jobs_json(
                jobs[:first],
                count=len(jobs),
                attempts=msgspec.to_builtins(attempts, str_keys=True),
                states=Counter(one.state for one in jobs),
                last_failure=last and last.to_json(),
                notices=stopped_notices(store),
            )

        self.answer(await in_store(look))

    @web.authenticated
    async def patch(self, job: str) -> None:
        """Change the time limit, name and so on."""
        await self.require("execute")
        body = self.body(job_control.Update.__struct_fields__)
        try:
            wanted = msgspec.convert(body, job_control.Update)
        except msgspec.ValidationError as error:
            raise DistError("bad_request", f"{error}.", field=next(iter(body))) from None
        await self.change(job, lambda store, jobs: job_control.update(store, jobs, wanted))

    @web.authenticated
    async def delete(self, job: str) -> None:
        """Cancel a job, with ``?now=1`` without a grace time."""
        now = self.flag("now")
        await self.change(job, lambda store, jobs: job_control.cancel(store, jobs, now))


class HoldHandler(OneJobHandler):
    @web.authenticated
    async def post(self, job: str) -> None:
        """Hold a job."""
        await self.change(job, job_control.hold)


class ReleaseHandler(OneJobHandler):
    @web.authenticated
    async def post(self, job: str) -> None:
        """Release a held job, which counts as submitted now."""
        await self.change(job, job_control.release)


class RequeueHandler(OneJobHandler):
    @web.authenticated
    async def post(self, job: str) -> None:
        """Requeue a job that has ended, with ``?cascade=1`` and those cancelled because of it."""
        cascade = self.flag("cascade")
        await self.change(job, lambda store, jobs: job_control.requeue(store, jobs, cascade))


class SignalHandler(OneJobHandler):
    @web.authenticated
    async def post(self, job: str) -> None:
        """Send ``{"signal": "USR1"}`` to the processes of a job."""
        await self.require("execute")
        name = self.body(("signal",)).get("signal")
        if not isinstance(name, str):
            raise DistError("bad_request", "signal is required, such as USR1.", field="signal")
        number = signal_number(name)
        await self.change(job, lambda _, jobs: job_control.send_signal(jobs, number))


class JobDetailsHandler(JobHandlerBase):
    @web.authenticated
    async def get(self, job: str) -> None:
        """Show a job's attempts, dependencies and so on, and the names of its variables."""
        await self.require("read")
        assert self.serverapp is not None
        root = self.serverapp.root_dir

        def look(store: Store) -> str:
            return _details(store, job_control.check_one(select(store, [job])), root)

        self.answer(await in_store(look))


def _details(store: Store, job: Job, root: str) -> str:
    upon = [
        {
            "label": other.label,
            "name": other.name,
            "state": other.state,
            "dependency": write_dependency(kind, other.label),
            "any": kind.startswith(ANY),
        }
        for other, kind in store.upon(job.id)
    ]
    output, error = log_paths(job)
    told = {
        "job": job.to_json(),
        "command": job_command(job),
        "output": output,
        "error": None if error == output else error,
        "notebook": _below(root, output_notebook(job)),
        "request": request_like(job),
        "attempts": msgspec.to_builtins(store.attempts([job.id])[job.id]),
        "dependencies": upon,
        "variables": sorted(store.environment(job)),
    }
    return json.dumps(told)


def _below(root: str, path: str | None) -> str | None:
    """Return a path relative to the file browser's root; `None` if it is elsewhere."""
    if path is None or not path.startswith(f"{os.path.abspath(root)}{os.sep}"):
        return None
    return os.path.relpath(path, root)


def _condition(states: str, name: str) -> tuple[str, list[str]]:
    """Return a condition in SQL, and its values."""
    by_letters = {letters: state for state, letters in LETTERS.items()}
    conditions, values = ["1"], []
    if states:
        wanted = [by_letters.get(text.strip(), text.strip()) for text in states.split(",")]
        if unknown := [state for state in wanted if state not in LETTERS]:
            message = f"“{unknown[0]}” is not a state."
            raise DistError("bad_request", message, f"Use {', '.join(LETTERS)}.", field="states")
        conditions.append(f"state IN ({', '.join('?' * len(wanted))})")
        values += wanted
    if name:
        conditions.append("name = ?")
        values.append(name)
    return " AND ".join(conditions), values


def _whole(field: str, text: str, least: int, most: int) -> int:
    if not (text.isdecimal() and len(text) < 18 and least <= int(text) <= most):
        message = f"{field} must be a whole number from {least} to {most}."
        raise DistError("bad_request", message, field=field)
    return int(text)
