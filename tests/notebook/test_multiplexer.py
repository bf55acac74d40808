"""Which debugger a request goes to, and what a front end is told; without ranks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from hypothesis import given
from hypothesis import strategies as st

from jupyter_dist_server.common.protocol.jupyter_messages import Content
from jupyter_dist_server.notebook.debugging.multiplexer import Multiplexer, response
from jupyter_dist_server.notebook.debugging.references import References


class Debuggee:
    """A kernel and three ranks, which answer at once and number everything alike."""

    def __init__(self) -> None:
        self.asked: list[tuple[int | None, str, Content]] = []
        self.told: list[tuple[str, Content]] = []
        self.waiting: list[Callable[[], None]] = []
        self.mux = Multiplexer(
            self._ask,
            self._ask_kernel,
            lambda event: self.told.append((event["event"], event["body"])),
            lambda _, function: self.waiting.append(function),
        )
        self.mux.living = [0, 1, 2]

    async def _ask(self, requests: Mapping[int, Content]) -> dict[int, Content]:
        return {rank: self._answer(rank, request) for rank, request in requests.items()}

    async def _ask_kernel(self, message: Content) -> Content:
        return self._answer(None, message)

    def _answer(self, rank: int | None, message: Content) -> Content:
        self.asked.append((rank, message["command"], message.get("arguments", {})))
        frame = {"id": 3, "name": "f", "source": {"path": "a.py", "sourceReference": 0}}
        bodies: dict[str, Content] = {
            "threads": {"threads": [{"id": 1, "name": "MainThread"}]},
            "stackTrace": {"stackFrames": [frame]},
            "scopes": {"scopes": [{"name": "Locals", "variablesReference": 4}]},
            "setBreakpoints": {"breakpoints": [{"line": 2, "verified": rank == 1}]},
            "debugInfo": {"stoppedThreads": []},
        }
        return response(message, bodies.get(message["command"]))

    def do(self, command: str, **arguments: object) -> Content:
        message = {"type": "request", "seq": 7, "command": command, "arguments": arguments}
        reply = asyncio.run(self.mux.handle(message))
        assert reply["success"] and reply["request_seq"] == 7 and reply["command"] == command
        body: Content = reply["body"]
        return body

    def stops(self, rank: int) -> None:
        body = {"reason": "breakpoint", "threadId": 1}
        self.mux.hear(rank, {"type": "event", "event": "stopped", "body": body})

    def let_time_pass(self) -> None:
        while self.waiting:
            self.waiting.pop(0)()

    def whom(self, command: str) -> list[int | None]:
        return [rank for rank, asked, _ in self.asked if asked == command]

    def shown(self) -> list[tuple[str, int]]:
        """Return what was told since the last call: the kind of event, and the thread's name."""
        names = {thread["id"]: thread["name"] for thread in self.do("threads")["threads"]}
        told = [(kind, names[body["threadId"]]) for kind, body in self.told]
        self.told.clear()
        return told


def test_ranks_are_threads_beside_the_kernels() -> None:
    threads = Debuggee().do("threads")["threads"]
    assert [thread["name"] for thread in threads] == ["MainThread", "rank 0", "rank 1", "rank 2"]
    assert threads[0]["id"] == 1 and len({thread["id"] for thread in threads}) == 4


def test_breakpoints_go_to_all_and_hold_where_one_has_set_them() -> None:
    debuggee = Debuggee()
    body = debuggee.do("setBreakpoints", source={"path": "a.py"}, breakpoints=[{"line": 2}])
    assert body["breakpoints"] == [{"line": 2, "verified": True}]
    debuggee.do("setExceptionBreakpoints", filters=["raised"])
    assert debuggee.whom("setBreakpoints") == [None, 0, 1, 2]
    assert set(debuggee.mux.breakpoints) == {
        ("setBreakpoints", "a.py"),
        ("setExceptionBreakpoints", ""),
    }


def test_the_first_that_stops_is_told_and_all_go_on() -> None:
    debuggee = Debuggee()
    for rank in (1, 0):
        debuggee.stops(rank)
    assert debuggee.shown() == [("stopped", "rank 1")]
    assert len(debuggee.do("debugInfo")["stoppedThreads"]) == 2
    assert debuggee.do("next", threadId=1)["allThreadsContinued"]  # JupyterLab's is always 1
    assert debuggee.whom("next") == [1, 0]
    assert debuggee.shown() == [("continued", "rank 1")]
    debuggee.stops(0)  # first, but another one was shown
    assert debuggee.shown() == []
    debuggee.stops(1)
    debuggee.let_time_pass()
    assert debuggee.shown() == [("stopped", "rank 1")]


def test_another_rank_is_shown_if_the_one_before_goes_on() -> None:
    debuggee = Debuggee()
    for rank in (1, 2):
        debuggee.stops(rank)
    debuggee.do("jdistStepOnlyShownRank", on=True)
    assert not debuggee.do("continue", threadId=1)["allThreadsContinued"]
    assert debuggee.whom("continue") == [1]
    debuggee.let_time_pass()
    assert debuggee.shown() == [
        ("stopped", "rank 1"),
        ("continued", "rank 1"),
        ("stopped", "rank 2"),
    ]


def test_a_single_thread_goes_on() -> None:
    debuggee = Debuggee()
    for rank in (0, 1):
        debuggee.stops(rank)
    thread = debuggee.do("threads")["threads"][2]
    assert thread["name"] == "rank 1"
    debuggee.do("stepIn", threadId=thread["id"], singleThread=True)
    assert debuggee.whom("stepIn") == [1] and debuggee.mux.shown == 0


def test_a_frame_belongs_to_its_rank() -> None:
    debuggee = Debuggee()
    debuggee.stops(2)
    (frame,) = debuggee.do("stackTrace", threadId=1)["stackFrames"]
    (scope,) = debuggee.do("scopes", frameId=frame["id"])["scopes"]
    debuggee.do("variables", variablesReference=scope["variablesReference"])
    debuggee.do("evaluate", expression="x", frameId=frame["id"])
    debuggee.do("copyToGlobals", srcFrameId=frame["id"])
    debuggee.do("evaluate", expression="x")
    of_ranks = [(command, arguments) for rank, command, arguments in debuggee.asked if rank == 2]
    assert of_ranks == [
        ("stackTrace", {"threadId": 1}),
        ("scopes", {"frameId": 3}),
        ("variables", {"variablesReference": 4}),
        ("evaluate", {"expression": "x", "frameId": 3}),
        ("copyToGlobals", {"srcFrameId": 3}),
    ]
    assert debuggee.asked[-1] == (None, "evaluate", {"expression": "x"})


def test_pause_stops_the_ranks_that_run_or_the_one_that_is_named() -> None:
    debuggee = Debuggee()
    debuggee.stops(0)
    debuggee.do("pause", threadId=1)
    assert debuggee.whom("pause") == [1, 2]
    debuggee.do("pause", threadId=debuggee.do("threads")["threads"][3]["id"])
    assert debuggee.whom("pause") == [1, 2, 2]
    debuggee.stops(2)
    debuggee.do("continue", threadId=1)
    assert debuggee.whom("continue") == [0, 2, 1], "rank 1 does not stop later, in C code now"


def test_a_rank_that_is_to_be_shown_stops() -> None:
    debuggee = Debuggee()
    debuggee.do("jdistShowRank", rank=2)
    assert debuggee.whom("pause") == [2]
    debuggee.stops(2)
    debuggee.stops(0)
    debuggee.do("jdistShowRank", rank=0)
    assert debuggee.shown() == [("stopped", "rank 2"), ("stopped", "rank 0")]


def test_a_rank_that_ends_is_stopped_no_more() -> None:
    debuggee = Debuggee()
    debuggee.stops(1)
    debuggee.mux.lose({1})
    assert not debuggee.mux.halted and debuggee.mux.living == [0, 2]
    assert [kind for kind, _ in debuggee.told] == ["stopped", "continued"]


def test_a_front_end_with_several_threads_is_told_of_each() -> None:
    debuggee = Debuggee()
    debuggee.mux.follows_threads = True
    for rank in (1, 0):
        debuggee.stops(rank)
    assert [bool(body.get("preserveFocusHint")) for _, body in debuggee.told] == [False, True]
    debuggee.told.clear()
    debuggee.do("continue", threadId=debuggee.do("threads")["threads"][2]["id"], singleThread=True)
    debuggee.let_time_pass()
    assert debuggee.shown() == [("continued", "rank 1")]


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 50), st.booleans()), max_size=60))
def test_references_never_mix_ranks(steps: list[tuple[int, int, bool]]) -> None:
    references, named = References(), dict[int, tuple[int, str, int]]()
    for rank, own, goes_on in steps:
        if goes_on:
            references.forget(rank)
            named = {n: key for n, key in named.items() if key[0] != rank or key[1] == "threadId"}
        for name in ("threadId", "frameId", "variablesReference"):
            number = references.shown(rank, {name: own})[name]
            if own:
                assert references.owner({name: number}) == (rank, {name: own})
                before = named.setdefault(number, (rank, name, own))
                assert before[0] == rank and before[2] == own
            else:
                assert number == 0, "0 stands for none"
    for number, (rank, name, own) in named.items():
        assert references.owner({name: number}) == (rank, {name: own})
