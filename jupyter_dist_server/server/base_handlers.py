"""Authorization, request bodies and errors of all handlers."""

from __future__ import annotations

import asyncio
import hmac
import json
from typing import Any

from jupyter_core.utils import ensure_async
from jupyter_server.auth import User
from jupyter_server.base.handlers import APIHandler, JupyterHandler
from tornado import web

from ..common.errors import DistError
from ..common.server_file import CHALLENGE, PROOF, SECRET_SCHEME, proof
from ..pools.pool_manager import PoolManager

AUTH_RESOURCE = "jupyter_dist"
"""For Jupyter's authorizer, with the actions ``read`` and ``execute``."""

NDJSON = "application/x-ndjson"
MAX_BODY = 1 << 20
"""Bytes of a request's body; reading more JSON would delay other requests."""
MAX_DEPTH = 32
"""Lists and objects within each other."""

_STATUS = {
    404: ("pool_not_found", "kernel_not_found", "unknown_job"),
    409: (
        *("pool_exists", "gpus_taken", "pool_not_running", "rank_busy", "rank_dead"),
        *(
            "job_not_running",
            "no_ranks",
            "process_ended",
            "cannot_park",
            "not_resized",
            "pool_parked",
            "not_resumed",
        ),
    ),
    503: (
        *("gpus_unknown", "leases_unusable", "queue_unusable", "queue_newer"),
        *("pool_unreachable", "agent_silent", "rank_silent"),
    ),
}
"""By HTTP status, the codes of errors; all others are 400."""


def read_json(text: str | bytes) -> Any:
    """Decode JSON; `ValueError` if it is invalid or too deep."""
    try:
        content = json.loads(text)
        is_deep = _is_deeper(content, MAX_DEPTH)
    except RecursionError:
        is_deep = True
    if is_deep:
        raise ValueError(f"it has more than {MAX_DEPTH} levels of nesting")
    return content


def _is_deeper(content: Any, depth: int) -> bool:
    if isinstance(content, dict):
        content = list(content.values())
    if not isinstance(content, list):
        return False
    return depth == 0 or any(_is_deeper(part, depth - 1) for part in content)


class KernelAuthMixin(JupyterHandler):
    """Let in this server's own kernels, which know the secret of the discovery file.

    Only the server's user can read the file, so the authorizer is not asked about kernels.
    """

    auth_resource = AUTH_RESOURCE

    @property
    def manager(self) -> PoolManager:
        """The pools of this server."""
        manager: PoolManager = self.settings["jupyter_dist_manager"]
        return manager

    @property
    def is_kernel(self) -> bool:
        """Whether the caller is one of our kernels."""
        scheme, _, secret = self.request.headers.get("Authorization", "").partition(" ")
        expected: str = self.settings["jupyter_dist_secret"]
        return scheme == SECRET_SCHEME and hmac.compare_digest(secret.encode(), expected.encode())

    def set_default_headers(self) -> None:
        """Prove to a kernel that this server has written the secret."""
        super().set_default_headers()
        if challenge := self.request.headers.get(CHALLENGE):
            self.set_header(PROOF, proof(self.settings["jupyter_dist_secret"], challenge))

    async def prepare(self, **options: Any) -> None:
        """Authenticate."""
        if not self.is_kernel:
            await super().prepare(**options)
        elif self.check_host():
            self.current_user = self._jupyter_current_user = User("jupyter-dist-kernel")
        else:
            raise web.HTTPError(403)

    async def require(self, action: str) -> None:
        """Refuse unauthorized callers with 403."""
        if not await self.may(action, self.auth_resource):
            raise web.HTTPError(403, f"You are not authorized to {action} {self.auth_resource}.")

    async def may(self, action: str, resource: str) -> bool:
        """Tell whether a known caller is authorized."""
        return self.is_kernel or bool(
            await ensure_async(
                self.authorizer.is_authorized(self, self.current_user, action, resource)
            )
        )

    def write_error(self, status_code: int, **options: Any) -> None:
        """Answer with ``{code, message, hint}``."""
        error = (options.get("exc_info") or (None, None, None))[1]
        if isinstance(error, DistError):
            self.set_status(next((s for s, codes in _STATUS.items() if error.code in codes), 400))
            body = error.to_json()
        else:
            message = getattr(error, "log_message", None) or self._reason
            body = {"code": f"http_{status_code}", "message": message, "hint": ""}
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps(body))

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        """Log all but the mistakes of callers."""
        if not isinstance(value, DistError):
            super().log_exception(typ, value, tb)


@web.stream_request_body
class DistHandler(KernelAuthMixin, APIHandler):
    """A REST handler; it authenticates before it reads a body, and keeps at most `MAX_BODY`."""

    async def prepare(self, **options: Any) -> None:
        """Authenticate, before the body comes."""
        self.gone = asyncio.Event()  # set when the client leaves before the response has ended
        self._received = bytearray()
        await super().prepare(**options)
        length = self.request.headers.get("Content-Length", "")
        if length.isdecimal() and float(length) > MAX_BODY:
            raise _too_long()

    def on_connection_close(self) -> None:
        """Wake up a response that waits for news."""
        super().on_connection_close()
        self.gone.set()

    async def send(self, piece: str) -> None:
        """Send a piece of the response; `StreamClosedError` says that the client has left."""
        self.write(piece)
        await self.flush()
        await asyncio.sleep(0)  # `flush` does not wait for a fast reader

    def data_received(self, chunk: bytes) -> None:
        """Keep a piece of the body; of one that is too long, only enough to tell."""
        if len(self._received) <= MAX_BODY:
            self._received += chunk

    def body(self, fields: tuple[str, ...] | None = None) -> dict[str, Any]:
        """Return the JSON object of the body, empty for an empty body.

        `fields` are the valid fields; `None` if the caller checks them.
        """
        if len(self._received) > MAX_BODY:
            raise _too_long()
        try:
            content = read_json(bytes(self._received) or b"{}")
        except ValueError as error:
            raise DistError(
                "bad_request", f"The body is not valid JSON: {error}.", field="body"
            ) from error
        if not isinstance(content, dict):
            raise DistError("bad_request", "The body must be a JSON object.", field="body")
        if fields is not None and (unknown := sorted(set(content) - set(fields))):
            hint = f"Valid fields: {', '.join(fields)}."
            message = f"“{unknown[0]}” is not a field of this request."
            raise DistError("bad_request", message, hint, field=unknown[0])
        return content

    def seconds(self, name: str, most: float) -> float:
        """Return a parameter in seconds, from 0 to `most`."""
        try:
            return min(max(float(self.get_query_argument(name, "0")), 0.0), most)
        except ValueError:
            message = f"{name} must be a number of seconds."
            raise DistError("bad_request", message, field=name) from None


class StatusHandler(DistHandler):
    """A handler whose reads do not count as activity, or an idle server would never be culled."""

    @property
    def _track_activity(self) -> bool:  # type: ignore[override]
        return bool(self.request.method != "GET")


def _too_long() -> web.HTTPError:
    return web.HTTPError(413, f"A request body is limited to {MAX_BODY:,} bytes.")
