"""The faults that no other test lets happen, once each; `make soak` takes them all, for an hour."""

from __future__ import annotations

import random
from pathlib import Path

from ..network import own_network
from .__main__ import Soak
from .faults import ClockStep, OnProcess, all_faults
from .world import World


def test_each_fault_once(tmp_path: Path, temporary_folder: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents):
        if folder.is_relative_to(temporary_folder):
            folder.chmod(0o755)  # a stranger must find what he could touch
    with own_network():
        let_each_happen(World(tmp_path))


def let_each_happen(world: World) -> None:
    soak = Soak(world, random.Random(0))
    try:
        # Processes are for the chaos test; a step of the clock would disturb tests beside this one.
        kinds = {type(fault): fault for fault in all_faults(world)}
        for kind, fault in kinds.items():
            if kind not in (OnProcess, ClockStep):
                soak.once(fault)
    finally:
        world.end()
