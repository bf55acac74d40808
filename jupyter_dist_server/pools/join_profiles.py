"""A process that joins the profiles of a job's ranks; its output is a part of the job's log."""

from __future__ import annotations

import sys
from pathlib import Path

from ..common.protocol.ranks.script_messages import decode_script_profile
from ..verdicts.slow.merged_trace import merge
from ..verdicts.slow.next_steps import next_steps
from ..verdicts.slow.slow_sentences import remarks, rows, verdict


def main() -> None:
    """Join the profiles of a folder in a file; print why the job is slow, and what to do next."""
    folder, file = Path(sys.argv[1]), Path(sys.argv[2])
    found = [decode_script_profile(one.read_bytes()) for one in folder.glob("*.profile")]
    profiles = {one.rank: one.profile for one in found}
    table = rows(profiles)
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    lines = [verdict(profiles), *next_steps(profiles), ""]
    lines += ["  ".join(map(str.ljust, row, widths)).rstrip() for row in table]
    lines += ["", *remarks(profiles)]
    try:
        merge({one.rank: one.trace for one in found}, file, profiles)
        lines.append(f"Trace of all ranks: {file}")
    except (OSError, ValueError) as error:
        lines.append(f"The trace could not be written to {file}: {error}")
    text = "\n".join(lines)
    sys.stdout.buffer.write(f"\n[jdist: {text}]\n".encode())
