"""What a job can be asked for with, as JSON Schema, for a form to be drawn from.

The fields are those of a `JobRequest`; their descriptions are the help of ``jdist submit``. Beside
the words of JSON Schema, ``x-widget`` says how a field is drawn, ``x-advanced`` that few will need
it, and ``x-option`` what it is called in a command.
"""

from __future__ import annotations

import argparse
from typing import Any

from .options.job_options import Parser, add_job_options
from .program.kernel_environments import kernel_names

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
_BASIC = {"gpus": "GPUs", "time": "Time limit", "chdir": "Folder", "param": "Parameters"}
_ADVANCED = {
    "name": "Name",
    "gpu_ids": "Only these GPUs",
    "min_gpu_memory": "GPU memory",
    "cpus": "CPU cores",
    "mem": "Memory",
    "torchrun": "Start by torchrun",
    "kernel": "Kernel",
    "conda": "Conda environment",
    "venv": "Virtual environment",
    "setup": "Setup",
    "env": "Variables",
    "begin": "Not before",
    "dependency": "After jobs",
    "priority": "Priority",
    "hold": "Hold",
    "requeue": "Start again if the machine fails",
    "output": "Output file",
    "comment": "Comment",
}
_SAYS = {
    "gpus": "They are its own while it runs.",
    "time": "Minutes, HH:MM:SS or D-HH:MM:SS. Jobs with a limit may start earlier.",
    "chdir": "Where it runs, and where its output is.",
    "kernel": "Python, and what is installed for it, are those of this kernel.",
    "param": "Several values, with commas between them, make one job each.",
}
"""What the help of a command says otherwise than a form."""
_WIDGETS = {"gpus": "gpus", "gpu_ids": "gpu_ids", "param": "parameters"}


def submit_schema() -> dict[str, Any]:
    """Return the JSON Schema of the requests that a form can make; fields are in its order."""
    parser = Parser(add_help=False)
    add_job_options(parser)
    actions = {action.dest: action for action in parser._actions}
    fields: dict[str, Any] = dict(_WHAT)
    for name, title in (_BASIC | _ADVANCED).items():
        fields[name] = _field(title, actions[name])
        fields[name]["description"] = _SAYS.get(name, fields[name]["description"])
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


def _field(title: str, action: argparse.Action) -> dict[str, Any]:
    # Help texts are formats, too.
    description = (action.help or "").replace("%%", "%")
    told: dict[str, Any] = {
        "title": title,
        "description": description[:1].upper() + description[1:] + ".",
        "x-option": action.option_strings[-1],
    }
    if action.nargs == 0:
        return told | {"type": "boolean", "default": False, "x-widget": "flag"}
    if isinstance(action, argparse._AppendAction):
        return told | {"type": "array", "items": {"type": "string"}, "x-widget": "lines"}
    if action.type is int:
        least = {} if action.dest == "priority" else {"minimum": 0}
        return told | {"type": "integer", "x-widget": "number"} | least
    return told | {"type": "string", "x-widget": "text"}
