"""A rank's answers about its variables, from a thread of its own, between cells."""

from __future__ import annotations

import sys
import types
from collections import deque
from collections.abc import Iterator
from typing import Any

import psutil

from ...common.protocol.ranks.memory_messages import (
    EstimateReply,
    EstimateRequest,
    MemoryReply,
    MemoryRequest,
)
from ...common.protocol.ranks.rank_messages import Activity
from ...common.protocol.ranks.variable_messages import VariablesReply, VariablesRequest
from ..rank_report import Reporter
from ..request_handlers import Asked, hears
from .describe import describe_variable
from .digest import random_states
from .long_answers import LongAnswers
from .makers import Makers
from .memory import estimate, held_by, torch_use
from .memory_history import MemoryHistory
from .value_handlers import Refusal, describe, evaluate

_CODE = (types.ModuleType, type, types.FunctionType, types.BuiltinFunctionType)
"""Types of what is not counted among variables."""


class VariableHandlers(LongAnswers):
    """What `RankKernel` answers about its variables.

    Attributes
    ----------
    recent_cells : deque
        The notebook's numbers of the last cells.
    ran : int
        How many cells there were.
    makers : Makers
        Which cells have made the variables.
    memory_history : MemoryHistory or None
        The allocations on its GPU; `None` without one.
    """

    shell: Any
    report: Reporter
    _state: Activity

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.recent_cells: deque[int] = deque(maxlen=100)
        self.ran = 0
        self.makers = Makers()
        self.memory_history: MemoryHistory | None = None

    @hears(VariablesRequest)
    def dist_variables_request(self, asked: Asked[VariablesRequest]) -> None:
        """Tell what variables hold."""
        self._begin_to_tell(self._tell_variables, asked)

    @hears(MemoryRequest)
    def dist_memory_request(self, asked: Asked[MemoryRequest]) -> None:
        """Tell what memory is used, and by which variables."""
        self._begin_to_tell(self._tell_memory, asked)

    @hears(EstimateRequest)
    def dist_estimate_request(self, asked: Asked[EstimateRequest]) -> None:
        """Tell how much memory a training step takes."""
        self._begin_to_tell(self._tell_estimate, asked)

    def _tell_variables(self, asked: VariablesRequest) -> VariablesReply:
        ran = self.ran
        try:
            reply = self._describe_variables(asked)
        except Refusal as refusal:
            reply = VariablesReply(status="missing", why=refusal.reply.why)
        except Exception as error:  # of the user's code, which an expression may run
            reply = VariablesReply(status="failed", why=describe(error))
        return VariablesReply(status="busy") if self._runs_cell(ran) else reply

    def _runs_cell(self, ran: int) -> bool:
        """Whether a cell runs, or has run since there were this many."""
        return self._state == "busy" or ran != self.ran

    def _tell_memory(self, _: MemoryRequest) -> MemoryReply:
        process = psutil.Process()
        resident, busy = process.memory_info().rss, self._state == "busy"
        proportional = getattr(process.memory_full_info(), "pss", None)
        if busy:  # torch counts under the lock of its allocator, which a GPU may hold for ever
            return MemoryReply(busy=True, resident=resident, proportional=proportional)
        held, in_all = held_by(
            self._user_variables(), self._hidden_variables(), self.makers.cell_of
        )
        return MemoryReply(
            busy=False,
            resident=resident,
            proportional=proportional,
            torch=torch_use(self.report.device),
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

    def _describe_variables(self, asked: VariablesRequest) -> VariablesReply:
        ran = self.ran
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
        """Yield what the user has assigned: no functions, classes or modules."""
        names = [name for name in self.shell.user_ns if isinstance(name, str)]  # of any keys
        for name in sorted(names):
            value = self.shell.user_ns[name]
            hidden = name.startswith("_") or name in self.shell.user_ns_hidden
            if not hidden and not isinstance(value, _CODE):
                yield name, value

    def _hidden_variables(self) -> Iterator[tuple[str, Any]]:
        """Yield the last values of cells, which IPython keeps, and what begins with `_`."""
        for number, value in list(self.shell.user_ns.get("_oh", {}).items()):
            yield f"Out[{number}]", value
        for name in [n for n in self.shell.user_ns if isinstance(n, str) and n.startswith("_")]:
            if not isinstance(value := self.shell.user_ns[name], _CODE):
                yield name, value


def _is_trained(value: Any) -> bool:
    """Whether it is a module or an optimizer."""
    torch = sys.modules["torch"]
    return isinstance(value, (torch.nn.Module, torch.optim.Optimizer))
