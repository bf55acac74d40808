"""``jdist profile``: compares profiles that `%%distributed --profile` has written."""

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
from ..verdicts.slow.lateness import Profiles


class _File(msgspec.Struct):
    """A trace of ours; a trace of other programs has no profiles."""

    profiles: dict[int, RankProfile] = msgspec.field(name="jupyterDistProfiles")


_decode: Callable[[bytes], _File] = msgspec.json.Decoder(_File, strict=False).decode


def add_profile_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist profile``."""
    parser.add_argument("what", choices=["compare"], help="compare two profiles")
    parser.add_argument("before", metavar="BEFORE", help="profile-cell-12.json.gz")
    parser.add_argument("after", metavar="AFTER", help="the later one")
    told = "exit with 1 if a step takes so much longer, and steps do not vary by as much"
    parser.add_argument("--fail-if-slower", metavar="PERCENT", type=_part, help=told)


def _part(text: str) -> float:
    try:
        if (part := float(text.removesuffix("%")) / 100) >= 0:
            return part
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text} is no percentage, such as 5%")


def run_profile(options: argparse.Namespace, store: Store) -> int:
    """Say what became slower; 1 if that is more than allowed."""
    found = compare(_read(options.before), _read(options.after))
    print(found.text)
    limit = options.fail_if_slower
    return int(limit is not None and found.fails(limit))


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
