"""Tools for batch jobs."""

from __future__ import annotations

from functools import partial

from ..base_handlers import DistHandler
from ..jobs.job_handler_base import JobHandlerBase
from .own_routes import RouteFailed, call_route
from .tool import VERSION, Arguments, Tool, check_version
from .tool_texts import compact

_job_tool = partial(Tool, resource=JobHandlerBase.auth_resource)
_JOB = {"type": "string", "description": "A job's number, such as 12, or 40_3 of an array."}


async def _plan_job(handler: DistHandler, given: Arguments) -> str:
    return compact(await call_route(handler, "POST", "jobs/plan", given))


async def _submit_job(handler: DistHandler, given: Arguments) -> str:
    return compact(await call_route(handler, "POST", "jobs", given))


def _job_version(job: Arguments) -> str:
    return f"{job['state']}-{job['attempt']}"


async def _one_job(handler: DistHandler, label: str) -> Arguments:
    found = await call_route(handler, "GET", f"jobs/{label}", first=1)
    job: Arguments = found["jobs"][0]
    return job | {"version": _job_version(job), "tasks": found["states"]}


async def _job(handler: DistHandler, given: Arguments) -> str:
    return compact(await _one_job(handler, given["job"]))


async def _job_log(handler: DistHandler, given: Arguments) -> str:
    offset = given.get("offset", -8192)
    found = await call_route(handler, "GET", f"jobs/{given['job']}/log", offset=offset)
    place = f"[bytes {found['offset']} to {found['next']} of {found['size']}; {found['state']}]"
    return f"{place}\n{found['text']}"


async def _cancel_job(handler: DistHandler, given: Arguments) -> str:
    job = await _one_job(handler, given["job"])
    check_version(given, job["version"])
    return compact(await call_route(handler, "DELETE", f"jobs/{given['job']}"))


async def _triage_job(handler: DistHandler, given: Arguments) -> str:
    details = await call_route(handler, "GET", f"jobs/{given['job']}/details")
    try:
        log = (await call_route(handler, "GET", f"jobs/{given['job']}/log", offset=-6000))["text"]
    except RouteFailed as failed:
        log = str(failed)
    told = {name: details[name] for name in ("job", "command", "attempts", "dependencies")}
    parts = [compact(told)]
    if details["job"]["state"] == "RUNNING":
        parts += ["[why its ranks wait]", await _why_waits(handler, given["job"])]
    return "\n".join([*parts, "[the end of its output]", log])


async def _why_waits(handler: DistHandler, label: str) -> str:
    try:
        found = await call_route(handler, "GET", f"jobs/{label}/verdict")
    except RouteFailed as failed:  # it has no ranks, or has ended
        return str(failed)
    return "\n".join(f"{one['text']}\n{one['stacks']}" for one in found["launches"])


_job_fields = {
    "command": {"type": "array", "items": {"type": "string"}},
    "gpus": {"type": "integer"},
    "time": {"type": "string", "description": "Limit as Slurm writes it, such as 2:00:00."},
    "name": {"type": "string"},
    "chdir": {"type": "string"},
    "torchrun": {"type": "boolean", "description": "Start one process per GPU."},
    "array": {"type": "string", "description": "Such as 0-9%2."},
    "param": {"type": "array", "items": {"type": "string"}, "description": "Such as lr=0.1,0.01."},
    "dependency": {"type": "string", "description": "Such as afterok:12."},
    "like": {"type": "string", "description": "A job whose options are taken where none is given."},
    "key": {"type": "string", "description": "Submits once, however often it is asked."},
}


JOB_TOOLS = (
    _job_tool(
        "plan_job",
        "When a batch job would start, and what it would run; queues nothing.",
        _plan_job,
        _job_fields,
        executes=True,
    ),
    _job_tool(
        "submit_job",
        "Queue a batch job, which runs when its GPUs are free. Ask the user before.",
        _submit_job,
        _job_fields,
        executes=True,
    ),
    _job_tool("job", "State, reason, times and exit code of a job.", _job, {"job": _JOB}, ("job",)),
    _job_tool(
        "job_log",
        "What a job has printed: by default the end.",
        _job_log,
        {"job": _JOB, "offset": {"type": "integer", "description": "Bytes; < 0 from the end."}},
        ("job",),
    ),
    _job_tool(
        "cancel_job",
        "Cancel a job. Ask the user before.",
        _cancel_job,
        {"job": _JOB, "version": VERSION},
        ("job", "version"),
        executes=True,
        destroys=True,
    ),
    _job_tool(
        "triage_job",
        "Why a job waits, hangs or failed: state, attempts, GPU use, why its ranks wait, and the "
        "end of its output.",
        _triage_job,
        {"job": _JOB},
        ("job",),
    ),
)
