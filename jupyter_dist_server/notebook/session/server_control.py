"""The Jupyter server that runs this kernel: found through a private file, used by REST."""

from __future__ import annotations

import contextlib
import json
import math
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.client import HTTPException
from typing import Any, TypeVar

import msgspec

from ...common.errors import DistError
from ...common.own_server import challenge, opener_of
from ...common.patience import patience
from ...common.processes.why_silent import PHRASES, why_silent_blocking
from ...common.protocol.pool_record import PoolRecord
from ...common.protocol.ranks.profile_messages import LanesRequest, RankLanes
from ...common.server_file import SECRET_SCHEME, DiscoveryFile, read_discovery_files
from ...jobs.variables import JOB
from ...placement.requests.request import PoolRequest
from .pool_control import kernel_id

T = TypeVar("T")


def find_server(silent: object = None) -> ServerControl | None:
    """Return the server that runs this kernel, if it has our extension.

    One that is known to be `silent` is not asked again.
    """
    kernel = kernel_id()
    if not kernel or JOB in os.environ:  # a pool in a job uses its GPUs, and ends with it
        return None
    for file in read_discovery_files():
        if isinstance(silent, ServerControl) and silent.is_at(file):
            continue
        server = ServerControl(file, kernel)
        try:
            server.check()
            server.find()
        except DistError:
            continue  # it is gone, or not the server of this kernel
        return server
    return None


class ServerControl:
    """Pools owned by the Jupyter server; see `LocalControl` for what the methods do."""

    def __init__(self, server: DiscoveryFile, kernel: str) -> None:
        self._url = server.url.rstrip("/") + "/jupyter-dist/"
        self._secret = server.secret
        self._process = server.process
        self._kernel = kernel
        self._opener = opener_of(server)

    def is_at(self, file: DiscoveryFile) -> bool:
        """Tell whether this is the server that wrote a file."""
        return self._secret == file.secret

    def check(self) -> None:
        """Let the server prove that it knows the secret, before we tell it anything."""
        request, is_proof = challenge(self._url, self._secret)
        with self._open(request, _quick()) as response:
            is_proven = is_proof(response)
        if not is_proven:
            raise DistError(
                "server_unreachable",
                "Another program listens on the port of this kernel's Jupyter server.",
                "Open the notebook in a running Jupyter server, and restart the kernel.",
            )

    def _call(
        self, method: str, path: str, body: Any = None, timeout: float | None = None
    ) -> bytes:
        request = urllib.request.Request(
            self._url + path,
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={"Authorization": f"{SECRET_SCHEME} {self._secret}"},
        )
        with self._open(request, timeout or patience.program) as response:
            answer: bytes = response.read()
            return answer

    def _record(
        self, method: str, path: str, body: Any = None, timeout: float | None = None
    ) -> PoolRecord:
        return _read(self._call(method, path, body, timeout), PoolRecord)

    @contextlib.contextmanager
    def _open(self, request: urllib.request.Request, timeout: float) -> Iterator[Any]:
        """Send a request, and turn errors into `DistError`."""
        try:
            with self._opener.open(request, timeout=timeout) as response:
                yield response
        except urllib.error.HTTPError as error:
            raise _translate(error) from error
        except (OSError, HTTPException, ValueError) as error:
            why = str(error)
            if isinstance(getattr(error, "reason", error), TimeoutError):
                why = f"it is {PHRASES[why_silent_blocking(self._process)]}"
            raise DistError(
                "server_unreachable",
                f"The Jupyter server (pid {self._process.pid}) does not respond: {why}.",
                "Check that it is running. A busy server does not affect the ranks.",
            ) from error

    def find(self) -> PoolRecord | None:
        """Return the live pool of this kernel."""
        path = f"kernels/{self._kernel}/pool"
        return _read(self._call("GET", path, timeout=_quick()), _Found).pool

    def start(self, request: PoolRequest) -> PoolRecord:
        """Begin to start a pool for this kernel."""
        self.check()  # the request contains the kernel's environment
        body = request.to_json() | {"kernel_id": self._kernel}
        # The driver may have to be loaded first.
        return self._record("POST", "pools", body, 2 * patience.driver)

    def wait(self, record: PoolRecord, seconds: float) -> PoolRecord:
        """Wait for news of a pool."""
        query = f"?after={record.version}&wait={seconds:g}"
        return self._record("GET", f"pools/{record.id}{query}", timeout=seconds + patience.program)

    def stop(self, pool_id: str) -> None:
        """Stop a pool."""
        limit = 2 * patience.end + patience.program  # its agents, and what Slurm has started
        self._call("DELETE", f"pools/{pool_id}?wait=1", timeout=limit)

    def restart(self, pool_id: str, ranks: list[int] | None) -> PoolRecord:
        """Replace ranks."""
        body = {"without_lost_nodes": True} if ranks is None else {"ranks": ranks}
        return self._record("POST", f"pools/{pool_id}/restart", body)

    def resize(self, pool_id: str, num_ranks: int, wait: float | None) -> PoolRecord:
        """Begin to have more or fewer ranks."""
        body = {"num_ranks": num_ranks, "wait": True if wait == math.inf else wait}
        return self._record("POST", f"pools/{pool_id}/resize", body)

    def park(self, pool_id: str) -> PoolRecord:
        """Begin to park a pool, or end its wait to be resumed."""
        return self._record("POST", f"pools/{pool_id}/park", {})

    def resume(self, pool_id: str) -> PoolRecord:
        """Begin to bring a parked pool back to its GPUs."""
        return self._record("POST", f"pools/{pool_id}/resume", {})

    def extend(self, pool_id: str, seconds: float | None) -> PoolRecord:
        """Let a pool run longer."""
        return self._record("POST", f"pools/{pool_id}/extend", {"time": seconds})

    def tell_lanes(self, pool_id: str, told: list[RankLanes]) -> None:
        """Have what ranks did in a profiled cell shown in the timeline."""
        body = msgspec.to_builtins(LanesRequest(told))
        self._call("POST", f"pools/{pool_id}/lanes", body, _quick())

    def forget(self) -> None:
        """Drop the server's zygotes."""
        self._call("DELETE", "zygotes")


class _Found(msgspec.Struct):
    pool: PoolRecord | None


def _quick() -> float:
    """Return the limit for what a server knows; one that does not answer counts as dead."""
    return 2 * patience.busy_answer


def _read(answer: bytes, form: type[T]) -> T:
    try:
        return msgspec.json.decode(answer, type=form)
    except ValueError as error:
        raise DistError(
            "server_error",
            f"The Jupyter server's answer is malformed: {error}.",
            "Install the same version of jupyter-dist-server for the kernel and the server.",
        ) from error


def _translate(error: urllib.error.HTTPError) -> DistError:
    try:
        body = json.load(error)
        return DistError(body["code"], body["message"], body["hint"], body.get("field"))
    except (ValueError, KeyError):
        return DistError(
            "server_error",
            f"The Jupyter server refused the request: {error.code} {error.reason}.",
            "See its log.",
        )
