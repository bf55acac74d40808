"""Options in the first lines of a script: ``#JDIST``, ``#SBATCH``, ``# GFLOW``."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from ...common.errors import DistError

_LINE = re.compile(r"#\s*(JDIST|SBATCH|GFLOW)\s+(.*)")
_SBATCH = {
    "--gpus-per-node": "--gpus",
    "--gpus-per-task": "--gpus",
    "-G": "--gpus",
    "-n": "",
    "-N": "",
    "--nodes": "",
    "--ntasks": "",
    "--ntasks-per-node": "",
    "-p": "",
    "--partition": "",
    "-A": "",
    "--account": "",
    "--qos": "",
    "--mail-type": "",
    "--mail-user": "",
    "--exclusive": "",
    "--constraint": "",
    "-C": "",
    "--mem-per-cpu": "",
}
"""Options of sbatch that have another name here, or, if empty, no meaning on one machine."""
_GFLOW = {
    "--conda-env": "--conda",
    "--depends-on": "--dependency",
    "-c": "--conda",
    "-p": "--priority",
    "-n": "--job-name",
    "-g": "--gpus",
    "--max-concurrent": "--max-jobs",
    "--shared": "--share",
}


def read_directives(path: Path) -> tuple[list[str], list[str]]:
    """Return the options in a script, and a sentence for each that has no meaning here.

    Raises
    ------
    DistError
        If the script cannot be read.
    """
    try:
        lines = path.read_text(errors="surrogateescape").splitlines()
    except OSError as error:
        raise DistError("bad_script", f"{path} cannot be read: {error.strerror}.") from error
    options: list[str] = []
    unused: list[str] = []
    for line in lines:
        if line.strip() and not line.startswith("#"):
            break
        if match := _LINE.match(line):
            words = shlex.split(match[2], comments=True)
            if match[1] == "SBATCH":
                _translate(words, _SBATCH, options, unused)
            elif match[1] == "GFLOW":
                _translate(words, _GFLOW, options, unused)
            else:
                options += words
    return options, unused


def _translate(
    words: list[str], names: dict[str, str], options: list[str], unused: list[str]
) -> None:
    words = list(words)
    while words:
        name, equals, value = words.pop(0).partition("=")
        if name == "--gres" or (name.startswith("--gpus-per") or name == "--gpus"):
            text = value if equals else words.pop(0) if words else ""
            options += ["--gpus", text.rpartition(":")[2]]
            continue
        new = names.get(name, name)
        values = [value] if equals else []
        while not equals and words and not words[0].startswith("-"):
            values.append(words.pop(0))
        if not new:
            unused.append(" ".join([name, *values]))
        elif new == "--dependency" and values and values[0].isdigit():
            options += [new, f"afterok:{values[0]}"]
        else:
            options += [new, *values]
