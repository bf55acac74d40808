"""Options in the first lines of a script: ``#JDIST``, ``#SBATCH``, ``# GFLOW``."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from ...common.errors import DistError
from ...common.nearest_name import did_you_mean, option_names
from ..schedule.may_start import ANY
from .job_options import Parser, add_job_options

BYTE_ORDER_MARK = "\ufeff"
"""Editors on Windows begin a file with it; neither Linux nor a shell can read it."""
_LINE = re.compile(r"#(SBATCH)\s+(.*)|#\s*(JDIST|GFLOW)\s+(.*)")
"""``# SBATCH``, with a space, is a comment for Slurm, too."""
_IGNORED = """
-A -B -C -F -I -L -M -N -O -Q -S -W -i -k -m -n -p -q -s -v -w -x
--account --acctg-freq --batch --bb --bbf --cluster-constraint --clusters --constraint
--container --container-id --contiguous --core-spec --cores-per-socket --cpu-freq --deadline
--delay-boot --distribution --exclude --exclusive --export-file --extra --extra-node-info
--get-user-env --gid --gpu-bind --gpu-freq --gres-flags --hint --ignore-pbs --immediate --input
--licenses --mcs-label --mem-bind --mincpus --network --no-kill
--nodefile --nodelist --nodes --ntasks --ntasks-per-core --ntasks-per-gpu --ntasks-per-node
--ntasks-per-socket --oom-kill-step --overcommit --oversubscribe --parsable --partition --power
--prefer --profile --propagate --qos --quiet --reboot --reservation --segment
--sockets-per-node --spread-job --stepmgr --switches --thread-spec --threads-per-core
--time-min --tmp --tres-bind --tres-per-task --uid --use-min-nodes --verbose --wait
--wait-all-nodes --wckey
"""
_SBATCH_UNUSED = dict.fromkeys(_IGNORED.split(), "") | {
    "--cpus-per-gpu": "--cpus-per-task",
    "--mail-type": "--notify",
    "--mail-user": "--notify",
    "--mem-per-cpu": "--mem",
    "--mem-per-gpu": "--mem",
}
_GFLOW_UNUSED = {
    "--auto-close": "",
    "--config": "",
    "--dry-run": "",
    "--max-retries": "--requeue-on",
    "--name-template": "",
    "--notify-email": "--notify",
    "--notify-on": "--notify",
}
_UNUSED = {"SBATCH": _SBATCH_UNUSED, "GFLOW": _GFLOW_UNUSED}
"""Options without a meaning on one machine, and what to use instead, if anything."""
_GPUS_PER_TASK = "--gpus-per-task"
_PER_TASK = {_GPUS_PER_TASK: "--gpus", "-c": "-c", "--cpus-per-task": "-c"}
"""What each task gets, and the option that says how much all get."""
_TASKS = ("-n", "--ntasks", "--ntasks-per-node")
"""Numbers of tasks on one machine; the first that is given counts."""
_ALREADY_SO = ("--no-requeue", "--no-auto-cancel")


class Directive(NamedTuple):
    """One option in a script."""

    where: str
    """The script and the line; or the variable."""
    kind: str
    name: str
    values: list[str]
    """Of a ``#JDIST`` line, all words."""


def read_directives(path: Path) -> tuple[list[str], list[str]]:
    """Return the options in a script, and a sentence on each that is not used."""
    try:
        text = path.read_text("utf-8", errors="surrogateescape")
    except OSError as error:
        raise DistError("bad_script", f"{path} cannot be read: {error.strerror}.") from error
    found: list[Directive] = []
    lines = text.removeprefix(BYTE_ORDER_MARK).splitlines()
    commands = (n for n, line in enumerate(lines) if line.strip() and not line.startswith("#"))
    end = next(commands, len(lines))
    late = [n for n, line in enumerate(lines[end:], end + 1) if _LINE.match(line)]
    for line in lines[:end]:
        if match := _LINE.match(line):
            kind, where = match[1] or match[3], f"{path.name}, “{line}”"
            try:
                words = shlex.split(match[2] or match[4] or "", comments=True)
            except ValueError as error:
                why, hint = f"{error}.", "Close the quotation mark."
                if line.endswith("\\"):
                    why = "Options do not go on in the next line."
                    hint = f"Begin that with #{kind}, too."
                raise DistError("bad_script", f"{where}: {why}", hint) from error
            if kind == "JDIST":
                found.append(Directive(where, kind, "", words))
            else:
                found += _split(where, kind, words)
    notices: list[str] = []
    if late:
        numbers = f"Line{'s' * (len(late) > 1)} {', '.join(map(str, late))} of {path.name}"
        are = "are" if len(late) > 1 else "is"
        notices.append(f"{numbers} {are} not used: options come before the first command.")
    return our_options(found, notices), notices


def our_options(found: list[Directive], notices: list[str]) -> list[str]:
    """Return directives as options of ours; add a sentence on each that is not used."""
    options: list[str] = []
    parser = Parser(add_help=False)
    add_job_options(parser)
    for one in _of_all_tasks(found, notices):
        made = one.values if one.kind == "JDIST" else _translate(one, notices)
        try:
            _, unknown = parser.parse_known_args(made)
        except DistError as error:
            raise DistError("bad_script", f"{one.where}: {error.message}") from error
        if unknown:
            message = f"{one.where}: jdist submit does not know “{unknown[0]}”."
            near = did_you_mean(unknown[0], option_names(parser))
            raise DistError("bad_script", message, f"{near}“jdist submit -h” lists its options.")
        options += made
    return options


def _split(where: str, kind: str, words: list[str]) -> Iterator[Directive]:
    names, unused = _NAMES[kind], _UNUSED[kind]
    while words:
        name, equals, value = words.pop(0).partition("=")
        if re.match("-[A-Za-z].", name) and name[:2] in names.keys() | unused.keys():
            name, equals, value = name[:2], "=", name[2:] + equals + value  # such as -N1
        values = [value] if equals else []
        while not equals and words and not words[0].startswith("-"):
            values.append(words.pop(0))
        yield Directive(where, kind, name, values)


def _translate(one: Directive, notices: list[str]) -> list[str]:
    """Return an option of others as ours, or none, and add a sentence if it is not used."""
    new = _NAMES[one.kind].get(one.name, one.name)
    made = [new, *one.values] if isinstance(new, str) else new(" ".join(one.values))
    unused = _UNUSED[one.kind]
    if one.name in unused or made is None:
        instead = f"; use {unused[one.name]}" if unused.get(one.name) else ""
        notices.append(f"#{one.kind} {' '.join([one.name, *one.values])} is not used{instead}.")
        return []
    return [] if one.name in _ALREADY_SO else made


def _of_all_tasks(found: list[Directive], notices: list[str]) -> list[Directive]:
    """Replace the GPUs and cores of each task by those of all tasks."""
    given = {one.name: " ".join(one.values) for one in found if one.kind == "SBATCH"}
    if given.keys() & {"-G", "--gpus"}:
        given.pop(_GPUS_PER_TASK, None)
        found = [one for one in found if one.name != _GPUS_PER_TASK]
    tasks = next((name for name in _TASKS if given.get(name, "").isdecimal()), None)
    each = {name: given[name].rpartition(":")[2] for name in _PER_TASK if name in given}
    each = {name: number for name, number in each.items() if number.isdecimal()}
    if tasks is None or not each:
        return found
    count, used_for = int(given[tasks]), " and ".join(each)
    notices.append(f"#SBATCH {tasks} {count} is used for {used_for} alone.")
    total = {name: [str(count * int(number))] for name, number in each.items()}
    return [
        one._replace(name=_PER_TASK[one.name], values=total[one.name])
        if one.kind == "SBATCH" and one.name in total
        else one
        for one in found
        if (one.kind, one.name) != ("SBATCH", tasks)
    ]


def _gpus(value: str) -> list[str]:
    """Read a number of GPUs, perhaps behind their type: ``a100:2``."""
    return ["--gpus", value.rpartition(":")[2]]


def _gres(value: str) -> list[str] | None:
    """Read ``gpu``, ``gpu:2``, ``gpu:a100:2`` or ``shard:20`` among resources unknown here."""
    for one in value.split(","):
        kind, _, rest = one.partition(":")
        count = rest.rpartition(":")[2]
        if kind == "gpu":
            return ["--gpus", count if count.isdecimal() else "1"]
        if kind == "shard":  # a shard is 1 GiB here
            return ["--gpus", "1", "--share", "--gpu-memory", f"{count or 1}G"]
    return None


def _gpu_memory(value: str) -> list[str]:
    """Read a size; for gflow, a number alone is in MiB."""
    return ["--gpu-memory", f"{value}M" if value.isdecimal() else value]


def _nice(value: str) -> list[str]:
    """Read by how much less important than others a job is; 100 if empty."""
    less = value or "100"
    return ["--priority=" + (less[1:] if less.startswith("-") else f"-{less}")]


def _depends_on(value: str) -> list[str]:
    """Read the jobs that have to be COMPLETED: ``12``, ``@`` or ``12,13``."""
    return ["--dependency", f"afterok:{value.replace(',', ':')}"]


def _depends_on_any(value: str) -> list[str]:
    """Read jobs of which one has to be COMPLETED."""
    return ["--dependency", ANY.join(f"afterok:{job}" for job in value.split(","))]


_NAMES: dict[str, dict[str, str | Callable[[str], list[str] | None]]] = {
    "SBATCH": {
        "-b": "--begin",
        "-c": "--cpus-per-task",
        "-G": _gpus,
        "--gpus": _gpus,
        "--gpus-per-node": _gpus,
        "--gpus-per-socket": _gpus,
        _GPUS_PER_TASK: _gpus,
        "--gres": _gres,
        "--nice": _nice,
    },
    "GFLOW": {
        "-c": "--conda",
        "-d": _depends_on,
        "-g": "--gpus",
        "-m": "--mem",
        "-n": "--job-name",
        "-p": "--priority",
        "-P": "--comment",
        "--conda-env": "--conda",
        "--dependency": _depends_on,
        "--depends-on": _depends_on,
        "--depends-on-all": _depends_on,
        "--depends-on-any": _depends_on_any,
        "--max-concurrent": "--max-jobs",
        "--gpu-memory": _gpu_memory,
        "--gres": "--gpus",
        "--max-gpu-mem": _gpu_memory,
        "--max-gpu-memory": _gpu_memory,
        "--max-mem": "--mem",
        "--max-memory": "--mem",
        "--memory": "--mem",
        "--name": "--job-name",
        "--nice": "--priority",
        "--project": "--comment",
        "--shared": "--share",
        "--time-limit": "--time",
        "--timelimit": "--time",
    },
}
"""Options that have another name or form here."""
