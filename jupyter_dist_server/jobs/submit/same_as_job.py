"""Asks for the same again: from a job back to its request."""

from __future__ import annotations

import json
from typing import Any

from ...common.errors import DistError
from ..job_command import with_parameters
from ..select_jobs import select
from ..store.job import Job
from ..store.store import Store
from .job_request import JobRequest


def complete_like(request: JobRequest, store: Store, label: str) -> None:
    """Take what a request does not say from that of a job, or of a whole array."""
    jobs = select(store, [label], whole=True)
    whole = {job.spec.asked for job in jobs}
    found = request_like(jobs[0]) if len(jobs) == 1 else json.loads(min(whole) or "null")
    if len(whole) > 1:
        message = f"{label} names several jobs that were not submitted together."
        raise DistError("bad_option", message, f"Choose one, such as {jobs[0].label}.", "like")
    if found is None:
        message = f"It is not known how job {jobs[0].label} was asked for."
        raise DistError("bad_option", message, "Give the command and its options.", "like")
    if request.command or request.notebook:
        of_notebooks = [] if request.notebook else ["parameter"]
        for name in ("command", "notebook", "output_notebook", *of_notebooks):
            found.pop(name, None)
    request.complete(JobRequest.from_json(found))


def request_like(job: Job) -> dict[str, Any] | None:
    """Return the request for a job like this, of a task for it alone; `None` if unknown."""
    if not job.spec.asked:
        return None
    request: dict[str, Any] = json.loads(job.spec.asked)
    request.pop("param_file", None)
    if any(not value or "," in value for value in job.params.values()):
        # --param would read them as none, or as several: they are in their places then.
        request.pop("param", None)
        for field in ("command", "parameter"):
            if words := request.get(field):
                request[field] = [with_parameters(word, job.params) for word in words]
        if output := request.get("output_notebook"):
            request["output_notebook"] = with_parameters(output, job.params)
    elif job.params:
        request["param"] = [f"{name}={value}" for name, value in job.params.items()]
    if "array" in request:
        request["array"] = str(job.task)
    return request
