"""One system, measured once: ``python -m benchmarks.case NAME -n 8`` prints a JSON record."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

from .measures import Sizes, measure
from .peers import PEERS
from .report import Record
from .systems import Kernel, Kernels, Ours, OursServed, System

_KINDS: tuple[type[System], ...] = (Ours, OursServed, Kernels, Kernel, *PEERS)
SYSTEMS = {kind.name: kind for kind in _KINDS}


def run_case(name: str, size: int, python: str, sizes: Sizes) -> Record:
    """Bring a system up in a fresh environment, measure it, and end it."""
    with tempfile.TemporaryDirectory(prefix="jb-", ignore_cleanup_errors=True) as folder:
        system = SYSTEMS[name](size, Path(folder), python)
        try:
            system.open()
            values, failures = measure(system, sizes)
        except (OSError, AssertionError, RuntimeError) as error:
            values, failures = {}, {"open": f"{type(error).__name__}: {error}"}
        finally:
            signal.alarm(0)
            system.close()
    return {"system": name, "values": values, "failures": failures}


def _out_of_time(*_: object) -> NoReturn:
    raise TimeoutError("the case took too long")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=SYSTEMS)
    parser.add_argument("-n", "--num-ranks", type=int, default=8)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--limit", type=int, default=300, help="seconds")
    for option, value in asdict(Sizes()).items():
        parser.add_argument(f"--{option.replace('_', '-')}", type=type(value), default=value)
    given = vars(parser.parse_args())
    sizes = Sizes(**{option: given[option] for option in asdict(Sizes())})
    signal.signal(signal.SIGALRM, _out_of_time)
    signal.alarm(given["limit"])
    print(
        json.dumps(run_case(given["name"], given["num_ranks"], given["python"], sizes)), flush=True
    )
    os._exit(0)  # clients' threads of a system that was killed would keep us


if __name__ == "__main__":
    main()
