"""The notebook's side of moving values between the notebook and the ranks."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ...common.errors import DistError
from ...common.pickling import (
    PARCEL_FROM,
    SHARED_FROM,
    Buffer,
    Packed,
    SharedMemory,
    own,
    pack,
    read_shared,
    write_shared,
)
from ...common.processes.process_ref import POOL_ENDED
from ...common.protocol.jupyter_messages import Message
from ...common.protocol.ranks.parcel_messages import DropRequest
from ...common.protocol.ranks.rank_messages import (
    ForgetRequest,
    PullRequest,
    PushRequest,
    RankRequest,
    ValueReply,
)
from ..long_requests import ask_at_length
from ..pool_client import PoolClient
from ..ranks.rank_connection import rank_died, read_replies_or_why
from .between_nodes import Lost, Progress, Run, all_of, fetch_in_pieces, send_in_pieces
from .pack_variables import (
    Replies,
    arrival,
    arrivals,
    pack_variables,
    raise_failures,
    unpack_value,
    why_of,
)
from .splitting import split


@dataclass
class Moved:
    """What a transfer came to."""

    nbytes: int
    """Size of the values, each counted once, however many ranks received it."""
    notices: list[str] = field(default_factory=list)


class Mover:
    """Moves values between this process and the ranks of one pool.

    Values are pickled and unpickled in the calling thread: this runs the user's code, and an
    interrupt ends it. `run` runs a coroutine in the client's event loop, where `progress` is
    called. All methods raise `DistError` if a rank died, or a value cannot be sent or read.
    """

    def __init__(
        self, client: PoolClient, run: Run, progress: Progress = lambda done, total, rank: None
    ) -> None:
        self._client = client
        self._run = run
        self._progress = progress

    def push(self, values: dict[str, Any], ranks: Sequence[int]) -> Moved:
        """Set variables on ranks; it takes effect at once, also while a cell runs there.

        If a value cannot be sent, nothing has changed on any rank.
        """
        self._check_alive(ranks)
        packed = pack_variables(values)
        self._deliver(packed, ranks)
        names = " and ".join(f"`{name}`" for name in values)
        return Moved(sum(packed.sizes), arrival(names, packed.devices, "the notebook"))

    def scatter(self, name: str, value: Any, ranks: Sequence[int]) -> Moved:
        """Split a value along its first dimension, and set one part on each rank.

        The first ranks get one item more where the split is uneven.
        """
        self._check_alive(ranks)
        packed = [pack_variables({name: part}) for part in split(name, value, len(ranks))]
        for rank, parcel in zip(ranks, packed, strict=True):
            self._deliver(parcel, [rank])
        devices = sorted({device for parcel in packed for device in parcel.devices})
        nbytes = sum(sum(parcel.sizes) for parcel in packed)
        return Moved(nbytes, arrival(f"`{name}`", devices, "the notebook"))

    def pull(self, expression: str, ranks: Sequence[int]) -> tuple[dict[int, Any], Moved]:
        """Return the value of an expression on each rank, also while a cell runs there."""
        try:
            compile(expression, "<value>", "eval")
        except (SyntaxError, ValueError):
            raise DistError(
                "bad_name",
                f"“{expression}” is not a valid name or expression.",
                'Use a name or an expression, such as w, model.weight or data["x"].',
            ) from None
        return self._fetch(expression, ranks, call=None)

    def send_call(
        self, call: tuple[Any, ...], ranks: Sequence[int], name_code: Callable[[str], str]
    ) -> str:
        """Send a function, its arguments, named arguments and source; return its name there.

        `name_code` is as in `pack`; it may add to the source.
        """
        self._check_alive(ranks)
        namespaces: list[dict[str, Any]] = []
        try:
            packed = pack((*call, namespaces), name_code=name_code, namespaces=namespaces)
        except Exception as error:
            raise DistError(
                "value_unsendable",
                f"The function or its arguments cannot be sent: {why_of(error)}.",
            ) from error
        name = uuid.uuid4().hex
        self._deliver(packed, ranks, name)
        return name

    def fetch_result(self, call: str, ranks: Sequence[int]) -> dict[int, Any]:
        """Return what a function returned on each rank."""
        return self._fetch("the result", ranks, call)[0]

    def forget(self, call: str, ranks: Sequence[int]) -> None:
        """Let ranks drop a function and its result."""
        self._run(self._tell(ForgetRequest(call), ranks))

    # -- the messages -----------------------------------------------------------------------

    def _deliver(self, packed: Packed, ranks: Sequence[int], call: str | None = None) -> None:
        request = PushRequest(packed.sizes, call, memory=None)
        near = [rank for rank in ranks if rank not in self._client.elsewhere]
        if near and SharedMemory.possible and sum(packed.sizes) >= SHARED_FROM:
            with SharedMemory() as memory:
                write_shared(memory.descriptor, packed.buffers)
                shared = msgspec.structs.replace(request, memory=memory.address)
                replies = self._ask(shared, near)
            raise_failures("the value", replies)
            served = {rank for rank in near if replies[rank][0].status != "no_memory"}
            ranks = [rank for rank in ranks if rank not in served]
        far = [rank for rank in ranks if rank in self._client.elsewhere]
        if far and sum(packed.sizes) >= PARCEL_FROM:
            said = send_in_pieces(self._client, request, packed.buffers, far, self._progress)
            replies = _read(self._run(said))
            raise_failures("the value", replies)
            served = {rank for rank in replies if replies[rank][0].status != "no_memory"}
            ranks = [rank for rank in ranks if rank not in served]
        if ranks:
            raise_failures("the value", self._ask(request, ranks, packed.buffers))

    def _fetch(
        self, expression: str, ranks: Sequence[int], call: str | None
    ) -> tuple[dict[int, Any], Moved]:
        self._check_alive(ranks)
        values: dict[int, Any] = {}
        near = [rank for rank in ranks if rank not in self._client.elsewhere]
        far = [rank for rank in ranks if rank in self._client.elsewhere]
        with (
            _memory_for(near if SharedMemory.possible else []) as memory,
            self._parcel_of(far) as parcel,
        ):
            addresses = {rank: shared.address for rank, shared in memory.items()}
            request = PullRequest(expression, call, addresses, parcel)
            replies, loaded = self._pull(request, near, far)
            raise_failures(expression, replies)
            for rank in ranks:
                reply, sent = replies[rank]
                if rank in loaded:
                    buffers = loaded[rank]
                elif reply.shared:
                    buffers = read_shared(memory[rank].descriptor, reply.sizes)
                else:
                    buffers = own(sent)
                values[rank] = unpack_value(expression, rank, buffers)
        nbytes = sum(sum(reply.sizes) for reply, _ in replies.values())
        return values, Moved(nbytes, arrivals(expression, replies))

    @contextlib.contextmanager
    def _parcel_of(self, ranks: Sequence[int]) -> Iterator[str]:
        """Give the name under which ranks may keep a value for us, which they drop at the end."""
        name = uuid.uuid4().hex if ranks else ""
        try:
            yield name
        finally:
            if ranks:
                self._run(self._tell(DropRequest(name), ranks))

    def _pull(
        self, request: PullRequest, near: Sequence[int], far: Sequence[int]
    ) -> tuple[Replies, dict[int, list[Buffer]]]:
        """Ask for a value; return also what ranks on other nodes kept of it, by rank."""
        loaded: dict[int, list[Buffer]] = {}

        async def pull_from(ranks: Sequence[int]) -> Replies:
            replies = await self._request(request, ranks, ())
            kept = {rank: reply.sizes for rank, (reply, _) in replies.items() if reply.kept}
            loaded.update(await fetch_in_pieces(self._client, request.parcel, kept, self._progress))
            return replies

        async def pull() -> list[Replies]:
            # A rank does not keep it for as long as another one may take to answer.
            each = [near, *([rank] for rank in far)]
            return await all_of(pull_from(ranks) for ranks in each if ranks)

        try:
            replies = {rank: one for said in self._run(pull()) for rank, one in said.items()}
        except Lost as lost:
            self._check_alive([lost.rank])
            why = f"Rank {lost.rank} dropped `{request.expression}` before all of it had arrived."
            raise DistError("value_failed", why, "Fetch it again.") from None
        self._check_alive([rank for rank in [*near, *far] if rank not in replies], ended=True)
        return replies, loaded

    async def _tell(self, request: RankRequest, ranks: Sequence[int]) -> None:
        self._client.tell(request, ranks)

    def _ask(
        self, request: RankRequest, ranks: Sequence[int], buffers: Sequence[memoryview] = ()
    ) -> Replies:
        replies = self._run(self._request(request, ranks, buffers))
        self._check_alive([rank for rank in ranks if rank not in replies], ended=True)
        return replies

    async def _request(
        self, request: RankRequest, ranks: Sequence[int], buffers: Sequence[memoryview]
    ) -> Replies:
        return _read(await ask_at_length(self._client, request, ranks, buffers=buffers))

    def _check_alive(self, ranks: Sequence[int], ended: bool = False) -> None:
        dead = self._client.dead
        lost = [rank for rank in ranks if ended or rank in dead]
        if lost:
            raise rank_died(lost, dead.get(lost[0], POOL_ENDED))


@contextlib.contextmanager
def _memory_for(ranks: Sequence[int]) -> Iterator[dict[int, SharedMemory]]:
    with contextlib.ExitStack() as stack:
        yield {rank: stack.enter_context(SharedMemory()) for rank in ranks}


def _read(messages: dict[int, Message]) -> Replies:
    replies = read_replies_or_why(messages, ValueReply)
    return {rank: (reply, messages[rank]["buffers"]) for rank, reply in replies.items()}
