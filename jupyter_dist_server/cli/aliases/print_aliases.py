"""``jdist aliases``: what a shell has to read to know the words of gflow or Slurm."""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path

from ...jobs.store.store import Store
from ..main import ALIASES

_FOLDER = Path(__file__).parents[1] / "programs"


def add_aliases_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist aliases``."""
    told = 'in ~/.bashrc or ~/.zshrc: eval "$(jdist aliases gflow)"'
    parser.add_argument("whose", choices=sorted({*ALIASES.values()}), help=told)
    parser.add_argument("--json", action="store_true", help="as JSON")


def run_aliases(options: argparse.Namespace, store: Store) -> int:
    """Print functions of the shell.

    Programs that it starts, such as ``watch``, find the words in PATH, behind those of a real
    Slurm: pools on several nodes need these.
    """
    folder = shlex.quote(str(_FOLDER / options.whose))
    words = [name for name, whose in ALIASES.items() if whose == options.whose]
    lines = [f'case ":$PATH:" in *:{folder}:*) ;; *) export PATH="$PATH":{folder} ;; esac']
    lines += [f'{name}() {{ {folder}/{name} "$@"; }}' for name in words]
    print(json.dumps({"shell": "\n".join(lines)}) if options.json else "\n".join(lines))
    return 0
