"""What a job is asked for with: the options of ``jdist submit``, which are the fields in REST."""

from __future__ import annotations

import argparse
import json
import os
import shlex
from pathlib import Path
from typing import Any, Literal

import msgspec

from ...common.errors import DistError
from ..job_command import with_parameters
from ..notification import hide_url
from ..select_jobs import select
from ..store.job import Job
from ..store.secret_values import hide_in_option
from ..store.store import Store


class JobRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The options of ``jdist submit`` by their names; those that are not given are `None`."""

    command: list[str] = []
    notebook: str | None = None
    parameter: list[str] | None = None
    output_notebook: str | None = None
    gpus: int | None = None
    gpu_ids: str | None = None
    min_gpu_memory: str | None = None
    share: bool | None = None
    gpu_memory: str | None = None
    force: bool | None = None
    cpus: int | None = None
    mem: str | None = None
    time: str | None = None
    begin: str | None = None
    every: str | None = None
    dependency: str | None = None
    kill_on_invalid_dep: Literal["yes", "no"] | None = None
    priority: int | None = None
    hold: bool | None = None
    array: str | None = None
    param: list[str] | None = None
    param_file: str | None = None
    max_fails: int | None = None
    max_jobs: int | None = None
    name: str | None = None
    chdir: str | None = None
    output: str | None = None
    error: str | None = None
    open_mode: Literal["append", "truncate"] | None = None
    torchrun: bool | None = None
    no_why: bool | None = None
    profile_steps: int | None = None
    env: list[str] | None = None
    export: str | None = None
    conda: str | None = None
    venv: str | None = None
    kernel: str | None = None
    module: list[str] | None = None
    setup: list[str] | None = None
    signal: str | None = None
    grace: int | None = None
    requeue: bool | None = None
    requeue_on: str | None = None
    notify: str | None = None
    log_max: str | None = None
    comment: str | None = None
    like: str | None = None
    key: str | None = None

    @classmethod
    def of(cls, options: argparse.Namespace) -> JobRequest:
        """Read a command's options."""
        given = {
            name: value for name, value in vars(options).items() if name in cls.__struct_fields__
        }
        return cls(**given)

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> JobRequest:
        """Read the body of a request."""
        for name, value in body.items():
            for text in value if isinstance(value, list) else [value]:
                if isinstance(text, str) and not _is_plain(text):
                    message = f"{name} has characters that no command, file or variable can have."
                    raise DistError("bad_request", message, field=name)
        try:
            return msgspec.convert(body, cls)
        except msgspec.ValidationError as error:
            what, _, where = str(error).partition(" - at `$.")
            field = where.rstrip("`").partition("[")[0] or None
            message = f"{field}: {what}." if field else f"{what}."
            hint = "The fields are the options of jdist submit."
            raise DistError("bad_request", message, hint, field) from None

    def again(self, folder: str, chdir: str, script: Path | None) -> dict[str, Any]:
        """Return the body that asks for the same from any folder, without variables and secrets.

        Relative paths start in `folder`, the job runs in `chdir`, and `script` begins its command.
        """
        export = [one for one in read_export(self.export or "") if "=" not in one]
        fields = msgspec.to_builtins(self) | {
            "chdir": chdir,
            "export": ",".join(export) or (self.export and "NONE"),
            "env": None,
            "param": [*map(hide_in_option, self.param or [])],
            "like": None,
            "key": None,
        }
        if hide_url(self.notify or ""):
            fields["notify"] = None
        if self.param_file:
            fields["param_file"] = os.path.abspath(Path(folder, self.param_file))
        if self.venv:
            fields["venv"] = os.path.abspath(Path(folder, self.venv))
        if self.notebook:
            # Its command is made from it.
            fields |= {"notebook": os.path.abspath(Path(folder, self.notebook)), "command": None}
        elif script:
            fields["command"] = [os.path.abspath(script), *self.command[1:]]
        return {name: value for name, value in fields.items() if value not in (None, "", [])}

    def complete(self, others: argparse.Namespace | JobRequest) -> None:
        """Take what was not given from a script's directives or another request."""
        for name in self.__struct_fields__:
            if getattr(self, name) in (None, []):
                setattr(self, name, getattr(others, name, None))


def read_export(text: str) -> list[str]:
    """Split ``--export`` at commas, but not within quotation marks."""
    words = shlex.shlex(text, posix=True, punctuation_chars="")
    words.whitespace, words.whitespace_split, words.commenters, words.escape = ",", True, "", ""
    try:
        return list(words)
    except ValueError as error:
        raise DistError("bad_option", f"--export: {error}.", "Close the quotation mark.") from error


def _is_plain(text: str) -> bool:
    try:
        return b"\0" not in text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return False


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
    if url := store.secrets(jobs[0]).notify:
        found["notify"] = url
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
