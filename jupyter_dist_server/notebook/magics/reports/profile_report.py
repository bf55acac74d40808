"""What is shown below a profiled cell: a verdict, a table, and the merged trace."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from IPython.core.error import UsageError
from IPython.core.magic_arguments import argument
from IPython.display import display

from ....client.long_requests import profiles_of
from ....common.errors import DistError
from ....common.protocol.ranks.profile_messages import RankProfile
from ....common.protocol.ranks.rank_messages import ProfileOptions
from ....common.rank_specs import name_ranks
from ....verdicts.slow.compare_profiles import compare
from ....verdicts.slow.lateness import Profiles
from ....verdicts.slow.merged_trace import merge
from ....verdicts.slow.next_steps import next_steps
from ....verdicts.slow.slow_sentences import remarks, rows, verdict
from ....verdicts.slow.time_account import lanes
from ...output.late_output import LateOutput
from ...session.current_pool import CurrentPool
from .pool_status import aligned

Magic = TypeVar("Magic")

TRACE = "application/vnd.jupyter-dist.trace+json"
"""JupyterLab with our extension shows it as a link and a button."""


def can_profile(magic: Magic) -> Magic:
    """Add the options for profiling to a magic."""
    for option in (
        argument("--memory", action="store_true", help="profile allocations too"),
        argument("--compare", action="store_true", help="compare with the cell's last profile"),
        argument("--steps", type=int, metavar="N", help="profile the first N optimizer steps only"),
        argument("--profile", action="store_true", help="show why it is slow, rank by rank"),
    ):
        option(magic)
    return magic


def profile_options(options: argparse.Namespace) -> ProfileOptions | None:
    """Return how to profile a cell or script; `None` is not at all."""
    if options.steps is not None and options.steps < 1:
        raise UsageError(f"--steps must be at least 1, not {options.steps}")
    if options.profile:
        return ProfileOptions(options.steps, options.memory)
    if options.steps is not None or options.memory or options.compare:
        raise UsageError("--steps, --memory and --compare are options of --profile")
    return None


_last: dict[str, Profiles] = {}
"""By the ID of a cell, its last profile; cells of front ends without IDs count as one."""


@contextmanager
def reported(
    pool: CurrentPool, ranks: Sequence[int], cell: int, *, compared: bool = False
) -> Iterator[None]:
    """Run a profiled cell, of number `cell`, and show its profile when it has ended or failed.

    `compared` shows how it differs from the cell's last one, too.
    """
    cell_id = LateOutput().cell_id or ""
    try:
        yield
    except DistError:  # it did not begin
        raise
    except BaseException:
        try:  # the pool may have ended, but why the cell failed matters more
            _report(pool, _that_respond(pool, ranks), cell, cell_id, compared)
        except DistError as error:
            print(f"The profile could not be fetched: {error.message}", file=sys.stderr)
        except KeyboardInterrupt:
            print("The profile was not fetched.", file=sys.stderr)
        raise
    _report(pool, ranks, cell, cell_id, compared)


def _that_respond(pool: CurrentPool, ranks: Sequence[int]) -> list[int]:
    """Leave out stuck ranks: we would wait for their profile until they are replaced."""
    _, client = pool.require()
    said = pool.loop.run(client.status(ranks=ranks))
    if silent := [rank for rank in ranks if rank not in said and rank not in client.dead]:
        print(f"No profile of {name_ranks(silent)}, which did not respond.", file=sys.stderr)
    return [rank for rank in ranks if rank not in silent]


def _report(
    pool: CurrentPool, ranks: Sequence[int], cell: int, cell_id: str, compared: bool
) -> None:
    """Show why a cell was slow, and write the trace of its ranks."""
    _, client = pool.require()
    said, traces = pool.loop.run(profiles_of(client, ranks))
    good = {rank: profile for rank, profile in said.items() if profile.status == "ok"}
    if good:
        print("\n".join([verdict(good), *next_steps(good)]))
        if compared:
            before = _last.get(cell_id)
            nothing = "There is no earlier profile of this cell to compare with."
            print(compare(before, good).text if before else nothing)
        _last[cell_id] = good
        _show_table(rows(good))
        print(" ".join(remarks(good)))
        pool.tell_lanes(lanes(good))
    for sentence in _missing(ranks, said):
        print(sentence, file=sys.stderr)
    if traces:
        file = _new_file(f"profile-cell-{cell}")
        try:
            merge(traces, file, said)
        except (OSError, ValueError) as error:
            print(f"The trace could not be written to {file}: {error}", file=sys.stderr)
        else:
            _link(file.name)


def _new_file(name: str) -> Path:
    """Return the path of a new file: other notebooks may have a cell of the same number."""
    names = (f"{name}-{number}" for number in itertools.count(2))
    files = (Path(f"{one}.json.gz") for one in itertools.chain([name], names))
    return next(file for file in files if not file.exists()).resolve()


def _show_table(table: list[tuple[str, ...]]) -> None:
    """Show a table: a narrow notebook scrolls it, but would break the lines of a text."""
    lines = []
    for number, row in enumerate(table):
        tag = "td" if number else "th"
        cells = (f"<{tag}>{escape(text).replace(' ', '&nbsp;')}</{tag}>" for text in row)
        lines.append(f"<tr>{''.join(cells)}</tr>")
    html = f"<table>{''.join(lines)}</table>"
    display({"text/plain": "\n".join(aligned(table)), "text/html": html}, raw=True)


def _link(name: str) -> None:
    """Show a link that downloads the trace, which is beside the notebook."""
    perfetto = "https://ui.perfetto.dev"
    link = f'<a href="{quote(name)}" download="{escape(name)}">{escape(name)}</a>'
    viewer = f'<a href="{perfetto}" target="_blank" rel="noopener">{perfetto}</a>'
    shown: dict[str, object] = {
        "text/plain": f"Trace of all ranks: {name} (open it in {perfetto})",
        "text/html": f"Trace of all ranks: {link} (open it in {viewer})",
        TRACE: {"file": name},
    }
    display(shown, raw=True)


def _missing(ranks: Sequence[int], said: dict[int, RankProfile]) -> list[str]:
    """Say which ranks have no profile, and why."""
    whys: dict[str, list[int]] = {}
    for rank in ranks:
        profile = said.get(rank)
        if profile is None:
            whys.setdefault("died", []).append(rank)
        elif profile.status == "none":
            whys.setdefault("did not begin the cell, or did not end it", []).append(rank)
        elif profile.status == "failed":
            whys.setdefault(f"could not be profiled: {profile.why}", []).append(rank)
    return [f"{name_ranks(those).capitalize()} {why}." for why, those in whys.items()]
