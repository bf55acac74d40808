"""The zygotes of one owner, one for each environment: all agents are forked from them.

So torch is imported once for many pools; see `agent.zygote`.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from ...common.background_tasks import Tasks
from ...common.patience import patience
from .agent_process import AgentProcess
from .zygote_process import ZygoteProcess

Key = tuple[str, frozenset[tuple[str, str]]]
"""An interpreter and the variables that its imports may depend on."""

DEFAULT_KEEP_WARM = 900.0
"""Seconds for which zygotes are kept while no pool runs."""
_MOST = 2
"""Zygotes that one owner keeps; each holds an environment's torch in memory."""
_CHANGING = frozenset(
    ["CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES", "JPY_SESSION_NAME", "OLDPWD", "PWD", "SHLVL", "_"]
)
"""Variables that differ between notebooks, but do not affect imports."""


def key_of(python: str, environment: dict[str, str]) -> Key:
    """Return what two pools must have in common to come from one zygote."""
    kept = ((name, value) for name, value in environment.items() if name not in _CHANGING)
    return python, frozenset(kept)


class ZygoteEnded(Exception):
    """A new zygote ended, or hung, before it could fork an agent."""

    def __init__(self, code: int) -> None:
        super().__init__(f"A zygote ended with code {code}")
        self.code = code


class ZygoteRegistry:
    """The zygotes of one owner, kept for `keep_warm` seconds while no pool runs.

    With 0, none is kept: it becomes the agent.
    """

    def __init__(self, keep_warm: float) -> None:
        self._keep_warm = keep_warm
        self._zygotes: dict[Key, ZygoteProcess] = {}
        self._end: asyncio.TimerHandle | None = None
        self._tasks = Tasks()

    async def start_agent(
        self, python: str, environment: dict[str, str], folder: Path, cwd: str, passed: list[int]
    ) -> AgentProcess:
        """Start the agent of the pool whose orders are in a folder, from a zygote.

        It gets the descriptors of its listening socket, its log, and its lease. Raises
        `ZygoteEnded` if a new zygote ended before it could fork.
        """
        key, stay = key_of(python, environment), bool(self._keep_warm)
        while True:
            zygote = self._zygotes.get(key)
            if is_new := not zygote or not zygote.is_usable or not stay:
                zygote = ZygoteProcess(python, environment, cwd, passed[1], self._tasks)
                if stay:
                    self._keep(key, zygote)
            assert zygote
            try:
                agent = await zygote.start_agent(folder, passed, stay)
            finally:
                if not stay:
                    zygote.retire()
            if agent:
                return agent
            if is_new:
                raise ZygoteEnded(await zygote.exit_code())

    def _keep(self, key: Key, zygote: ZygoteProcess) -> None:
        self._zygotes = {old: one for old, one in self._zygotes.items() if one.is_usable}
        while len(self._zygotes) >= _MOST:
            self._zygotes.pop(next(iter(self._zygotes))).retire()
        self._zygotes[key] = zygote

    def set_idle(self, idle: bool) -> None:
        """Note whether no pool of this owner runs; then zygotes end after a while."""
        if self._end:
            self._end.cancel()
            self._end = None
        if idle and self._zygotes:
            self._end = asyncio.get_running_loop().call_later(self._keep_warm, self.drop)

    def drop(self) -> None:
        """End all of them; agents that they have forked go on."""
        for zygote in self._zygotes.values():
            zygote.retire()
        self._zygotes.clear()

    async def close(self) -> None:
        """End all of them at once, without the exit codes of their agents."""
        for zygote in self._zygotes.values():
            zygote.close()
        self._zygotes.clear()
        await self._tasks.end(patience.cleanup)
