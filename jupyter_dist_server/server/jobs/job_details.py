"""What the page of one job shows: what is not part of the list of jobs, and lines of its output."""

from __future__ import annotations

import json
import os
from contextlib import closing
from typing import Any

import msgspec

from ...common.errors import DistError
from ...jobs.job_command import job_command, log_paths, output_notebook
from ...jobs.job_control import check_one
from ...jobs.log_reader import LineReader
from ...jobs.schedule.may_start import ANY, write_dependency
from ...jobs.select_jobs import select
from ...jobs.store.job import Job
from ...jobs.store.store import Store
from ...jobs.submit.job_request import request_like
from .job_handler_base import JobHandlerBase, in_store


class JobDetailsHandler(JobHandlerBase):
    """All about one job, but the values of its variables."""

    async def get(self, job: str) -> None:
        """Show the job, its attempts, what it waits for and the names of its variables."""
        await self.require("read")
        assert self.serverapp is not None
        root = self.serverapp.root_dir

        def look(store: Store) -> str:
            return _details(store, check_one(select(store, [job])), root)

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
    """Return a file's path as the file browser has it; `None` if it is somewhere else."""
    if path is None or not path.startswith(f"{os.path.abspath(root)}{os.sep}"):
        return None
    return os.path.relpath(path, root)


class JobLinesHandler(JobHandlerBase):
    """Whole lines of a job's output, at most 64 KiB."""

    async def get(self, job: str) -> None:
        """Answer ``?offset=BYTES``, ``?before=BYTES``, or ``?offset=BYTES&find=TEXT``.

        ``error=1``: of the file of standard error.
        """
        await self.require("read")
        offset, before = self._number("offset"), self._number("before")
        find = self.get_query_argument("find", "")
        error = self.get_query_argument("error", "0") == "1"

        def look(store: Store) -> dict[str, Any]:
            found = check_one(select(store, [job]))
            path = log_paths(found)[error] if found.has_output else "/dev/null"
            with closing(LineReader(path)) as log:
                if find:
                    lines = log.find(find, offset or 0)
                else:
                    lines = log.after(offset or 0) if before is None else log.before(before)
                told = {"size": log.size, "state": found.state, "found": lines is not None}
                if lines is None:
                    return told | {"offset": 0, "next": 0, "text": ""}
                text = lines.data.decode(errors="replace")
                return told | {"offset": lines.start, "next": lines.end, "text": text}

        self.answer(json.dumps(await in_store(look)))

    def _number(self, name: str) -> int | None:
        text = self.get_query_argument(name, "")
        if not text:
            return None
        if not (text.removeprefix("-").isdecimal() and len(text) < 18):
            raise DistError("bad_request", f"{name} must be a number of bytes.", field=name)
        return int(text)
