"""``jdist mcp``: tools for a coding agent on standard input and output, by a Jupyter server.

Each line is a message of the Model Context Protocol; `server.mcp` answers it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import Any

from ..common.errors import DistError
from ..common.own_server import challenge, opener_of
from ..common.patience import patience
from ..common.server_file import SECRET_SCHEME, DiscoveryFile, read_discovery_files
from ..jobs.store.store import Store

_FAILED = -32000
"""JSON-RPC's code for an error of the server."""


def add_mcp_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist mcp``."""
    parser.add_argument(
        "--url", help="of the server; $JUPYTER_TOKEN is its token. By default, yours is found"
    )


def run_mcp(options: argparse.Namespace, _: Store) -> int:
    """Pass messages on until standard input ends."""
    if options.url:
        url = f"{options.url.rstrip('/')}/jupyter-dist/"
        token = os.environ.get("JUPYTER_TOKEN", "")
        bridge = _Bridge(url, f"token {token}", urllib.request.build_opener())
    else:
        server = _find()
        url = f"{server.url.rstrip('/')}/jupyter-dist/"
        bridge = _Bridge(url, f"{SECRET_SCHEME} {server.secret}", opener_of(server))
        bridge.check(server.secret)
    threads = []
    for line in sys.stdin.buffer:
        if line.strip():
            # A cell may take long; others, and its cancellation, come meanwhile.
            threads.append(threading.Thread(target=bridge.forward, args=(line,)))
            threads[-1].start()
            threads = [thread for thread in threads if thread.is_alive()]
    for thread in threads:
        thread.join()
    return 0


def _find() -> DiscoveryFile:
    """Return the server whose folder has the current one, the nearest first; or the only one."""
    servers, here = list(read_discovery_files()), Path.cwd()
    around = [one for one in servers if one.root and here.is_relative_to(one.root)]
    if around:
        return max(around, key=lambda one: len(one.root))
    if len(servers) == 1:
        return servers[0]
    if not servers:
        raise DistError(
            "server_unreachable",
            "No Jupyter server of yours with Jupyter Dist runs on this machine.",
            "Start one: jupyter lab. Or give --url, and the token in JUPYTER_TOKEN.",
        )
    listed = ", ".join(f"{one.url} ({one.root})" for one in servers)
    message = f"Several servers of yours run, and none shows this folder: {listed}."
    raise DistError("bad_option", message, "Choose one with --url.", "url")


class _Bridge:
    def __init__(self, url: str, who: str, opener: urllib.request.OpenerDirector) -> None:
        self._url = url
        self._who = who
        self._opener = opener
        self._writing = threading.Lock()
        self._session = ""
        """It has the agent's name."""

    def check(self, secret: str) -> None:
        """Let the server prove that it wrote its file, before it is told anything."""
        request, is_proof = challenge(self._url, secret)
        with self._opener.open(request, timeout=patience.program) as response:
            if not is_proof(response):
                message = f"Another program listens at {self._url}."
                raise DistError("server_unreachable", message, "Restart the Jupyter server.")

    def forward(self, line: bytes) -> None:
        """Send a message, and print the answer."""
        headers = {"Authorization": self._who, "Content-Type": "application/json"}
        message = _read(line)
        meta = message.get("params", {}).get("_meta", {}) if isinstance(message, dict) else {}
        if version := meta.get("io.modelcontextprotocol/protocolVersion"):
            headers["MCP-Protocol-Version"] = str(version)
        if self._session:
            headers["Mcp-Session-Id"] = self._session
        request = urllib.request.Request(f"{self._url}mcp", line, headers, method="POST")
        try:
            with self._opener.open(request) as response:  # tools have limits of their own
                answer = response.read()
                self._session = response.headers.get("Mcp-Session-Id") or self._session
        except urllib.error.HTTPError as error:
            answer = error.read()
            if b'"jsonrpc"' not in answer:
                answer = _failure(message, f"The server answered: {error.code} {error.reason}.")
        except (OSError, HTTPException) as error:
            answer = _failure(message, f"The Jupyter server does not respond: {error}.")
        if answer.strip():
            with self._writing:
                sys.stdout.buffer.write(answer.replace(b"\n", b"") + b"\n")
                sys.stdout.buffer.flush()


def _read(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:  # which the server says
        return None


def _failure(message: Any, why: str) -> bytes:
    id = message.get("id") if isinstance(message, dict) else None
    if id is None:
        return b""
    told = {"code": _FAILED, "message": why}
    return json.dumps({"jsonrpc": "2.0", "id": id, "error": told}).encode()
