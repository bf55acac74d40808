"""What a job can be asked for with, as JSON Schema, to draw a form from.

The fields are those of a `JobRequest`. ``x-widget`` says how a field is drawn, ``x-advanced`` that
few need it, and ``x-option`` its name in a command.
"""

from __future__ import annotations

import argparse
from typing import Any

from .job_environment import kernel_names
from .job_options import Parser, add_job_options

_WHAT = {
    "command": {
        "title": "Command",
        "description": "A program with its arguments, or a script such as job.sh. {lr} stands for "
        "the parameter lr.",
        "type": "array",
        "items": {"type": "string"},
        "x-widget": "command",
    },
    "notebook": {
        "title": "Notebook",
        "description": "A copy of it runs, and is saved beside it cell by cell.",
        "type": "string",
        "x-widget": "notebook",
    },
}
_BASIC = {
    "gpus": (
        "GPUs",
        "They are its own while it runs. If empty, those that a script asks for, or none.",
    ),
    "time": ("Time limit", "Minutes, HH:MM:SS or D-HH:MM:SS. Jobs with a limit may start earlier."),
    "chdir": (
        "Folder",
        "Where it runs, and where its output is. If empty, the server's root folder.",
    ),
    "param": ("Parameters", "Several values, with commas between them, make one job each."),
}
"""The title of a field, and the text below it."""
_ADVANCED = {
    "name": ("Name", "If empty, the name of the program."),
    "gpu_ids": ("Only these GPUs", "It gets these only. If none is checked, it gets any."),
    "min_gpu_memory": ("GPU memory", "Only GPUs with at least this much memory, such as 20G."),
    "cpus": ("CPU cores", "Number of cores that are kept for it."),
    "mem": ("Memory", "Memory of the machine that is kept for it, such as 16G."),
    "torchrun": ("Start by torchrun", "One rank per GPU."),
    "kernel": ("Kernel", "Python, and what is installed for it, are those of this kernel."),
    "conda": ("Conda environment", "It is activated first."),
    "venv": ("Virtual environment", "A path in Folder, or an absolute one. It is activated first."),
    "setup": ("Setup", "Lines of bash that run first."),
    "env": ("Variables", "NAME=VALUE, one in each line."),
    "begin": ("Not before", "Such as now+2hours, 18:30 or 2026-03-01T06:00."),
    "every": ("Repeat", "Such as 6h, 1d, or a line of cron: 0 3 * * *."),
    "dependency": ("After jobs", "Such as afterok:12, afterany:13:14 or singleton."),
    "priority": ("Priority", "Higher starts first among your jobs. If empty, 0."),
    "hold": ("Hold", "It waits until you release it."),
    "max_fails": (
        "Stop after failures",
        "After so many jobs of a sweep have failed, those that wait are cancelled.",
    ),
    "requeue": ("Requeue", "Start it again if the machine fails."),
    "output": (
        "Output file",
        "%j stands for its ID, %x for its name, %A for its array and %a for its task.",
    ),
    "comment": ("Comment", "A note of yours, which its details show."),
}
_WIDGETS = {"gpus": "gpus", "gpu_ids": "gpu_ids", "param": "parameters"}


def submit_schema() -> dict[str, Any]:
    """Return the JSON Schema of the requests that a form can make, with fields in its order."""
    parser = Parser(add_help=False)
    add_job_options(parser)
    actions = {action.dest: action for action in parser._actions}
    fields: dict[str, Any] = dict(_WHAT)
    for name, (title, text) in (_BASIC | _ADVANCED).items():
        fields[name] = _field(title, text, actions[name])
        if name in _WIDGETS:
            fields[name]["x-widget"] = _WIDGETS[name]
        if name in _ADVANCED:
            fields[name]["x-advanced"] = True
    kernels = kernel_names()
    fields["kernel"] |= {
        "enum": list(kernels),
        "x-labels": list(kernels.values()),
        "x-widget": "choice",
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": False,
        "properties": fields,
        # A job runs one of them.
        "oneOf": [{"required": ["command"]}, {"required": ["notebook"]}],
    }


def _field(title: str, description: str, action: argparse.Action) -> dict[str, Any]:
    option = action.option_strings[-1]
    told: dict[str, Any] = {"title": title, "description": description, "x-option": option}
    if action.nargs == 0:
        return told | {"type": "boolean", "default": False, "x-widget": "flag"}
    if isinstance(action, argparse._AppendAction):
        return told | {"type": "array", "items": {"type": "string"}, "x-widget": "lines"}
    if action.type is int:
        least = {} if action.dest == "priority" else {"minimum": 0}
        return told | {"type": "integer", "x-widget": "number"} | least
    return told | {"type": "string", "x-widget": "text"}
