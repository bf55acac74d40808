"""Nobody gets in without leave: each route and method, the WebSocket included."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tornado.websocket import WebSocketHandler

from jupyter_dist_server.common.server_file import SECRET_SCHEME
from jupyter_dist_server.server.mcp.mcp_handler import McpHandler
from jupyter_dist_server.server.page import PageHandler
from jupyter_dist_server.server.routes import ROUTES

from ..server_driver import Server
from .client import UPGRADE, Client
from .openapi import METHODS

AUTHORIZER = """
from jupyter_server.auth import Authorizer

class Permit(Authorizer):
    def is_authorized(self, handler, user, action, resource):
        return not resource.startswith("jupyter_dist") or action in {actions}

c.ServerApp.authorizer_class = Permit
"""
BAD_REQUEST = {"num_ranks": 0, "code": 0}
"""Whoever is let in gets a 400 or 404 for it, and no pool is started."""

OPERATIONS = [
    pytest.param(method.upper(), path, handler, id=name)
    for route, handler in ROUTES
    for path in [re.sub(r"\(\?P<\w+>.*?\)", "none", route).replace("\\.", ".")]
    for method in METHODS
    if method in vars(handler)
    for name in [f"{handler.__name__}-{method}"]
]
every_operation = pytest.mark.parametrize(("method", "path", "handler"), OPERATIONS)


def status(client: Client, method: str, path: str, handler: type[Any]) -> int:
    """Call a route with what it needs to go as far as it is let."""
    if issubclass(handler, WebSocketHandler):
        with client.open(method, path, headers=UPGRADE) as response:
            return response.status
    body = BAD_REQUEST if method == "POST" else None
    answer = client.call(method, path.removeprefix("jupyter-dist/"), body=body)
    return answer.status


def kernel_headers(server: Server) -> dict[str, str]:
    """Return what a kernel of this server sends."""
    return {"Authorization": f"{SECRET_SCHEME} {secret(server)}"}


def secret(server: Server) -> str:
    """Return the secret that the server wrote down for its kernels."""
    (file,) = Path(server.env["JUPYTER_RUNTIME_DIR"]).glob("jupyter-dist-*.json")
    return str(json.loads(file.read_text())["secret"])


def permitting(actions: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Run a server whose authorizer permits some actions on our routes, and all on others."""
    folder = tmp_path_factory.mktemp("authorizer")
    config = folder / "authorizer_config.py"
    config.write_text(AUTHORIZER.format(actions=actions))
    server = Server(folder / "home", folder, f"--config={config}")
    yield server
    server.close()


@pytest.fixture(scope="module")
def denying(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return a server whose authorizer permits nothing of ours."""
    yield from permitting("()", tmp_path_factory)


@pytest.fixture(scope="module")
def read_only(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return a server whose authorizer lets everybody look and nobody act."""
    yield from permitting("('read',)", tmp_path_factory)


@every_operation
@pytest.mark.parametrize(
    "credentials",
    [
        {},
        {"Authorization": "token wrong"},
        {"Authorization": f"{SECRET_SCHEME} wrong"},
        {"Authorization": f"{SECRET_SCHEME} "},
        {"Authorization": SECRET_SCHEME},
        {"Cookie": "username-127-0-0-1=forged; _xsrf=1", "X-XSRFToken": "1"},
    ],
    ids=["nothing", "token", "secret", "empty-secret", "no-secret", "cookie"],
)
def test_a_stranger_is_refused(
    server: Server, credentials: dict[str, str], method: str, path: str, handler: type[Any]
) -> None:
    expected = 302 if handler is PageHandler else 403  # people are sent to the login
    assert status(Client(server, credentials), method, path, handler) == expected


def test_jupyter_server_finds_each_method_authenticated(tmp_path: Path) -> None:
    """It warns of methods without a decorator where unauthenticated access is off."""
    option = "--ServerApp.allow_unauthenticated_access=False"
    server = Server(tmp_path / "home", tmp_path, option)
    server.close()
    assert not [line for line in server.log if "registered for /jupyter-dist" in line]


@every_operation
def test_the_owner_is_let_in(client: Client, method: str, path: str, handler: type[Any]) -> None:
    """Otherwise a refusal would prove nothing."""
    assert status(client, method, path, handler) in (101, 200, 400, 404)


@every_operation
def test_a_kernel_is_let_in(server: Server, method: str, path: str, handler: type[Any]) -> None:
    client = Client(server, kernel_headers(server))
    assert status(client, method, path, handler) in (101, 200, 400, 404)


@every_operation
def test_a_user_whom_the_authorizer_denies_is_refused(
    denying: Server, method: str, path: str, handler: type[Any]
) -> None:
    assert status(Client(denying), method, path, handler) == 403


@every_operation
def test_a_user_who_may_only_read_can_look_and_not_act(
    read_only: Server, method: str, path: str, handler: type[Any]
) -> None:
    found = status(Client(read_only), method, path, handler)
    looks = method == "GET" or handler is McpHandler  # its tools are asked about one by one
    assert found in ((101, 200, 404) if looks else (403,))


def test_agents_have_the_tools_that_their_user_may_use(read_only: Server) -> None:
    def ask(method: str, **params: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return Client(read_only).raw("POST", "jupyter-dist/mcp", body=body).body

    tools = {tool["name"] for tool in ask("tools/list")["result"]["tools"]}
    assert {"machine", "pool", "job_log"} <= tools
    assert not tools & {"start_pool", "run_on_ranks", "submit_job", "cancel_job"}
    said = ask("tools/call", name="start_pool", arguments={})
    assert said["error"]["message"] == "There is no tool start_pool."


def test_the_denying_authorizer_is_about_us_alone(denying: Server) -> None:
    assert Client(denying).raw("GET", "api/contents").status == 200


def test_the_authorizer_is_not_asked_about_kernels(denying: Server) -> None:
    assert Client(denying, kernel_headers(denying)).call("GET", "pools").status == 200


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "api/contents", None),
        ("GET", "api/kernels", None),
        ("POST", "api/kernels", {"name": "python3"}),
        ("GET", "api/sessions", None),
        ("POST", "api/shutdown", {}),
        ("GET", "api/terminals", None),
    ],
)
def test_the_secret_of_kernels_opens_nothing_else(
    server: Server, method: str, path: str, body: Any
) -> None:
    assert Client(server, kernel_headers(server)).raw(method, path, body=body).status == 403


def test_the_secret_of_one_server_does_not_open_another(server: Server, denying: Server) -> None:
    assert Client(server, kernel_headers(denying)).call("GET", "pools").status == 403


@pytest.fixture
def browser(server: Server) -> Client:
    """Return a caller who logged in with a cookie, as a browser does."""
    anonymous = Client(server, {})
    with anonymous.open("GET", f"lab?token={server.token}") as response:
        cookies = [c.partition(";")[0] for c in response.headers.get_all("Set-Cookie") or []]
    return Client(server, {"Cookie": "; ".join(c for c in cookies if c.startswith("username-"))})


def test_a_cookie_lets_a_browser_read(browser: Client) -> None:
    assert browser.call("GET", "pools").status == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [(p.values[0], p.values[1]) for p in OPERATIONS if p.values[0] != "GET"],
)
def test_a_browser_cannot_act_for_another_page(browser: Client, method: str, path: str) -> None:
    """A form on a foreign page sends the cookie, and not the XSRF token."""
    route = path.removeprefix("jupyter-dist/")
    answer = browser.call(method, route, body=BAD_REQUEST)
    assert answer.status == 403
    assert "_xsrf" in answer.body["message"]


def test_a_browser_acts_with_its_xsrf_token(browser: Client) -> None:
    with browser.open("GET", "lab") as response:
        (xsrf,) = re.findall(r"_xsrf=([^;]+)", str(response.headers))
    browser.headers |= {"Cookie": f"{browser.headers['Cookie']}; _xsrf={xsrf}"}
    answer = browser.call("POST", "pools", body=BAD_REQUEST, headers={"X-XSRFToken": xsrf})
    assert answer.status == 400


def test_a_foreign_page_cannot_open_the_stream(browser: Client) -> None:
    def opened(origin: str) -> int:
        headers = UPGRADE | {"Origin": origin}
        with browser.open("GET", "jupyter-dist/stream", headers=headers) as response:
            return response.status

    assert opened(f"http://127.0.0.1:{browser.url.port}") == 101
    assert opened("http://evil.example") == 403
