"""Finds the jobs that labels, names and patterns mean."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator

from ..common.errors import DistError
from .store.job import Job
from .store.states import ENDED
from .store.store import Store


def select(store: Store, labels: Iterable[str], *, whole: bool = False) -> list[Job]:
    """Return the jobs that labels name: ``12``, ``12-14``, ``40_3``, ``@`` (the newest), ``@~1``.

    A name means its jobs that have not ended, or else the newest; a pattern means that for each
    name. With `whole`, a name means all tasks of an array that has not ended. A label without any
    job is an error.
    """
    found: dict[int, Job] = {}
    for label in labels:
        jobs = list(_select(store, label, whole))
        if not jobs:
            _tell_if_pool(store, label)
            hint = "“jdist queue” lists your jobs."
            raise DistError("unknown_job", f"There is no job {label}.", hint)
        found |= {job.id: job for job in jobs}
    return list(found.values())


def select_one(store: Store, label: str) -> Job:
    """Return the job that a label names: the newest, and the first task of an array."""
    *others, newest = select(store, [label])
    tasks = [job for job in others if job.array is not None and job.array == newest.array]
    return tasks[0] if tasks else newest


def _select(store: Store, label: str, whole: bool) -> Iterator[Job]:
    if match := re.fullmatch(r"@(?:~(\d{1,15}))?", label, re.ASCII):
        yield from store.select("1", order=f"id DESC LIMIT 1 OFFSET {match[1] or 0}")
    elif match := re.fullmatch(r"(\d{1,15})_(\d{1,15})(?:-(\d{1,15}))?", label, re.ASCII):
        array, first, last = int(match[1]), int(match[2]), int(match[3] or match[2])
        yield from store.select("array = ? AND task BETWEEN ? AND ?", array, first, last)
    elif match := re.fullmatch(r"(\d{1,15})(?:-(\d{1,15}))?", label, re.ASCII):
        first, last = int(match[1]), int(match[2] or match[1])
        either = "id BETWEEN ? AND ? OR array BETWEEN ? AND ?"
        yield from store.select_many(either, *[first, last] * 2)
    else:
        # As the store keeps names that are no Unicode.
        named = _named(store, label.encode(errors="replace").decode(), whole)
        if not named and any(mark in label for mark in "*?["):
            for (name,) in store.read("SELECT name FROM jobs GROUP BY name ORDER BY min(id)"):
                if fnmatch.fnmatchcase(name, label):
                    named += _named(store, name, whole)
        yield from named


def _named(store: Store, name: str, whole: bool) -> list[Job]:
    """Return the jobs of a name that have not ended, or else the newest, or its whole array."""
    is_there = f"name = ? AND state NOT IN {ENDED}"
    if whole:
        arrays = f"SELECT array FROM jobs WHERE {is_there}"
        found = store.select_many(f"{is_there} OR array IN ({arrays})", name, name)
    else:
        found = store.select_many(is_there, name)
    if found:
        return found
    newest = store.select("name = ?", name, order="id DESC LIMIT 1")
    if newest and newest[0].array is not None:
        return store.select_many("array = ? AND name = ?", newest[0].array, name)
    return newest


def _tell_if_pool(store: Store, label: str) -> None:
    """Say that a label is a pool's: pools are in the queue, too."""
    from .schedule.board import POOL  # not above: what jobs are called is found without
    from .schedule.overview import overview

    if any(row.id == label and row.kind == POOL for row in overview(store)):
        hint = "Stop it with %dist_shutdown, or in JupyterLab's panel."
        raise DistError("unknown_job", f"{label} is a pool.", hint)
