"""The error type for users: what happened, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class DistError(Exception):
    """Something a user can act on.

    Parameters
    ----------
    code : str
        A stable machine-readable name, such as ``"pool_exists"``.
    message : str
        What happened, in one plain sentence.
    hint : str
        What to do next; empty when there is nothing to add.
    field : str or None
        The field of a request that is at fault.
    """

    def __init__(self, code: str, message: str, hint: str = "", field: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.field = field

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message

    def _render_traceback_(self) -> list[str]:
        # IPython shows these lines in place of a traceback through our own code.
        return str(self).splitlines()

    def to_json(self) -> dict[str, Any]:
        """Return the body of a REST error."""
        body = {"code": self.code, "message": self.message, "hint": self.hint}
        return body | {"field": self.field} if self.field is not None else body


@contextmanager
def reading(field: str) -> Iterator[None]:
    """Name `field` in errors that are raised here, and name no field of the request."""
    try:
        yield
    except DistError as error:
        error.field = error.field or field
        raise


def message_of(error: BaseException) -> str:
    """Return an error's message; if its class fails to make one, what Python shows instead."""
    try:
        return str(error)
    except Exception:
        return "<exception str() failed>"
