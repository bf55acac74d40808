"""``jdist profile``: compares profiles of cells, and of jobs with ``--profile-steps``."""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Callable
from pathlib import Path

import msgspec

from ..common.errors import DistError
from ..common.protocol.ranks.profile_messages import RankProfile
from ..jobs.store.store import Store
from ..verdicts.slow.compare_profiles import compare
from ..verdicts.slow.lateness import Profiles, waiting
from ..verdicts.slow.scaling import Run, Scaling, scaling_rows, scaling_sentence
from ..verdicts.slow.time_account import accounts, average
from .printing import table


class _File(msgspec.Struct):
    """A trace of ours; a trace of other programs has no profiles."""

    profiles: dict[int, RankProfile] = msgspec.field(name="jupyterDistProfiles")


_decode: Callable[[bytes], _File] = msgspec.json.Decoder(_File, strict=False).decode


def add_profile_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist profile``."""
    told = "compare an earlier and a later profile, or profiles on different numbers of ranks"
    parser.add_argument("what", choices=["compare", "scaling"], help=told)
    told = "such as profile-cell-12.json.gz"
    parser.add_argument("files", nargs="+", metavar="PROFILE", help=told)
    told = "exit with 1 if a step takes so much longer, and steps do not vary by as much"
    parser.add_argument("--fail-if-slower", metavar="PERCENT", type=_part, help=told)
    parser.add_argument("--json", action="store_true", help="as JSON")
    told = "each rank does the same, however many there are"
    parser.add_argument("--weak", action="store_true", help=told)


def _part(text: str) -> float:
    try:
        if (part := float(text.removesuffix("%")) / 100) >= 0:
            return part
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text} is no percentage, such as 5%")


def run_profile(options: argparse.Namespace, store: Store) -> int:
    """Say what became slower, or how steps scale; 1 if one is slower than allowed."""
    profiles = [_read(name) for name in options.files]
    if options.what == "scaling":
        scaling = _scaling(profiles, options.weak)
        head, *rows = scaling_rows(scaling)
        text = "\n".join([scaling_sentence(scaling), table(head, rows)])
        print(_json(scaling) if options.json else text)
        return 0
    if len(profiles) != 2:
        raise DistError("bad_profile", "Name two profiles: the earlier one, then the later one.")
    found = compare(*profiles)
    print(_json(found._asdict()) if options.json else found.text)
    limit = options.fail_if_slower
    return int(limit is not None and found.fails(limit))


def _json(found: object) -> str:
    return msgspec.json.encode(found).decode()


def _scaling(all_profiles: list[Profiles], weak: bool) -> Scaling:
    """Return the steps of the same work on different numbers of ranks."""
    by_ranks = {len(profiles): profiles for profiles in all_profiles}
    if not 1 < len(by_ranks) == len(all_profiles):
        message = "Name profiles on different numbers of ranks, one of each."
        raise DistError("bad_profile", message)
    runs = []
    for ranks in sorted(by_ranks):
        account = average(accounts(by_ranks[ranks], waiting(by_ranks[ranks])))
        runs.append(Run(ranks, account.step, account))
    return Scaling(runs, weak, "step")


def _read(name: str) -> Profiles:
    hint = "Choose a trace that %%distributed --profile has written."
    try:
        profiles = _decode(gzip.decompress(Path(name).read_bytes())).profiles
    except (OSError, EOFError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise DistError("bad_profile", f"{name} cannot be read: {why}.", hint) from None
    except msgspec.MsgspecError:
        raise DistError("bad_profile", f"{name} has no profile in it.", hint) from None
    if not profiles:
        raise DistError("bad_profile", f"{name} has no profile in it.", hint)
    return profiles
