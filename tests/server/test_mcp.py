"""Tools for agents: the protocol, the tools, and a whole run as an agent would do it."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from ..bad_fields import BAD_FIELDS
from ..jobs.queue_driver import JDIST
from ..server_driver import Server
from ..waiting import PATIENCE, wait_for
from .client import Client
from .stream import connect, read, read_until

NUMBERS = itertools.count(1)
META = "io.modelcontextprotocol/"
CAN_ASK: dict[str, Any] = {"elicitation": {"form": {}}}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


def send(client: Client, method: str, params: Any = None, **more: Any) -> Any:
    body = {"jsonrpc": "2.0", "id": next(NUMBERS), "method": method, "params": params or {}}
    return client.raw("POST", "jupyter-dist/mcp", body=body | more).body


def use(client: Client, tool: str, **given: Any) -> str:
    """Call a tool that goes well; return its text."""
    meta = {"_meta": given.pop("_meta")} if "_meta" in given else {}
    answer = send(client, "tools/call", {"name": tool, "arguments": given} | meta)
    assert "result" in answer, answer
    result = answer["result"]
    assert not result["isError"], result
    text: str = result["content"][0]["text"]
    return text


def fails(client: Client, tool: str, **given: Any) -> str:
    """Call a tool that fails; return what it says."""
    result = send(client, "tools/call", {"name": tool, "arguments": given})["result"]
    assert result["isError"]
    text: str = result["content"][0]["text"]
    return text


@pytest.mark.parametrize(
    "version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "1999-01-01"]
)
def test_the_handshake(client: Client, version: str) -> None:
    answer = send(client, "initialize", {"protocolVersion": version})["result"]
    assert answer["protocolVersion"] == (version if version[:2] == "20" else "2025-11-25")
    assert answer["serverInfo"]["name"] == "jupyter-dist"
    assert send(client, "ping")["result"] == {}
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    said = client.raw("POST", "jupyter-dist/mcp", body=note)
    assert (said.status, said.body) == (202, b"")


def test_discovery_without_a_session(client: Client) -> None:
    found = send(client, "server/discover")["result"]
    assert found["supportedVersions"] == ["2026-07-28"]
    tools = send(client, "tools/list")["result"]["tools"]
    assert len(tools) == len({tool["name"] for tool in tools}) == 19
    careful = {tool["name"] for tool in tools if "version" in tool["inputSchema"]["required"]}
    assert careful == {"restart_ranks", "kill_ranks", "stop_pool", "cancel_job"}
    for tool in tools:
        assert tool["inputSchema"]["additionalProperties"] is False
        assert set(tool["inputSchema"]["required"]) <= tool["inputSchema"]["properties"].keys()


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32600),
        (b"[]", -32600),
        ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, -32600),
        ({"jsonrpc": "2.0", "id": True, "method": "ping"}, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": "no"}, -32601),
        ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": 3}}, -32602),
    ],
)
def test_what_is_no_message_is_refused(client: Client, body: Any, code: int) -> None:
    said = client.raw("POST", "jupyter-dist/mcp", body=body)
    assert (said.status, said.body["error"]["code"]) == (200, code)


@pytest.mark.parametrize(
    ("tool", "given", "words"),
    [
        ("pool", {}, "pool needs pool."),
        ("pool", {"pool": 3}, "pool must be of the type string."),
        ("pool", {"pool": "../gpus"}, "“../gpus” is no pool."),
        ("pools", {"x": 1}, "pools has no x. It has: none."),
        ("run_on_ranks", {"pool": "p", "code": "1", "timeout": True}, "must be of the type number"),
    ],
)
def test_wrong_arguments_are_refused(client: Client, tool: str, given: Any, words: str) -> None:
    said = send(client, "tools/call", {"name": tool, "arguments": given})
    assert said["error"]["code"] == -32602 and words in said["error"]["message"]


RANKS: list[Any] = [[10**400], [None], ["0"], [{}]]
COMMANDS: list[Any] = [[], [1], ["\0"], ["\ud800"], ["x"] * 10**4]
HOSTILE: dict[str, list[Any]] = {
    "start_pool": [{name: value} for name, values in BAD_FIELDS.items() for value in values],
    "pool": [{"pool": id} for id in ("ü", "٣", "p" * 100_000, "\0", "\ud800", "", "-")],
    "job_log": [{"job": job} for job in ("ü", "٣", "1" * 5000, "../1")],
    "interrupt": [{"pool": "p-0", "ranks": ranks} for ranks in RANKS],
    "cell_output": [{"run": run, "rank": 10**400} for run in ("", "\ud800", "run-1")],
    "plan_job": [{"command": command} for command in COMMANDS],
    "run_on_ranks": [{"pool": "p-0", "code": code} for code in ("\0", "\ud800", "x" * 10**5)],
    "pools": [[1], 5, "x", True],
    "__class__": [{}],
    "pools\0": [{}],
}


def test_hostile_arguments_are_refused(client: Client) -> None:
    """The same values as over REST, and more."""
    for name, values in HOSTILE.items():
        for given in values:
            answer = send(client, "tools/call", {"name": name, "arguments": given})
            assert "error" in answer or answer["result"]["isError"], (name, str(given)[:200])
            said = json.dumps(answer)
            assert "Internal Server Error" not in said and len(said) < 200_000, said


@pytest.mark.parametrize("told", [5, True, [], "elicitation", {"elicitation": 5}, None])
def test_what_a_client_tells_of_itself_may_be_anything(client: Client, told: Any) -> None:
    call = {"name": "stop_pool", "arguments": {"pool": "p-0", "version": "1"}}
    for meta in (told, {f"{META}clientCapabilities": told}, {f"{META}clientInfo": told}):
        assert send(client, "tools/call", call | {"_meta": meta})["result"]
    for about in (told, {"title": told}, {"name": told}):
        params = {"clientInfo": about, "protocolVersion": told}
        assert send(client, "initialize", params)["result"]["serverInfo"]


@pytest.mark.parametrize("depth", [40, 100_000])
def test_a_message_that_is_nested_deeply_is_refused(client: Client, depth: int) -> None:
    body = b'{"jsonrpc": "2.0", "id": 1, "params": ' + b"[" * depth + b"]" * depth + b"}"
    said = client.raw("POST", "jupyter-dist/mcp", body=body).body
    assert "more than 32 levels of nesting" in said["error"]["message"]


def test_who_is_nobody_has_no_tools(server: Server) -> None:
    stranger = Client(server, {})
    said = stranger.raw("POST", "jupyter-dist/mcp", body={"jsonrpc": "2.0"})
    assert said.status == 403
    foreign = Client(server, {"Authorization": "token wrong"})
    assert foreign.raw("POST", "jupyter-dist/mcp", body={"jsonrpc": "2.0"}).status == 403
    own = Client(server)
    assert own.raw("GET", "jupyter-dist/mcp").status == 405


def test_an_agent_starts_runs_hangs_and_finds_out_why(client: Client) -> None:
    started = json.loads(use(client, "start_pool", num_ranks=2, backend="gloo"))
    pool = started["id"]
    assert started["state"] == "RUNNING"
    try:
        assert use(client, "run_on_ranks", pool=pool, code="2 + 2") == "[ranks 0-1: ok]\n4"
        said = use(client, "run_on_ranks", pool=pool, code="assert rank, 'no'\nprint('a' * 20_000)")
        assert said.startswith("[rank 0: error]") and "AssertionError: no" in said
        assert "\x1b" not in said and "characters left out" in said
        (run,) = set(re.findall(r"run-\d+", said))
        whole = use(client, "cell_output", run=run, rank=1)
        assert whole == "a" * 20_000
        assert "not kept" in fails(client, "cell_output", run="run-0", rank=1)

        hang = "import torch.distributed as dist\nif rank == 0: dist.barrier()\nelse:\n"
        hang += "    import time\n    while True: time.sleep(0.01)"
        running = threading.Thread(
            target=use, args=(client, "run_on_ranks"), kwargs={"pool": pool, "code": hang}
        )
        running.start()
        why = wait_for(
            lambda: "barrier" in (told := use(client, "why_stuck", pool=pool)) and told, "the hang"
        )
        assert "time.sleep" in why
        use(client, "interrupt", pool=pool)
        running.join(PATIENCE)
        assert not running.is_alive()

        use(client, "run_on_ranks", pool=pool, code="x = rank")
        assert '"x"' in use(client, "variables", pool=pool)
        assert "x" in use(client, "check", pool=pool, names=["x"])
        old = json.loads(use(client, "pool", pool=pool))["version"]
        use(client, "restart_ranks", pool=pool, ranks=[1], version=old)
        said = fails(client, "stop_pool", pool=pool, version=old)
        assert f"It has changed since you read version {old}" in said
    finally:
        now = json.loads(use(client, "pool", pool=pool))["version"]
        while "has changed" in str(send(client, "tools/call", _stop(pool, now))):
            now = json.loads(use(client, "pool", pool=pool))["version"]


def _stop(pool: str, version: str) -> dict[str, Any]:
    return {"name": "stop_pool", "arguments": {"pool": pool, "version": version}}


def test_an_agent_submits_and_looks_after_a_job(client: Client) -> None:
    plan = use(client, "plan_job", command=["sh", "-c", "exit 3"], time="10")
    assert "command" in plan
    job = json.loads(use(client, "submit_job", command=["sh", "-c", "echo bad; exit 3"], time="10"))
    label = job["jobs"][0]["label"]
    wait_for(lambda: '"FAILED"' in use(client, "job", job=label), "the end of the job")
    told = use(client, "triage_job", job=label)
    assert "It ended with exit code 3." in told and told.endswith("bad\n")
    assert "bad" in use(client, "job_log", job=label)
    assert "has changed" in fails(client, "cancel_job", job=label, version="PENDING-1")
    assert "There is no job" in fails(client, "job", job="9999")


def test_a_cell_is_cancelled(client: Client) -> None:
    pool = json.loads(use(client, "start_pool", num_ranks=1, backend="gloo"))["id"]
    answers: list[Any] = []
    body = {"name": "run_on_ranks", "arguments": {"pool": pool, "code": "while True: pass"}}
    call = {"jsonrpc": "2.0", "id": "long", "method": "tools/call", "params": body}

    def run() -> None:
        answers.append(client.raw("POST", "jupyter-dist/mcp", body=call).body)

    running = threading.Thread(target=run)
    running.start()
    wait_for(lambda: '"busy"' in use(client, "pool", pool=pool), "the cell")
    note = {"method": "notifications/cancelled", "params": {"requestId": "long"}}
    client.raw("POST", "jupyter-dist/mcp", body={"jsonrpc": "2.0"} | note)
    running.join(PATIENCE)
    assert "timeout" in answers[0]["result"]["content"][0]["text"]
    client.get(f"pools/{pool}")
    client.call("DELETE", f"pools/{pool}?wait=1")


async def test_the_panel_is_told_what_an_agent_calls(client: Client, server: Server) -> None:
    session = send_headers(client, "initialize", {"clientInfo": {"title": "Claude Code\x07"}})
    agent = Client(server, client.headers | {"Mcp-Session-Id": session})
    stream = await connect(client)
    await read(stream)
    await stream.write_message(json.dumps({"watch": ["agents"]}))
    first = await read_until(stream, lambda frame: frame["type"] == "agents")
    known = {call["id"] for call in first[-1]["agents"]}
    await asyncio.to_thread(fails, agent, "pool", pool="p-0")
    frames = await read_until(stream, lambda f: f["type"] == "agents" and f["agents"][-1]["ended"])
    assert first[-1]["complete"] and not frames[-1]["complete"]
    (call,) = frames[-1]["agents"]
    assert call["id"] not in known and call["failed"]
    assert (call["agent"], call["tool"], call["pool"]) == ("Claude Code", "pool", "p-0")
    use(client, "machine", _meta={f"{META}clientInfo": {"name": "codex"}})
    await read_until(stream, lambda f: f["agents"][-1]["agent"] == "codex")
    stream.close()
    logged = "".join(server.log)
    assert re.search(r"Claude Code \(user \w+\) calls the tool pool", logged)


def send_headers(client: Client, method: str, params: Any) -> str:
    body = {"jsonrpc": "2.0", "id": next(NUMBERS), "method": method, "params": params}
    answer = client.raw("POST", "jupyter-dist/mcp", body=body)
    return str(answer.headers["Mcp-Session-Id"])


def test_what_destroys_asks_first_where_the_client_can(client: Client) -> None:
    meta = {f"{META}clientInfo": {"name": "codex"}, f"{META}clientCapabilities": CAN_ASK}
    call = {"name": "stop_pool", "arguments": {"pool": "p-0", "version": "1"}, "_meta": meta}
    asked = send(client, "tools/call", call)["result"]
    assert asked["resultType"] == "input_required"
    question = asked["inputRequests"]["confirm"]
    assert question["method"] == "elicitation/create"
    message = question["params"]["message"]
    assert message.startswith('codex calls stop_pool {"pool": "p-0"}. Stop a pool: all variables')
    for action, said in (("decline", "The user declined."), ("accept", "There is no pool p-0")):
        answers = {"inputResponses": {"confirm": {"action": action}}}
        result = send(client, "tools/call", call | answers)["result"]
        assert result["isError"] and said in result["content"][0]["text"]


def test_a_page_of_another_site_is_refused(server: Server) -> None:
    """A browser sends the user's cookie with it, and no token."""
    headers = {"Cookie": "_xsrf=1", "Origin": "https://evil.example", "X-XSRFToken": "1"}
    said = Client(server, headers).raw("POST", "jupyter-dist/mcp", body={"jsonrpc": "2.0"})
    assert said.status in (403, 404)


@pytest.mark.parametrize("mcp", ["read", "off"])
def test_an_administrator_may_switch_tools_off(tmp_path: Path, mcp: str) -> None:
    server = Server(tmp_path / "home", tmp_path, f"--JupyterDistApp.mcp={mcp}")
    try:
        client = Client(server)
        listed = client.raw("POST", "jupyter-dist/mcp", body=LIST)
        if mcp == "off":
            assert listed.status == 404 and "JupyterDistApp.mcp" in str(listed.body)
            return
        tools = {tool["name"] for tool in listed.body["result"]["tools"]}
        assert "pools" in tools and "run_on_ranks" not in tools
        said = send(client, "tools/call", {"name": "run_on_ranks", "arguments": {}})
        assert said["error"]["message"] == "There is no tool run_on_ranks."
    finally:
        server.close()


def test_long_outputs_of_many_ranks_are_short(client: Client) -> None:
    pool = json.loads(use(client, "start_pool", num_ranks=4, backend="none"))["id"]
    code = "print('same ' * 400_000)\nif rank == 3: print('\\ud800', float('nan'))\n"
    code += "if rank == 2: 1 / 0"
    said = use(client, "run_on_ranks", pool=pool, code=code)
    assert len(said) < 24_500
    groups = re.findall(r"^\[(.+): (\w+)\]$", said, re.MULTILINE)
    assert groups == [("rank 2", "error"), ("ranks 0-1", "ok"), ("rank 3", "ok")]
    (run,) = set(re.findall(r"run-\d+", said))
    piece = use(client, "cell_output", run=run, rank=0, offset=1_000_000)
    assert piece.startswith(" same same ") and piece.endswith("… go on with offset 1024000 …")
    version = json.loads(use(client, "pool", pool=pool))["version"]
    use(client, "stop_pool", pool=pool, version=version)


def test_a_bridge_on_standard_input(server: Server) -> None:
    asked = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "pools"}},
    ]
    done = subprocess.run(
        [sys.executable, "-c", JDIST, "mcp"],
        input="".join(f"{json.dumps(one)}\n" for one in asked),
        cwd=server.root,
        env=server.env,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    answers = {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}
    assert answers[1]["result"]["serverInfo"]["name"] == "jupyter-dist"
    assert not answers[2]["result"]["isError"]
