"""What ``squeue`` and ``sacct`` can show, and their formats."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence

from ...common.errors import DistError
from ...common.units import format_bytes, write_limit
from ...common.users import name_of
from ...jobs.job_command import job_command, log_paths
from ...jobs.schedule.overview import Row
from ...jobs.store.job import Job
from ...jobs.store.states import LETTERS, PENDING
from ..printing import printable
from ..queue import write_time

NONE = "(null)"
"""What Slurm writes for a value that is not there; for one that has no meaning here, too."""
PARTITION = "jdist"
_HOST = os.uname().nodename
_LETTER = re.compile(r"%(\.?)(\d*)([A-Za-z])")
_LONG = re.compile(r"([A-Za-z-]+)(?::(\.?)(\d+))?")
_FIELD = re.compile(r"([A-Za-z]+)(?:%(-?)(\d+))?")


def moment(at: float | None, none: str = "N/A") -> str:
    """Write a moment as Slurm does."""
    return none if at is None else time.strftime("%FT%T", time.localtime(at))


def gres(gpus: int) -> str:
    """Write a number of GPUs."""
    return f"gres:gpu:{gpus}" if gpus else "N/A"


def nodes_or_reason(row: Row) -> str:
    """Return the machine, or why a job waits."""
    return f"({row.reason or 'None'})" if row.state == PENDING else _HOST


def _start(row: Row) -> str:
    if row.state != PENDING:
        return moment(row.since)
    begin = row.job.begin if row.job else None
    return moment(row.expected.start if row.expected else begin)


def _end(row: Row) -> str:
    return moment((row.job.ended if row.job else None) or row.ends_by)


def _left(row: Row) -> str:
    if row.limit is None:
        return "UNLIMITED"
    return write_limit(row.limit if row.ends_by is None else max(0.0, row.ends_by - time.time()))


def of_job(read: Callable[[Job], object]) -> Callable[[Row], str]:
    """Return a cell of what is known of own jobs alone."""
    return lambda row: NONE if row.job is None else str(read(row.job))


def _or_none(number: int | None) -> str:
    return "N/A" if number is None else str(number)


_IDS = of_job(lambda job: job.id)
COLUMNS: dict[str, tuple[str, str, Callable[[Row], str]]] = {
    "A": ("JOBID", "JobID", _IDS),
    "b": ("TRES_PER_NODE", "tres-per-node", lambda row: gres(row.gpus)),
    "B": ("EXEC_HOST", "BatchHost", lambda row: NONE if row.state == PENDING else _HOST),
    "C": ("CPUS", "NumCPUs", of_job(lambda job: max(1, job.cpus))),
    "D": ("NODES", "NumNodes", lambda row: "1"),
    "e": ("END_TIME", "EndTime", _end),
    "F": ("ARRAY_JOB_ID", "ArrayJobID", of_job(lambda job: job.array or job.id)),
    "i": ("JOBID", "JobArrayID", lambda row: row.id or NONE),
    "j": ("NAME", "Name", lambda row: row.name or NONE),
    "k": ("COMMENT", "Comment", of_job(lambda job: job.spec.comment or NONE)),
    "K": (
        "ARRAY_TASK_ID",
        "ArrayTaskID",
        of_job(lambda job: "N/A" if job.task is None else job.task),
    ),
    "l": ("TIME_LIMIT", "TimeLimit", lambda row: write_limit(row.limit)),
    "L": ("TIME_LEFT", "TimeLeft", _left),
    "m": ("MIN_MEMORY", "MinMemory", of_job(lambda job: format_bytes(job.memory).replace(" ", ""))),
    "M": ("TIME", "TimeUsed", write_time),
    "N": ("NODELIST", "NodeList", lambda row: "" if row.state == PENDING else _HOST),
    "o": ("COMMAND", "Command", of_job(lambda job: " ".join(job_command(job)))),
    "P": ("PARTITION", "Partition", lambda row: PARTITION),
    "Q": ("PRIORITY", "PriorityLong", of_job(lambda job: job.priority)),
    "r": ("REASON", "Reason", lambda row: row.reason or "None"),
    "R": ("NODELIST(REASON)", "ReasonList", nodes_or_reason),
    "S": ("START_TIME", "StartTime", _start),
    "t": ("ST", "StateCompact", lambda row: LETTERS.get(row.state, row.state)),
    "T": ("STATE", "State", lambda row: row.state),
    "u": ("USER", "UserName", lambda row: row.user or NONE),
    "V": ("SUBMIT_TIME", "SubmitTime", of_job(lambda job: moment(job.submitted))),
    "Z": ("WORK_DIR", "WorkDir", of_job(lambda job: job.spec.cwd)),
    "STDOUT": ("STDOUT", "STDOUT", of_job(lambda job: log_paths(job)[0])),
}
"""By letter of ``--format``: the heading, the name in ``--Format``, and the value."""
_BY_NAME = {name.lower(): letter for letter, (_, name, _) in COLUMNS.items()}
_BY_NAME |= {"gres": "b", "tres-alloc": "b", "numtasks": "D", "starttime": "S"}
Format = list[tuple[str, str, str]]
"""Texts before columns; their letters; and how they are padded, such as ``>18`` and ``<8``."""


def read_letters(text: str) -> tuple[Format, str]:
    """Read ``%.18i %T``; return its columns and the text after the last."""
    found, end = [], 0
    for match in _LETTER.finditer(text):
        if match[3] not in COLUMNS:
            raise _unknown(
                f"%{match[3]}", "squeue -o", [f"%{one}" for one in COLUMNS if one != "1"]
            )
        side = ">" if match[1] else "<"
        found.append((text[end : match.start()], match[3], side + match[2] if match[2] else ""))
        end = match.end()
    return found, text[end:]


def read_names(text: str) -> tuple[Format, str]:
    """Read ``JobID,State:12``; each column has 20 characters if it does not say how many."""
    found = []
    for word in text.split(","):
        match = _LONG.fullmatch(word.strip())
        letter = _BY_NAME.get(match[1].lower()) if match else None
        if not match or letter is None:
            raise _unknown(word, "squeue -O", [name for _, name, _ in COLUMNS.values()])
        found.append(("", letter, f"{'>' if match[2] else '<'}{match[3] or 20}"))
    return found, ""


def write(chosen: tuple[Format, str], rows: Sequence[Row], *, heading: bool) -> str:
    """Write rows in a format of ``squeue``."""
    columns, end = chosen
    lines = [[COLUMNS[letter][0] for _, letter, _ in columns]] if heading else []
    lines += [[printable(COLUMNS[letter][2](row)) for _, letter, _ in columns] for row in rows]
    return "".join(
        "".join(
            before + padded(cell, pad) for (before, _, pad), cell in zip(columns, line, strict=True)
        )
        + f"{end}\n"
        for line in lines
    )


def padded(text: str, pad: str) -> str:
    """Pad or cut a text: ``>18`` to the right, ``<8`` to the left; empty leaves it."""
    return f"{text[: int(pad[1:])]:{pad}}" if pad else text


def _unknown(word: str, option: str, known: Sequence[str]) -> DistError:
    hint = f"There are: {', '.join(known)}."
    return DistError("bad_option", f"“{word}” of {option} has no translation to jdist.", hint)


def exit_code(job: Job) -> str:
    """Return exit code and signal."""
    return f"{job.exit_code or 0}:{job.exit_signal or 0}"


def _seconds(job: Job) -> int:
    return int((job.ended or time.time()) - job.started) if job.started else 0


def elapsed(job: Job) -> str:
    """Return how long a job has run, with hours."""
    text = write_limit(float(_seconds(job)))
    return f"00:{text:0>5}" if text.count(":") == 1 else f"{text:0>8}"


FIELDS: dict[str, tuple[Callable[[Job], object], int]] = {
    "JobID": (lambda job: job.label, -12),
    "JobIDRaw": (lambda job: job.id, -12),
    "JobName": (lambda job: job.name, 10),
    "Partition": (lambda job: PARTITION, 10),
    "Account": (lambda job: NONE, 10),
    "AllocCPUS": (lambda job: max(1, job.cpus), 10),
    "State": (lambda job: job.state, 10),
    "ExitCode": (exit_code, 8),
    "AllocNodes": (lambda job: 1, 10),
    "AllocTRES": (lambda job: f"cpu={max(1, job.cpus)},gres/gpu={job.gpus}", 24),
    "Comment": (lambda job: job.spec.comment, 14),
    "DerivedExitCode": (exit_code, 15),
    "Elapsed": (elapsed, 10),
    "ElapsedRaw": (
        lambda job: int((job.ended or time.time()) - job.started) if job.started else 0,
        10,
    ),
    "Eligible": (lambda job: moment(job.queued, "Unknown"), 19),
    "End": (lambda job: moment(job.ended, "Unknown"), 19),
    "NCPUS": (lambda job: max(1, job.cpus), 10),
    "NNodes": (lambda job: 1, 8),
    "NodeList": (lambda job: _HOST if job.started else "None assigned", 15),
    "Priority": (lambda job: job.priority, 10),
    "Reason": (lambda job: job.reason, 22),
    "ReqMem": (lambda job: format_bytes(job.memory).replace(" ", "") if job.memory else "", 10),
    "ReqTRES": (lambda job: f"cpu={max(1, job.cpus)},gres/gpu={job.gpus}", 24),
    "Start": (lambda job: moment(job.started, "Unknown"), 19),
    "Submit": (lambda job: moment(job.submitted), 19),
    "Timelimit": (lambda job: write_limit(job.limit), 10),
    "User": (lambda job: name_of(os.getuid()), 9),
    "WorkDir": (lambda job: job.spec.cwd, 20),
}
"""By name in ``sacct --format``: the value, and the characters; to the left if negative."""


def read_fields(text: str) -> list[tuple[str, int]]:
    """Read ``JobID%20,State``; return names and numbers of characters."""
    known = {name.lower(): name for name in FIELDS}
    found = []
    for word in text.split(","):
        match = _FIELD.fullmatch(word.strip())
        name = known.get(match[1].lower()) if match else None
        if not match or name is None:
            raise _unknown(word, "sacct --format", [*FIELDS])
        found.append((name, int(match[2] + match[3]) if match[3] else FIELDS[name][1]))
    return found
