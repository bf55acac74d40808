"""The magics that start, show, interrupt, restart and stop a pool."""

from __future__ import annotations

import os

from IPython.core.error import UsageError
from IPython.core.magic import line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments

from ...common.units import count_ranks, read_limit
from ...placement.requests.request import PoolRequest
from ...pools.discovery import find_pools, pools_of_other_versions
from ..custom_placement import Place, custom_map
from ..reuse_pool import can_reuse
from .base import DistMagics
from .option_parser import (
    no_options,
    parse,
    plain_usage,
    read_bytes,
    read_gpu_ids,
    read_map,
    read_node_map,
    read_performance,
    read_variable,
    read_wait,
)
from .reports.pool_status import NEVER_RUN, pools_table, with_progress


@magics_class
class PoolMagics(DistMagics):
    """Ranks for this notebook."""

    @plain_usage
    @magic_arguments()
    @argument(
        "-n",
        "--num-ranks",
        "--num-processes",
        "--ranks",
        type=int,
        help="number of ranks; default: one per free GPU, or 2 on a machine without GPUs",
    )
    @argument(
        "--nodes",
        type=int,
        help="number of nodes; default: the notebook's node only; all with --engine slurm or ray",
    )
    @argument(
        "--engine",
        help="what starts ranks on other nodes: slurm, ray or local; default: the one we are in",
    )
    @argument("--ranks-per-node", type=int, help="number of ranks on each node")
    @argument(
        "--python",
        dest="node_python",
        metavar="PATH",
        help="Python of the other nodes; default: at the same path as here",
    )
    @argument(
        "-g",
        "--gpu-ids",
        type=read_gpu_ids,
        help="GPUs for the ranks: indices such as 0,3, or UUIDs",
    )
    @argument(
        "--placement",
        help="cycle (default): free GPUs in order; free-memory or performance: the best first",
    )
    @argument(
        "--min-free-memory",
        type=read_bytes,
        help="use only GPUs with this much free memory, such as 20GiB",
    )
    @argument(
        "--performance",
        type=read_performance,
        help="scores of GPUs, such as 0=100,3=110; only these are used, the best first",
    )
    @argument(
        "--map",
        help="GPU of each rank, or cpu, such as 0:3,1:0,2:cpu; node and GPU: n1:0,n1:1,n2:0",
    )
    @argument(
        "--min-ranks",
        type=int,
        metavar="K",
        help="start with K or more ranks if fewer than -n GPUs are free",
    )
    @argument(
        "--cpu-ranks",
        type=int,
        metavar="K",
        help="the last K of the ranks run on the CPU, although there are GPUs",
    )
    @argument(
        "--one-rank-per-gpu",
        "--exclusive",
        action="store_true",
        help="refuse to start if two ranks would share a GPU",
    )
    @argument(
        "--oversubscribe",
        "--share",
        action="store_true",
        help="let other pools with this option lease the same GPUs",
    )
    @argument(
        "--force", action="store_true", help="use GPUs even if they are in use without a lease"
    )
    @argument(
        "--wait",
        nargs="?",
        const=True,
        type=read_wait,
        metavar="S",
        help="wait for GPUs in use, at most this many seconds",
    )
    @argument(
        "--time",
        dest="time_limit",
        type=read_limit,
        metavar="T",
        help="time limit of the pool: 2:00:00, 30m, or minutes",
    )
    @argument(
        "--idle-limit",
        type=read_limit,
        metavar="T",
        help="stop the pool if no cell has run for this long",
    )
    @argument(
        "--park-after",
        type=read_limit,
        metavar="T",
        help="park the pool if no cell has run for this long and somebody waits for its GPUs",
    )
    @argument(
        "--backend",
        help=(
            "gloo, nccl, cpu:gloo,cuda:nccl or none; default: cpu:gloo,cuda:nccl if each rank has "
            "its own GPU, gloo otherwise"
        ),
    )
    @argument(
        "--env",
        action="append",
        type=read_variable,
        default=[],
        help="environment variable of the ranks, K=V; can be repeated",
    )
    @argument(
        "--check",
        action="store_true",
        help="have torch compare each collective on all ranks: a mismatch is an error, not a hang",
    )
    @argument("--timeout", type=float, help="time limit of the start in seconds; default: 120")
    @argument("--start-method", help="fork (default) or spawn")
    @argument("-a", "--master-addr", default="localhost", help="for nbdistributed: only localhost")
    @line_magic
    def dist_init(self, line: str) -> None:
        """Start a pool of ranks for this notebook, or use its running pool if that matches.

        Examples::

            %dist_init
            %dist_init -n 4
            %dist_init --num-ranks 2 --gpu-ids 0,3
            %dist_init -n 4 --cpu-ranks 2
            %dist_init -n 2 --min-free-memory 20GiB --wait 600
            %dist_init -n 2 --time 2:00:00 --idle-limit 30m
            %dist_init -n 2 --park-after 20m
            %dist_init --nodes 2 --ranks-per-node 4
            %dist_init -n 2 --backend gloo --env NCCL_DEBUG=INFO --timeout 60
        """
        asked = vars(parse(self.dist_init, line))
        if (address := asked.pop("master_addr")) not in ("localhost", "127.0.0.1"):
            raise UsageError(
                f"--master-addr must be localhost, not {address}; "
                "for ranks on several machines, use --nodes"
            )
        if (text := asked["map"]) is not None:
            asked["node_map"] = read_node_map(text)
            asked["map"] = None if asked["node_map"] else read_map(text)
        asked["env"] = dict(asked["env"])
        request = PoolRequest.from_json(asked)
        running = self.pool.living()
        if running and can_reuse(request, running):
            ranks = count_ranks(running.world_size)
            print(f"This notebook's pool of {ranks} is already running ({running.backend}).")
            return
        if request.park_after is not None:
            print(NEVER_RUN)
        self.start(request)

    def start(self, request: PoolRequest, place: Place | None = None) -> None:
        """Start a pool, and show its progress; `place` chooses the GPUs, see `custom_map`."""
        if place:
            request = self.pool.loop.run(custom_map(place, request))
        with_progress(self.shell, lambda progress: self.pool.start(request, progress))
        if variables := ", ".join(request.env):
            self.pool.ran.note(
                self.pool.require()[0],
                f"The pool was started with --env {variables}: set these variables for torchrun.",
            )

    @plain_usage
    @magic_arguments()
    @argument("pool", nargs="?", help="ID of the pool; default: your only other pool")
    @line_magic
    def dist_attach(self, line: str) -> None:
        """Use a pool that another notebook has started.

        Examples::

            %dist_attach
            %dist_attach p-1a2b3c4d
        """
        chosen = parse(self.dist_attach, line).pool
        if chosen is None:
            ours = os.getpid()
            found = find_pools()
            others = [one for one in found if all(who.pid != ours for who in one.kernels)]
            if len(others) != 1:
                print(pools_table(others, pools_of_other_versions()))
                return
            chosen = others[0].id
        record = self.pool.attach_to(chosen, lambda _: None)
        print(f"Attached to pool {record.id} of {count_ranks(record.world_size)}.")

    @plain_usage
    @line_magic
    def dist_shutdown(self, line: str) -> None:
        """End the pool and all its processes; only detach from a pool of another notebook.

        Examples::

            %dist_shutdown
        """
        no_options("dist_shutdown", line)
        record, stopped = self.pool.stop()
        self.pool.all_cells = False
        if stopped:
            print(f"Stopped {count_ranks(record.world_size)}.")
        else:
            print(f"Detached from pool {record.id}; another notebook still uses it.")

    @plain_usage
    @magic_arguments()
    @argument("-n", "--nuclear", action="store_true", help="for nbdistributed: no effect")
    @line_magic
    def dist_reset(self, line: str) -> None:
        """End the pool, if there is one, and clear what this extension keeps in the kernel.

        Examples::

            %dist_reset
        """
        parse(self.dist_reset, line)
        self.pool.all_cells = False
        self.pool.ran.clear()
        self.pool.reset()
        print("Reset complete. Start a new pool with %dist_init.")
