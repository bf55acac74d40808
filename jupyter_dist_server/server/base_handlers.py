"""Authorization and errors of all handlers."""

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
from .request_bodies import Body, read_json

AUTH_RESOURCE = "jupyter_dist"
"""What Jupyter's authorizer is asked about, with the actions ``read`` and ``execute``."""

NDJSON = "application/x-ndjson"

_STATUS = {
    "pool_not_found": 404,
    "kernel_not_found": 404,
    "unknown_job": 404,
    "pool_exists": 409,
    "gpus_taken": 409,
    "pool_not_running": 409,
    "rank_busy": 409,
    "rank_dead": 409,
    "gpus_unknown": 503,
    "pool_unreachable": 503,
    "agent_silent": 503,
    "rank_silent": 503,
    "leases_unusable": 503,
    "queue_unusable": 503,
    "queue_newer": 503,
}


class KernelAuthMixin(JupyterHandler):
    """Let in this server's own kernels, which know the secret of the discovery file.

    The file is readable by its owner only, so whoever knows the secret runs as the server's user;
    the authorizer, which knows Jupyter's users, is not asked about them.
    """

    auth_resource = AUTH_RESOURCE

    @property
    def manager(self) -> PoolManager:
        """All pools of this server."""
        manager: PoolManager = self.settings["jupyter_dist_manager"]
        return manager

    @property
    def is_kernel(self) -> bool:
        """Whether the caller knows our secret."""
        scheme, _, secret = self.request.headers.get("Authorization", "").partition(" ")
        expected: str = self.settings["jupyter_dist_secret"]
        return scheme == SECRET_SCHEME and hmac.compare_digest(secret.encode(), expected.encode())

    def set_default_headers(self) -> None:
        """Show a kernel that asks for it that we are the server which has written the secret."""
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
        """Refuse callers who are not known, or may not do this.

        Raises
        ------
        tornado.web.HTTPError
            403.
        """
        user = self.current_user
        if user is None:
            raise web.HTTPError(403, "Log in first.")
        if not await self.may(action, self.auth_resource):
            raise web.HTTPError(403, f"You are not authorized to {action} {self.auth_resource}.")

    async def may(self, action: str, resource: str) -> bool:
        """Tell whether the caller, who is known, may do this."""
        return self.is_kernel or bool(
            await ensure_async(
                self.authorizer.is_authorized(self, self.current_user, action, resource)
            )
        )

    def write_error(self, status_code: int, **options: Any) -> None:
        """Answer with ``{code, message, hint}``."""
        error = (options.get("exc_info") or (None, None, None))[1]
        if isinstance(error, DistError):
            self.set_status(_STATUS.get(error.code, 400))
            body = error.to_json()
        else:
            message = getattr(error, "log_message", None) or self._reason
            body = {"code": f"http_{status_code}", "message": message, "hint": ""}
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps(body))

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        """Keep a user's mistake out of the server's log; everything else goes there."""
        if not isinstance(value, DistError):
            super().log_exception(typ, value, tb)


@web.stream_request_body
class DistHandler(KernelAuthMixin, APIHandler):
    """A REST handler of ours; it reads a body only of who may call, and no more than `MAX_BODY`."""

    async def prepare(self, **options: Any) -> None:
        """Authenticate, before the body comes."""
        self.gone = asyncio.Event()  # set when the caller leaves before the answer has ended
        await super().prepare(**options)
        self._body = Body(self.request)

    def on_connection_close(self) -> None:
        """Wake up an answer that waits for something to say: nobody listens any more."""
        super().on_connection_close()
        self.gone.set()

    def data_received(self, chunk: bytes) -> None:
        """Take in a piece of the body."""
        self._body.add(chunk)

    def body(self, fields: tuple[str, ...] | None = None) -> dict[str, Any]:
        """Return the JSON object that was sent; an empty body is an empty object.

        Parameters
        ----------
        fields : tuple of str or None
            What it may contain; `None` if somebody else checks that.

        Raises
        ------
        DistError
            If it is something else.
        """
        try:
            content = read_json(self._body.content() or b"{}")
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


class StatusHandler(DistHandler):
    """A handler whose reads do not count as activity, or an idle server would never be culled."""

    @property
    def _track_activity(self) -> bool:  # type: ignore[override]
        return bool(self.request.method != "GET")
