"""`init_process_group` and `destroy_process_group` as a program on ranks may call them.

The pool's own group stands as long as the pool: it is what a program gets that initialises one, and
what is left when it destroys one. Making groups again and again would be slower, and torch hangs
in some rounds when a gloo group that `DistributedDataParallel` has used is destroyed.
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

_KEPT: list[object] = []
"""Groups of the process that a child was forked from: there, their end would wait for threads."""


class OtherGroupError(DistError, RuntimeError):
    """A program wants a group that its pool does not have; torch's own error is no other type."""


def no_group() -> OtherGroupError:
    """Return the error of a rank whose pool has no process group that works."""
    return OtherGroupError(
        "no_group",
        "The pool has no process group at the moment: a rank is dead or does not respond.",
        "%dist_status shows which rank; %dist_restart --ranks replaces it.",
    )


class UserGroup:
    """The group of the pool as the user's program sees it: there, or destroyed.

    Parameters
    ----------
    backend : str
        Of the pool, as `torch.distributed.init_process_group` takes it.
    rank, world_size : int
        Who we are.

    Attributes
    ----------
    standing : ProcessGroup or None
        The pool's group, also while the user has none.
    """

    def __init__(self, backend: str, rank: int, world_size: int) -> None:
        from torch.distributed import distributed_c10d

        self.standing: Any = None
        self._backend = backend
        self._rank = rank
        self._world_size = world_size
        self._pid = os.getpid()
        self._timeouts: list[tuple[Any, Any]] = []
        """The backends of the group, and the time limits that they began with."""
        self._c10d = distributed_c10d
        self._init, self._destroy = (
            distributed_c10d.init_process_group,
            distributed_c10d.destroy_process_group,
        )
        self._signature = inspect.signature(self._init)
        self._made: Counter[str] = Counter()
        """How often a group of each name was made beside the pool's group."""
        self._first_name = 0
        """The first group that a program makes is named so, by its number."""
        self._give_each_group_fresh_keys()
        _replace(self._init, self._on_init)
        _replace(self._destroy, self._on_destroy)

    def _give_each_group_fresh_keys(self) -> None:
        """Let no group find in the store what an earlier one of the same name has left there."""
        import torch.distributed as dist

        make = self._c10d._new_process_group_helper
        signature = inspect.signature(make)

        @wraps(make)
        def made_afresh(*arguments: Any, **options: Any) -> Any:
            asked = signature.bind(*arguments, **options)
            name, before = asked.arguments["group_name"], self._made[asked.arguments["group_name"]]
            self._made[name] += 1
            if before:
                store = dist.PrefixStore(f"again/{before}", asked.arguments["store"])
                asked.arguments["store"] = store
            return make(*asked.args, **asked.kwargs)

        self._c10d._new_process_group_helper = made_afresh

    def make(self, *arguments: Any, **options: Any) -> None:
        """Make the pool's group, as `init_process_group` does."""
        self._made.clear()  # a rank that is started later has made none
        self._init(*arguments, **options)
        self._first_name = self._c10d._world.group_count
        self.standing = group = self._c10d.GroupMember.WORLD
        backends = {group._get_backend(device) for device in group._device_types}
        # With TORCH_DISTRIBUTED_DEBUG=DETAIL each is in a wrapper, which takes no time limit.
        backends = {getattr(backend, "wrapped_pg", backend) for backend in backends}
        self._timeouts = [
            (backend, backend.options._timeout)
            for backend in backends
            if hasattr(backend, "options")  # not every backend tells
        ]

    def end(self) -> None:
        """Destroy the pool's group, and those that the user made."""
        if self.standing is not None:
            self._c10d._update_default_pg(self.standing)
            self._timeouts.clear()
            self._destroy()
            self.standing = None

    def bring_back(self) -> None:
        """Let a program begin as the first one did, if an earlier one destroyed the group."""
        if self.standing is not None:
            self._c10d._update_default_pg(self.standing)

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
        self._check_backend(asked.get("backend"))
        self._c10d._update_default_pg(standing)
        if timeout := asked.get("timeout"):
            self._c10d._set_pg_timeout(timeout, self.standing)

    def _on_destroy(self, group: Any = None) -> None:
        c10d = self._c10d
        default = c10d.GroupMember.WORLD
        if default is None or default is not self.standing or group not in (None, default):
            self._destroy(group)
            return
        if os.getpid() != self._pid:
            self._forget_parents_groups()
            return
        for own in list(c10d._world.pg_map):
            if own is not default:
                self._destroy(own)
        # As after torch's own: what DTensor keeps of a mesh names its groups.
        c10d._world.group_count = self._first_name
        c10d._update_default_pg(None)
        for backend, timeout in self._timeouts:
            backend._set_default_timeout(timeout)

    def _check_place(self, asked: dict[str, Any]) -> None:
        """Refuse another world size or rank: what the program computes would be wrong."""
        by_environment = (
            not asked.get("store") and (asked.get("init_method") or "env://") == "env://"
        )
        for name, ours in (("world_size", self._world_size), ("rank", self._rank)):
            given, where = asked.get(name, -1), f"{name}={{}}"
            if given == -1 and by_environment and name.upper() in os.environ:
                given, where = int(os.environ[name.upper()]), f"{name.upper()}={{}} in os.environ"
            if given not in (-1, None, ours):
                have = f"a pool of {self._world_size} ranks"
                raise OtherGroupError(
                    "other_group",
                    f"init_process_group was called with {where.format(given)}, "
                    f"but this is rank {self._rank} of {have}.",
                    f"Omit the argument, or start a pool with %dist_init -n {given}."
                    if name == "world_size"
                    else "Omit the argument, or pass int(os.environ['RANK']).",
                )

    def _check_backend(self, asked: str | None) -> None:
        """Warn if gloo has to do what NCCL was asked to do; refuse what the group cannot do."""
        wanted = _names(asked or "undefined") - {"undefined"}
        missing = wanted - _names(self._backend)
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
        world = self._c10d._world
        if self.standing is not None:
            _KEPT.extend([self.standing, *world.pg_map])
            self.standing = None
            self._c10d._update_default_pg(None)
            for known in (
                world.pg_map,
                world.pg_names,
                world.pg_group_ranks,
                world.pg_backend_config,
                world.pg_to_tag,
                world.tags_to_pg,
            ):
                known.clear()
            world.group_count = 0
            self._c10d._unregister_all_process_groups()


def _names(backend: str) -> set[str]:
    """Return ``{"gloo", "nccl"}`` for ``"cpu:gloo,cuda:nccl"``."""
    return {part.rpartition(":")[2].strip() for part in str(backend).lower().split(",")}


def _replace(theirs: Callable[..., None], ours: Callable[..., None]) -> None:
    """Put our function in place of torch's wherever torch has imported it by name."""

    @wraps(theirs)
    def replaced(*arguments: Any, **options: Any) -> None:
        ours(*arguments, **options)

    for module in list(sys.modules.values()):
        if getattr(module, "__dict__", {}).get(theirs.__name__) is theirs:
            setattr(module, theirs.__name__, replaced)
