"""What a pool's agent and its clients say to each other, as lines of JSON."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ...processes.process_ref import ProcessRef
from ..decode_message import reader
from ..failure_reason import Reason
from ..node_addresses import RankAddress
from ..sampler_messages import News as SamplerNews
from ..sampler_messages import SamplerSettings
from ..store_messages import StoreReply, StoreRequest
from .attachment import Attachment


class GpuReference(msgspec.Struct, frozen=True):
    """A physical GPU, as the state of a rank names it."""

    index: int
    label: str
    uuid: str
    name: str


class PlacedRank(msgspec.Struct, frozen=True):
    """Where one rank is to be."""

    device: str
    """``cpu``, or ``cuda:I`` as CUDA counts for this rank."""
    gpu: GpuReference | None
    mask: str | None
    """``CUDA_VISIBLE_DEVICES``; `None` for the agent's."""


# -- commands ---------------------------------------------------------------------------------


class Command(msgspec.Struct, frozen=True, tag_field="do", tag=str.lower):
    """What an agent is told; `do` names it."""


class Attach(Command, frozen=True):
    """Keep the pool for as long as this connection lasts."""

    attachment: Attachment


class AcquireLock(Command, frozen=True, tag="acquire_lock"):
    """Grant this connection the execution lock, when it is free."""


class ReleaseLock(Command, frozen=True, tag="release_lock"):
    """Take the execution lock back."""


class Interrupt(Command, frozen=True):
    """Send SIGINT to ranks and the subprocesses in their groups."""

    ranks: list[int]


class Kill(Command, frozen=True):
    """Send SIGKILL to ranks, named by their pids, so that their successors are spared."""

    pids: list[int]
    ranks: list[int] = []
    """Limits these to some ranks, as processes on several nodes may have the same pid."""


class Log(Command, frozen=True):
    """Return what a rank wrote last."""

    rank: int


class Restart(Command, frozen=True):
    """Replace ranks; all of them if none is named."""

    ranks: list[int] = []
    without_lost_nodes: bool = False
    """Whether to go on with the ranks of the other nodes alone, all of which are replaced."""


class Resize(Command, frozen=True):
    """Have more or fewer ranks; those with the first numbers go on.

    The sender has the execution lock.
    """

    ranks: list[PlacedRank]
    """All of them."""
    leased: bool
    """Whether the sender hands over a lease for the new ones, see `common.files.hand_over`."""


class Parked(msgspec.Struct, frozen=True):
    """A pool whose ranks hold nothing on their GPUs: the driver keeps it in the host's memory."""

    since: float
    nbytes: int
    """How much the ranks had reserved on their GPUs."""
    leased: bool = True
    """Whether the GPUs are still, or again, the pool's: its ranks are about to change."""


class NoteParked(Command, frozen=True, tag="note_parked"):
    """Tell others that ranks are, or may be, parked; `None` once all can use their GPUs."""

    parked: Parked | None


class GiveBack(Command, frozen=True, tag="give_back"):
    """Release the GPUs of a parked pool."""


class TakeBack(Command, frozen=True, tag="take_back"):
    """Take a new lease of them, which the sender hands over: see `common.files.hand_over`."""


class Extend(Command, frozen=True):
    """Let the pool run longer than its time limit; this counts as use."""

    seconds: float = 0.0


class NoteIdle(Command, frozen=True, tag="note_idle"):
    """Tell others since when the pool is idle; `None` if it is not, or that is not known."""

    since: float | None


class NoteCell(Command, frozen=True, tag="note_cell"):
    """Tell others in which cell of the notebook ranks died."""

    ranks: list[int]
    cell_id: str


class NoteLate(Command, frozen=True, tag="note_late"):
    """Tell the client whose cell runs that ranks of a generation did not stop for another one."""

    ranks: list[int]
    generation: int


class StartRanks(Command, frozen=True, tag="start_ranks"):
    """Start ranks in place of their predecessors: from the first node's agent to another's."""

    ranks: list[int]
    generation: int
    whole: bool
    ports: tuple[int, int, int]
    """On the first node: ``MASTER_PORT``, of JAX's coordinator, and of a TCP store; 0 without."""
    left_out: list[str] = []
    """Nodes that the pool has been left without: it has fewer ranks then, with new numbers."""


class Rename(Command, frozen=True):
    """Change names of notebooks of the pool: their files have been moved."""

    names: dict[str, str]


class DescribeLease(Command, frozen=True, tag="describe_lease"):
    """Describe the pool to all users of the node: from the first node's agent to another's.

    Times are by the clock of the recipient.
    """

    notebook: str
    ends_by: float | None
    idle_since: float | None


class WatchGpus(Command, frozen=True, tag="watch_gpus"):
    """Sample the GPUs of other nodes for this connection; without settings, no longer."""

    settings: SamplerSettings | None
    nodes: list[str] = []


class StoreAnswer(Command, frozen=True, tag="store_answer"):
    """Answer `StoreQuestion`."""

    number: int
    reply: StoreReply


class Stop(Command, frozen=True):
    """End the pool."""


class Ping(Command, frozen=True):
    """Answer."""

    sent: float = 0.0
    """When it was sent, by the sender's clock; 0 if clocks are not compared."""
    ahead: float | None = None
    """By how many seconds the recipient's clock is ahead of the sender's, if known."""


Commands = (
    Attach
    | AcquireLock
    | ReleaseLock
    | Interrupt
    | Kill
    | Log
    | Restart
    | Resize
    | NoteParked
    | GiveBack
    | TakeBack
    | Extend
    | NoteIdle
    | NoteCell
    | NoteLate
    | StartRanks
    | Rename
    | DescribeLease
    | WatchGpus
    | StoreAnswer
    | Stop
    | Ping
)

# -- what the agent says ----------------------------------------------------------------------


class News(msgspec.Struct, frozen=True, tag_field="says", tag=str.lower):
    """What an agent says; `says` names it."""


class RankState(msgspec.Struct):
    """What an agent knows of one rank."""

    rank: int
    device: str
    since: float
    state: str = "starting"
    """``starting``, ``idle`` or ``dead``."""
    pid: int | None = None
    start_ticks: int | None = None
    exit: str | None = None
    """Why it is dead, in words."""
    stderr: list[str] = []
    """The last lines that it wrote, if it died unasked."""
    failure: Reason | None = None
    """Why it did not start, if it was to replace another rank."""
    gpu: GpuReference | None = None
    """The GPU that it was given there, if it is on another node than the first."""
    node: str = ""
    """Its node, which its pid is of; empty for the first one."""
    stopped: bool = False


class PoolTime(msgspec.Struct):
    """How long a pool may still run."""

    limit: float | None = None
    """Seconds for which it may run."""
    ends_by: float | None = None
    """When these are over."""
    idle_since: float | None = None
    extended: float | None = None
    over: Reason | None = None
    """Why it is stopping, if its time is over."""


class Snapshot(News, frozen=True):
    """All that a client may want to know; sent on connecting and at each change."""

    process: ProcessRef
    generation: int
    """How often ranks were started."""
    start_method: str
    backend: str
    notices: list[str]
    failure: Reason | None
    stopping: bool
    attachments: list[Attachment]
    ranks: list[RankState]
    time: PoolTime = msgspec.field(default_factory=PoolTime)
    addresses: dict[int, RankAddress] = {}
    """Where the ranks of this agent listen, if it is not on the first node."""
    name: str = ""
    """The notebook's path."""
    last_cells: dict[int, str] = {}
    """By dead rank, the notebook's id of the cell in which it died, as far as known."""
    lost_nodes: list[str] = []
    """Other nodes that cannot be used: they cannot be reached, or their agents have ended."""
    parked: Parked | None = None


class LockGranted(News, frozen=True, tag="lock_granted"):
    """The execution lock is the client's."""


class LockWanted(News, frozen=True, tag="lock_wanted"):
    """Another client waits for the execution lock: release it after the cell."""


class LockHolderStopped(News, frozen=True, tag="lock_holder_stopped"):
    """The client that has the execution lock is stopped (SIGSTOP, a debugger).

    This is repeated every few seconds.
    """

    pid: int


class LateRanks(News, frozen=True, tag="late_ranks"):
    """Ranks did not stop for another client, so the present cell need not wait for them."""

    ranks: list[int]


class LogLines(News, frozen=True, tag="log"):
    """The last lines that a rank wrote."""

    lines: list[str]


class Refused(News, frozen=True):
    """Why a command is not carried out."""

    message: str


class NodeGpus(News, frozen=True, tag="node_gpus"):
    """What the sampler on another node says."""

    node: str
    news: SamplerNews | None = None
    visible: str | None = None
    """``CUDA_VISIBLE_DEVICES`` there: what the engine has given to the agent."""
    trouble: str = ""


class StoreQuestion(News, frozen=True, tag="store_question"):
    """What a rank asks of the process group's store, which is on the first node."""

    number: int
    request: StoreRequest


class Pong(News, frozen=True):
    """The answer to `Ping`."""

    sent: float = 0.0
    answered: float = 0.0


AgentNews = (
    Snapshot
    | LockGranted
    | LockWanted
    | LockHolderStopped
    | LateRanks
    | LogLines
    | Refused
    | NodeGpus
    | StoreQuestion
    | Pong
)

# -- as lines ---------------------------------------------------------------------------------

_encoder = msgspec.json.Encoder()


def encode(message: Command | News) -> bytes:
    """Return a message as a line."""
    return _encoder.encode(message) + b"\n"


decode_command: Callable[[bytes], Commands] = reader(Commands)
decode_news: Callable[[bytes], AgentNews] = reader(AgentNews)
