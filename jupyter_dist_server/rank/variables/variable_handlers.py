"""A rank's answers about its variables, between cells: descriptions, digests and memory."""

from __future__ import annotations

import itertools
import logging
import sys
import types
from collections import deque
from collections.abc import Iterator
from typing import Any

import msgspec
import psutil

from ...common.protocol.ranks.memory_messages import (
    EstimateReply,
    EstimateRequest,
    MemoryReply,
    MemoryRequest,
)
from ...common.protocol.ranks.rank_messages import Activity
from ...common.protocol.ranks.variable_messages import (
    Leaf,
    Variable,
    VariablesReply,
    VariablesRequest,
)
from ..rank_report import Reporter, torch_memory
from ..request_handlers import Asked, answer_from_thread, describe, hears
from ..torch_internals import shard_of
from .leaves import Found, digest, is_simple, leaves_of, local_part, random_states
from .memory import Makers, MemoryHistory, estimate, held_by
from .value_handlers import Refusal, evaluate

_LOG = logging.getLogger(__name__)

_LONGEST_TEXT = 40  # maximum characters of a simple value that is shown
_MOST_LEAVES = 10_000
"""Maximum leaves of a variable that was not requested by name; a larger one is one leaf."""
_CODE = (types.ModuleType, type, types.FunctionType, types.BuiltinFunctionType)
"""Types that do not count as variables."""


def describe_variable(name: str, value: Any, asked: VariablesRequest) -> Variable:
    """Describe a variable; a part of it that cannot be read is a leaf without a digest."""
    found = _leaves(name, value, asked)
    leaves = [(one, _leaf(one, asked.values)) for one in found]
    nbytes = sum(leaf.nbytes for _, leaf in leaves)
    checked = asked.largest is None or nbytes <= asked.largest
    return Variable(
        name=name,
        type=type(value).__name__,
        leaves=[
            msgspec.structs.replace(leaf, digest=digest(one.value)) if checked else leaf
            for one, leaf in leaves
        ],
        checked=checked,
    )


def _leaves(name: str, value: Any, asked: VariablesRequest) -> list[Found]:
    if asked.names:
        return list(leaves_of(name, value))
    whole = [Found(name, name, value)]
    most = sys.maxsize if asked.only_trained else _MOST_LEAVES
    if isinstance(value, (list, tuple, dict)) and len(value) > most:
        return whole
    try:
        # The user's code is not called unasked: it may run a collective.
        leaves = leaves_of(name, value, only_torch=asked.largest is not None)
        found = list(itertools.islice(leaves, most))
    except Exception:  # of the user's class
        _LOG.info("`%s` cannot be looked at.", name, exc_info=True)
        return whole
    return found if len(found) < most else whole


def _leaf(found: Found, show_value: bool) -> Leaf:
    try:
        return _read(found, show_value)
    except Exception:  # a tensor without a shape, or the user's class
        return Leaf(path=found.path, expression=found.expression, type=type(found.value).__name__)


def _read(found: Found, show_value: bool) -> Leaf:
    torch, value = sys.modules["torch"], found.value
    shape = getattr(value, "shape", None)
    # That of a jagged tensor has sizes that are no numbers.
    is_shape = isinstance(shape, tuple) and all(type(size) is int for size in shape)
    is_tensor = isinstance(value, torch.Tensor)
    held = local_part(value) if is_tensor else value
    size = held.numel() * held.element_size() if is_tensor else getattr(held, "nbytes", None)
    return Leaf(
        path=found.path,
        expression=found.expression,
        type=type(value).__name__,
        shape=shape if is_shape else None,
        dtype=str(getattr(value, "dtype", "")).removeprefix("torch."),
        device=str(value.device) if is_tensor else "",
        nbytes=size if isinstance(size, int) else _size_of(value),
        shard=shard_of(value) if is_tensor else "",
        text=_text(value) if show_value else "",
    )


def _size_of(value: Any) -> int:
    """Return the bytes of a plain value with its items, extrapolated if there are very many."""
    if type(value) not in (list, tuple, dict):
        return sys.getsizeof(value)
    items = value.items() if type(value) is dict else zip(value)
    sizes = [sum(map(sys.getsizeof, item)) for item in itertools.islice(items, _MOST_LEAVES)]
    return sys.getsizeof(value) + len(value) * sum(sizes) // (len(sizes) or 1)


def _text(value: Any) -> str:
    """Return a short simple value as code, or an empty string."""
    is_long = isinstance(value, (str, bytes, list, tuple, dict)) and len(value) > _LONGEST_TEXT
    text = repr(value) if not is_long and is_simple(value) else ""
    return text if len(text) <= _LONGEST_TEXT else ""


class VariableHandlers:
    """What `RankKernel` answers about its variables."""

    shell: Any
    report: Reporter
    _state: Activity

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.recent_cells: deque[int] = deque(maxlen=100)
        """The notebook's numbers of the last cells."""
        self.ran = 0
        """How many cells ran."""
        self.makers = Makers()
        self.memory_history: MemoryHistory | None = None
        """The allocations on its GPU, if it has one."""

    @hears(VariablesRequest)
    def dist_variables_request(self, asked: Asked[VariablesRequest]) -> None:
        """Describe variables."""
        answer_from_thread(self, asked, lambda: (self._tell_variables(asked.content), ()))

    @hears(MemoryRequest)
    def dist_memory_request(self, asked: Asked[MemoryRequest]) -> None:
        """Report the memory, and which variables use it."""
        answer_from_thread(self, asked, lambda: (self._tell_memory(), ()))

    @hears(EstimateRequest)
    def dist_estimate_request(self, asked: Asked[EstimateRequest]) -> None:
        """Estimate the memory of a training step."""
        answer_from_thread(self, asked, lambda: (self._tell_estimate(asked.content), ()))

    def _tell_variables(self, asked: VariablesRequest) -> VariablesReply:
        ran = self.ran
        try:
            reply = self._describe_variables(asked, ran)
        except Refusal as refusal:
            reply = VariablesReply(status="missing", why=refusal.reply.why)
        except Exception as error:  # of the user's code, which an expression may run
            reply = VariablesReply(status="failed", why=describe(error))
        return VariablesReply(status="busy") if self._runs_cell(ran) else reply

    def _runs_cell(self, ran: int) -> bool:
        """Tell whether a cell runs, or has run since there were this many."""
        return self._state == "busy" or ran != self.ran

    def _tell_memory(self) -> MemoryReply:
        process = psutil.Process()
        resident, busy = process.memory_info().rss, self._state == "busy"
        proportional = getattr(process.memory_full_info(), "pss", None)
        if busy:  # torch counts under the lock of its allocator, which a GPU may block
            return MemoryReply(busy=True, resident=resident, proportional=proportional)
        variables = self._user_variables(), self._hidden_variables()
        held, in_all = held_by(*variables, self.makers.cell_of)
        return MemoryReply(
            busy=False,
            resident=resident,
            proportional=proportional,
            torch=torch_memory(self.report.device),
            held=held,
            in_all=in_all,
            exhausted=self.memory_history.exhausted if self.memory_history else None,
        )

    def _tell_estimate(self, asked: EstimateRequest) -> EstimateReply:
        names = asked.model, asked.optimizer, asked.batch
        try:
            return estimate(*(evaluate(name, self.shell.user_ns) for name in names))
        except Refusal as refusal:
            return EstimateReply(failure=f"it has no `{refusal.reply.why}`")
        except Exception as error:  # of the user's model, or of torch where it has no shapes
            return EstimateReply(failure=describe(error))

    def _describe_variables(self, asked: VariablesRequest, ran: int) -> VariablesReply:
        if self._runs_cell(ran):
            return VariablesReply(status="busy")
        values = {name: evaluate(name, self.shell.user_ns) for name in asked.names}
        variables = []
        with sys.modules["torch"].no_grad():
            for name, value in (values or dict(self._user_variables())).items():
                if self._runs_cell(ran):  # it comes first
                    return VariablesReply(status="busy")
                if not asked.only_trained or _is_trained(value):
                    variables.append(describe_variable(name, value, asked))
        return VariablesReply(
            status="ok",
            variables=variables,
            random=random_states(),
            cells=list(self.recent_cells),
            ran=self.ran,
        )

    def _user_variables(self) -> Iterator[tuple[str, Any]]:
        """Yield the user's variables, without functions, classes and modules."""
        names = [name for name in self.shell.user_ns if isinstance(name, str)]  # of any keys
        for name in sorted(names):
            value = self.shell.user_ns[name]
            hidden = name.startswith("_") or name in self.shell.user_ns_hidden
            if not hidden and not isinstance(value, _CODE):
                yield name, value

    def _hidden_variables(self) -> Iterator[tuple[str, Any]]:
        """Yield the last values of cells, which IPython keeps, and names with a leading `_`."""
        for number, value in list(self.shell.user_ns.get("_oh", {}).items()):
            yield f"Out[{number}]", value
        for name, value in list(self.shell.user_ns.items()):
            if isinstance(name, str) and name.startswith("_") and not isinstance(value, _CODE):
                yield name, value


def _is_trained(value: Any) -> bool:
    torch = sys.modules["torch"]
    return isinstance(value, (torch.nn.Module, torch.optim.Optimizer))
