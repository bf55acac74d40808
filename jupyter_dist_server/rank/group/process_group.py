"""A rank's place in the pool's process group: made, broken when it hangs, and made again.

The control thread breaks it while the main thread waits in a collective. gloo cannot end such a
wait, but it fails when its connections are shut down; so we remember which connections each group
opened. NCCL has `abort`, which waits for the GPU: it has a thread, as the control thread must
answer meanwhile.
"""

from __future__ import annotations

import contextlib
import datetime
import logging
import os
import socket
import threading
import time
from collections.abc import Collection
from functools import wraps
from typing import TYPE_CHECKING, Any

from ..torch_internals import Make, begun_in, end_rpc, groups, groups_on_nccl, wrap_gloo, wrap_maker
from .gloo_guard import Connection, GlooGuard, connections
from .user_group import UserGroup, no_group

if TYPE_CHECKING:
    from .pool_store import StoreOfPool

_LOG = logging.getLogger(__name__)


class ProcessGroup:
    """The process group of this rank; with the backend ``"none"``, ranks meet but have no group."""

    def __init__(
        self,
        backend: str,
        rank: int,
        world_size: int,
        store: StoreOfPool,
        device: str,
        nodes: Collection[str] = (),
    ) -> None:
        self.name: str | None = None
        """The same on all ranks that share a whole group; `None` while it is broken."""
        self.asked_for = ""
        """The name of the group that was asked for last: there, broken, or being made."""
        self._asked_at = 0.0
        self.since = 0.0
        """When the group was made, in seconds since 1970."""
        self._backend = backend
        self._rank = rank
        self.world_size = world_size
        self._meeting = store
        self.device = device
        self._generation = 0
        self._breaks = 0
        self._aborting: dict[Any, threading.Thread] = {}
        """The threads that abort groups of NCCL; they wait for the GPU."""
        self._connections: set[Connection] = set()  # the connections that groups have opened
        self._users = UserGroup(backend, rank, world_size)
        self._remember_connections()
        self._guard = GlooGuard(rank, world_size, nodes)

    def _remember_connections(self) -> None:
        """Remember what every group opens, also those that the user makes with `new_group`."""

        def noticing(make: Make) -> Make:
            @wraps(make)
            def noticed(*arguments: Any, **options: Any) -> Any:
                before = {connection for connection, _ in connections()}
                try:
                    return make(*arguments, **options)
                finally:
                    self._connections |= {connection for connection, _ in connections()} - before

            return noticed

        wrap_maker(noticing)
        wrap_gloo(lambda make, opened=False: noticing(make) if opened else make)  # split groups

    def resize(self, world_size: int) -> None:
        """Have another size from the next group on."""
        self.world_size = self._users.world_size = self._guard.world_size = world_size

    def join(self, name: str, generation: int, seconds: float, asked_at: float = 0.0) -> None:
        """Make the group together with all other ranks; blocks until all are there, or raises.

        `name` was never used in this pool, `generation` counts how often ranks were replaced, and
        `asked_at` is the time of the request, by the monotonic clock of the first node; see `free`.
        """
        import torch
        import torch.distributed as dist

        self.asked_for, self._asked_at = name, asked_at
        self.leave(seconds)
        self._generation, breaks = generation, self._breaks
        self.since = time.time()
        limit = datetime.timedelta(seconds=seconds)
        pool_store = self._meeting.open(limit, self._on_interrupt)
        store = dist.PrefixStore(f"jupyter_dist/{name}", pool_store)
        if "nccl" in self._backend:
            self._touch_gpu(store)
        self._wait_for_all(store, limit)
        if self._backend != "none":
            self._users.make(
                self._backend,
                store=store,
                rank=self._rank,
                world_size=self.world_size,
                device_id=torch.device(self.device) if "nccl" in self._backend else None,
            )
        pool_store.set_timeout(datetime.timedelta(minutes=5))  # torch's own, for user's groups
        self.name = name
        if self._breaks != breaks:
            self.name = None
            raise RuntimeError("The group was broken while it was made.")

    def _on_interrupt(self) -> None:
        """Make the group again: other ranks may have gone on while this one waited in the store."""
        self.name = None

    def _touch_gpu(self, store: Any) -> None:
        """Give up if the GPU has failed: in NCCL, the other ranks would wait for this one."""
        import torch

        try:
            torch.cuda.synchronize(self.device)
        except RuntimeError:
            with contextlib.suppress(RuntimeError):  # the store's, which may be gone
                store.compare_set("ends", "", "given up")
                store.set(f"here/{self._rank}", "")
            raise

    def _wait_for_all(self, store: Any, limit: datetime.timedelta) -> None:
        """Go on with all ranks or with none: torch would wait half an hour for one that gave up."""
        store.set(f"here/{self._rank}", "")
        try:
            store.wait([f"here/{rank}" for rank in range(self.world_size)], limit)
        except RuntimeError:
            if store.compare_set("ends", "", "given up") != b"all here":
                raise
        else:
            if store.compare_set("ends", "", "all here") != b"all here":
                raise RuntimeError("Another rank has given up.")

    def meet(self) -> None:
        """Wait for all other ranks, whatever group the user has."""
        import torch.distributed as dist

        if self.name is None:
            raise no_group()
        dist.barrier(self._users.require())

    def fingerprint(self) -> str | None:
        """Return the group's name and number of collectives; `None` without a group.

        Ranks that were interrupted after different numbers of collectives would take one rank's
        next for the other's last.
        """
        if self.name is None or self._users.standing is None:
            return self.name
        return f"{self.name}:{begun_in(self._users.standing)}"

    def calls(self) -> int:
        """Count the collectives that this rank has begun, also in the user's groups."""
        return sum(map(begun_in, groups()))

    def is_of_programs(self) -> bool:
        """Tell whether programs have made groups beside the pool's."""
        return any(group is not self._users.standing for group in groups())

    def bring_back(self) -> None:
        """Undo a program's `destroy_process_group`."""
        self._users.bring_back()

    def free(self, generation: int, group: str, sent: float) -> None:
        """End every wait for other ranks, also in `torch.distributed.rpc`; see `break_up`.

        An order to break is late if `group` is not the one asked for last, or if another was asked
        for since it was `sent`: orders to meet use another channel. Between telling its address and
        connecting, a rank must not fail for that: torch on other ranks would wait for hours.
        """
        if (group and group != self.asked_for) or 0 < sent < self._asked_at:
            return
        self.break_up(generation)
        if self.name is None:
            end_rpc()

    def leave(self, seconds: float) -> None:
        """Destroy the group, and those of the user; fail if the GPU still works on them then."""
        if self._users.standing is not None:
            self.break_up(self._generation)  # or we would wait for what is under way
            deadline = time.monotonic() + seconds
            for thread in self._aborting.values():
                thread.join(max(0.0, deadline - time.monotonic()))
                if thread.is_alive():
                    raise RuntimeError("The GPU still runs what was launched on it.")
            self._aborting = {}
            self._users.end()
        self.name = None
        self._connections.clear()

    def break_up(self, generation: int) -> None:
        """End every collective that waits, and fail those to come; on any thread.

        `generation` is how often ranks had been replaced when this was ordered; newer groups stay.
        """
        if generation < self._generation:
            return
        self._breaks += 1
        self.name = None
        self._abort()
        self._meeting.break_waits()
        self._guard.end_connecting()
        # The stores' too, also of programs without ours: `new_group` and `init_rpc` wait there.
        stores = {str(self._meeting.port), os.environ.get("MASTER_PORT", "")}
        for connection, sock in connections():
            if connection in self._connections or str(connection[1][1]) in stores:
                with contextlib.suppress(OSError):  # the other end was quicker
                    sock.shutdown(socket.SHUT_RDWR)

    def _abort(self) -> None:
        """Begin to abort all groups on NCCL: it waits in each for the others' work on the GPU."""
        aborting = {group: t for group, t in self._aborting.items() if t.is_alive()}
        for group in groups_on_nccl():
            if group not in aborting:
                thread = threading.Thread(
                    target=_abort, args=(group,), name="NCCL's abort", daemon=True
                )
                thread.start()
                aborting[group] = thread
        self._aborting = aborting


def _abort(group: Any) -> None:
    try:
        group.abort()
    except Exception:  # its GPU may have failed
        _LOG.exception("A process group could not be aborted.")
