"""The kernels that pools belong to, as the server knows them."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from string import Template
from typing import Any

from jupyter_client._version import version_info
from jupyter_core.utils import ensure_async
from tornado import web

from ..common.background_tasks import Tasks
from ..common.errors import DistError
from ..common.processes.kernel_python import python_of_kernelspec, running_kernel
from ..placement.requests.request import PoolRequest
from ..pools.pool_manager import PoolManager
from .base_handlers import StatusHandler

KERNEL_ACTIONS = "https://events.jupyter.org/jupyter_server/kernel_actions/v1"
FILE_ACTIONS = "https://events.jupyter.org/jupyter_server/contents_service/v1"


class KernelPoolHandler(StatusHandler):
    @web.authenticated
    async def get(self, kernel_id: str) -> None:
        """Show the live pool of a kernel of this server, or null."""
        await self.require("read")
        _check_kernel(kernel_id, self.kernel_manager)
        pool = self.manager.for_kernel(kernel_id)
        self.finish({"pool": pool and pool.record.to_json()})


def _check_kernel(kernel_id: str, kernels: Any) -> None:
    if kernel_id not in kernels:
        raise DistError("kernel_not_found", f"This server has no kernel {kernel_id}.")


async def complete_request(
    request: PoolRequest, serverapp: Any, settings: dict[str, Any]
) -> PoolRequest:
    """Fill in the kernel's interpreter, environment and folder, as `%dist_init` would."""
    limit = request.timeout or settings["jupyter_dist_start_timeout"]
    if request.kernel_id is None:
        return replace(request, timeout=limit)
    kernels = serverapp.kernel_manager
    _check_kernel(request.kernel_id, kernels)
    path = (await _notebook_paths(serverapp)).get(request.kernel_id, "")
    if request.base_env is not None:  # from the magics, which may not know a new name
        return replace(request, timeout=limit, name=path or request.name)
    kernel = kernels.get_kernel(request.kernel_id)
    spec = kernel.kernel_spec
    if not request.python and not spec.language.lower().startswith(("python", "ipython")):
        raise DistError(
            "kernel_not_python",
            f"Ranks need a Python kernel, but {spec.display_name} is a {spec.language} kernel.",
            "Choose a Python kernel for the notebook.",
            field="kernel_id",
        )
    pid = _pid(kernel)
    running = await asyncio.to_thread(running_kernel, pid, kernel.connection_file) if pid else None
    environment = running.environment if running else _environment_of(spec)
    python = request.python or (
        running.python
        if running
        else python_of_kernelspec(spec.argv, environment.get("PATH", os.defpath))
    )
    if not python:
        raise DistError(
            "kernel_python_unknown",
            f"It is not known in which Python {spec.display_name} runs: its kernelspec starts "
            f"{spec.argv[0]}.",
            "Start the pool in the notebook, with %dist_init.",
            field="kernel_id",
        )
    root = Path(serverapp.root_dir)
    folder = (root / path).parent if path else root
    return replace(
        request,
        timeout=limit,
        python=python,
        base_env=environment,
        cwd=request.cwd or str(folder if folder.is_dir() else root),
        name=request.name or path,
        kernel_pid=request.kernel_pid or (running.pid if running else pid),
    )


def _environment_of(spec: Any) -> dict[str, str]:
    changes = {name: Template(text).safe_substitute(os.environ) for name, text in spec.env.items()}
    return {"PATH": os.defpath, **os.environ, **changes}


async def _notebook_paths(serverapp: Any) -> dict[str, str]:
    sessions = await ensure_async(serverapp.session_manager.list_sessions())
    return {s["kernel"]["id"]: s["path"] for s in sessions if s["kernel"]}


async def kernel_processes(serverapp: Any) -> dict[int, dict[str, str]]:
    """Return this server's local kernels by pid: ``{kernel_id, name}``, the path as name."""
    kernels = serverapp.kernel_manager
    paths = await _notebook_paths(serverapp)
    found = {}
    for kernel_id in kernels.list_kernel_ids():
        kernel = kernels.get_kernel(kernel_id)
        if pid := _pid(kernel):
            name = paths.get(kernel_id) or kernel.kernel_name
            found[pid] = {"kernel_id": kernel_id, "name": name}
    return found


def _pid(kernel: Any) -> int | None:  # only local provisioners have one
    return getattr(kernel.provisioner, "pid", None)


def follow_kernels(serverapp: Any, manager: PoolManager, tasks: Tasks) -> None:
    """Stop a kernel's pool when the kernel is shut down, but not when it restarts."""

    async def on_action(logger: Any, schema_id: str, data: dict[str, Any]) -> None:
        if data.get("status") != "success":
            return
        if data.get("action") == "shutdown":
            if not _restarts(serverapp.kernel_manager, data["kernel_id"]):
                tasks.add(manager.stop_for_kernel(data["kernel_id"]))
        elif data.get("action") == "restart" and (pool := manager.for_kernel(data["kernel_id"])):
            pool.forget_cells()

    serverapp.event_logger.add_listener(schema_id=KERNEL_ACTIONS, listener=on_action)


def _restarts(kernels: Any, kernel_id: str) -> bool:
    """Tell a restart, which before jupyter_client 8 is reported as a shutdown, by its file."""
    if version_info >= (8,) or kernel_id not in kernels:
        return False
    return Path(kernels.get_kernel(kernel_id).connection_file).exists()


def follow_files(serverapp: Any, manager: PoolManager) -> None:
    """Rename pools with their notebooks and folders."""

    async def on_action(logger: Any, schema_id: str, data: dict[str, Any]) -> None:
        if data.get("action") == "rename":
            old, new = data["source_path"].strip("/"), data["path"].strip("/")
            for pool in list(manager.pools.values()):
                pool.rename(partial(_moved, old, new, serverapp.root_dir.rstrip("/")))

    serverapp.event_logger.add_listener(schema_id=FILE_ACTIONS, listener=on_action)


def _moved(old: str, new: str, root: str, name: str) -> str:
    """Return a notebook's name after a move; kernels use absolute paths."""
    for before, after in ((old, new), (f"{root}/{old}", f"{root}/{new}")):
        if name == before or name.startswith(f"{before}/"):
            return after + name[len(before) :]
    return name
