"""`init_process_group` and `destroy_process_group` as a program on ranks may call them.

The pool's own group stands as long as the pool: a program gets it when it initialises one, and it
remains when the program destroys one. Making groups again and again would be slower, and torch
sometimes hangs when a gloo group that `DistributedDataParallel` has used is destroyed.
"""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from functools import wraps
from typing import Any

from ...common.errors import DistError
from ..torch_internals import (
    Make,
    TimeLimits,
    default_group,
    forget_groups,
    group_count,
    groups,
    name_ranks,
    restore_time_limits,
    set_backend_name,
    set_default_group,
    set_group_count,
    set_time_limit,
    time_limits,
    wrap_maker,
)

_KEPT: list[object] = []
"""A forked child keeps its parent's groups: their end would wait for threads."""


class OtherGroupError(DistError, RuntimeError):
    """A program wants a group that its pool does not have; torch raises `RuntimeError` too."""


def no_group() -> OtherGroupError:
    """Return the error of a rank whose pool has no process group that works."""
    return OtherGroupError(
        "no_group",
        "The pool has no process group at the moment: a rank is dead or does not respond.",
        "%dist_status shows which rank; %dist_restart --ranks replaces it.",
    )


class UserGroup:
    """The group of the pool as the user's program sees it: there, or destroyed."""

    def __init__(self, backend: str, rank: int, world_size: int) -> None:
        from torch.distributed import distributed_c10d

        self.standing: Any = None
        """The pool's group, also while the user has none."""
        self._backend = backend
        self._rank = rank
        self.world_size = world_size
        self._pid = os.getpid()
        self._time_limits: TimeLimits = []  # the time limits with which the group began
        self._init = distributed_c10d.init_process_group
        self._destroy = distributed_c10d.destroy_process_group
        self._signature = inspect.signature(self._init)
        self._made: Counter[str] = Counter()
        """How often a group of each name was made beside the pool's group."""
        self._first_name = 0  # the number that names the first group of a program
        wrap_maker(self._with_fresh_keys)
        _replace(self._init, self._on_init)
        _replace(self._destroy, self._on_destroy)

    def _with_fresh_keys(self, make: Make) -> Make:
        """Hide the keys that an earlier group of the same name has left in the store."""
        from torch.distributed import distributed_c10d

        signature = inspect.signature(make)

        @wraps(make)
        def made_afresh(*arguments: Any, **options: Any) -> Any:
            asked = signature.bind(*arguments, **options)
            name, before = asked.arguments["group_name"], self._made[asked.arguments["group_name"]]
            self._made[name] += 1
            if before:
                store = distributed_c10d.PrefixStore(f"again/{before}", asked.arguments["store"])
                asked.arguments["store"] = store
            return make(*asked.args, **asked.kwargs)

        return made_afresh

    def make(self, *arguments: Any, **options: Any) -> None:
        """Make the pool's group, as `init_process_group` does."""
        # Keys in the store have both counts, and a rank that failed to make the group counted it.
        self._made.clear()
        set_group_count(0)
        self._init(*arguments, **options)
        self._first_name = group_count()
        self.standing = default_group()
        assert self.standing is not None
        name_ranks(self.standing)
        self._time_limits = time_limits(self.standing)

    def end(self) -> None:
        """Destroy the pool's group, and those that the user made."""
        if self.standing is not None:
            set_default_group(self.standing)
            self._time_limits.clear()
            self._destroy()
            self.standing = None

    def bring_back(self) -> None:
        """Undo a program's `destroy_process_group`, so that the next one begins as it did."""
        if self.standing is not None:
            set_default_group(self.standing)
            set_backend_name(self.standing, self._backend)

    def require(self) -> Any:
        """Return the pool's group, or say why there is none."""
        if self._backend == "none":
            raise OtherGroupError(
                "no_group",
                "The pool has no process group: it was started with --backend none.",
                "Start another pool with %dist_init, without --backend none.",
            )
        if self.standing is None:
            raise no_group()
        return self.standing

    def _on_init(self, *arguments: Any, **options: Any) -> None:
        asked = self._signature.bind(*arguments, **options).arguments
        if os.getpid() != self._pid:
            self._forget_parents_groups()
            self._init(*arguments, **options)
            return
        standing = self.require()
        self._check_place(asked)
        backend = asked.get("backend") or self._backend
        self._check_backend(backend)
        set_default_group(standing)
        # Programs choose by `get_backend() == "nccl"` where their tensors are.
        asked_for, ours = _names(backend), _names(self._backend)
        # With NCCL in it, torch splits groups off: it must do so on all ranks, or on none.
        is_ours = asked_for <= ours and ("nccl" in asked_for) == ("nccl" in ours)
        set_backend_name(standing, backend if is_ours else self._backend)
        if timeout := asked.get("timeout"):
            set_time_limit(standing, timeout)

    def _on_destroy(self, group: Any = None) -> None:
        default = default_group()
        if default is None and group is not None and group is self.standing:
            raise ValueError("Invalid process group specified")  # as torch says of one destroyed
        if default is None or default is not self.standing or group not in (None, default):
            self._destroy(group)
            if groups() == [self.standing]:
                set_group_count(self._first_name)
            return
        if os.getpid() != self._pid:
            self._forget_parents_groups()
            return
        for own in groups():
            if own is not default:
                self._destroy(own)
        # As after torch's own: what DTensor keeps of a mesh names its groups. The same holds
        # above, as other ranks may destroy all groups while this one destroys its own.
        set_group_count(self._first_name)
        set_default_group(None)
        restore_time_limits(self._time_limits)

    def _check_place(self, asked: dict[str, Any]) -> None:
        """Refuse another world size or rank: the program's results would be wrong."""
        init_method = asked.get("init_method") or "env://"
        by_environment = not asked.get("store") and init_method == "env://"
        for name, ours in (("world_size", self.world_size), ("rank", self._rank)):
            given, where = asked.get(name, -1), f"{name}={{}}"
            if given == -1 and by_environment and name.upper() in os.environ:
                given, where = int(os.environ[name.upper()]), f"{name.upper()}={{}} in os.environ"
            if given not in (-1, None, ours):
                raise OtherGroupError(
                    "other_group",
                    f"init_process_group was called with {where.format(given)}, "
                    f"but this is rank {self._rank} of a pool of {self.world_size} ranks.",
                    f"Omit the argument, or start a pool with %dist_init -n {given}."
                    if name == "world_size"
                    else "Omit the argument, or pass int(os.environ['RANK']).",
                )

    def _check_backend(self, asked: str) -> None:
        """Warn if gloo replaces NCCL; refuse a backend that the group does not have."""
        missing = _names(asked) - {"undefined"} - _names(self._backend)
        if not missing:
            return
        said = f"init_process_group was called with {asked}, but this pool uses {self._backend}"
        if missing == {"nccl"}:
            warnings.warn(
                f"{said} instead. To choose another, start a pool with %dist_init --backend.",
                stacklevel=3,
            )
            return
        raise OtherGroupError(
            "other_group",
            f"{said}.",
            "Omit the argument, or start another pool with %dist_init --backend.",
        )

    def _forget_parents_groups(self) -> None:
        """In a forked child: leave the parent's connections alone, and have no group."""
        if self.standing is not None:
            _KEPT.extend([self.standing, *forget_groups()])
            self.standing = None


def _names(backend: str) -> set[str]:
    """Return ``{"gloo", "nccl"}`` for ``"cpu:gloo,cuda:nccl"``."""
    return {part.rpartition(":")[2].strip() for part in str(backend).lower().split(",")}


def _replace(theirs: Callable[..., None], ours: Callable[..., None]) -> None:
    """Put our function in place of torch's in all modules that have imported it by name."""

    @wraps(theirs)
    def replaced(*arguments: Any, **options: Any) -> None:
        ours(*arguments, **options)

    for module in list(sys.modules.values()):
        if getattr(module, "__dict__", {}).get(theirs.__name__) is theirs:
            setattr(module, theirs.__name__, replaced)
