"""Questions to NVML, asked from a process that lives through what drivers do."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ..fake_nvml.build import State
from ..waiting import PATIENCE

# A process that answers expressions about the module, one a line.
ANSWERER = """
import json, sys
from jupyter_dist_server.gpus import nvml
from jupyter_dist_server.gpus.nvml import *
def power(index):
    handle = query("nvmlDeviceGetHandleByIndex", index)
    return query("nvmlDeviceGetPowerUsage", handle)
def uuids():
    return [device.uuid for device in devices()[0]]
kept = {}
for line in sys.stdin:
    answer = eval(line)
    print(json.dumps([type(answer).__name__, answer], default=str), flush=True)
"""

Ask = Callable[[str], Any]


@pytest.fixture
def ask(fake_nvml: State) -> Iterator[Ask]:
    """Return a function that evaluates an expression in a process of its own."""
    fake_nvml.write(gpus=2)
    process = subprocess.Popen(
        [sys.executable, "-c", ANSWERER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin
    assert process.stdout
    stdin, stdout = process.stdin, process.stdout

    def ask(expression: str) -> Any:
        print(expression, file=stdin, flush=True)
        kind, answer = json.loads(stdout.readline())
        return f"failure: {answer}" if kind == "Failure" else answer

    yield ask
    stdin.close()
    assert process.wait(timeout=PATIENCE) == 0
    stdout.close()


@pytest.mark.parametrize(
    ("state", "answer"),
    [
        ("250000", 250000),
        ("!unsupported", "failure: unsupported"),
        ("!missing", "failure: unsupported"),
        ("!permission", "failure: no permission"),
        ("!lost", "failure: lost"),
        ("!reset", "failure: reset required"),
        ("!1", "failure: driver unloaded"),
        ("!6", "failure: no data yet"),
        ("!2", "failure: invalid argument"),
        ("!26", "failure: unsupported"),
        ("!unknown", "failure: unknown: Unknown Error"),
        ("!timeout", "failure: unknown: Timeout"),
    ],
)
def test_an_answer_or_a_word(fake_nvml: State, ask: Ask, state: str, answer: object) -> None:
    assert ask("start()") is None
    fake_nvml.write(gpus=2, **{"0.power": 1, "1.power": state})
    assert ask("power(1)") == answer
    assert ask("power(0)") == 1, "one GPU's trouble is not another's"


def test_what_pynvml_or_the_library_does_not_have(ask: Ask) -> None:
    ask("start()")
    assert ask("query('nvmlDeviceGetSomethingNew', 1)") == "failure: unsupported"
    ask("kept.update(gpu=query('nvmlDeviceGetHandleByIndex', 0))")
    assert ask("query('nvmlDeviceGetSerial', kept['gpu'])") == "failure: unsupported"


def test_a_driver_that_is_loaded_anew(fake_nvml: State, ask: Ask) -> None:
    """GPUs come back in another order, and are known by their UUIDs."""
    fake_nvml.write(gpus=2, reload=1, **{"0.uuid": "GPU-a", "1.uuid": "GPU-b"})
    assert ask("start()") is None
    assert ask("uuids()") == ["GPU-a", "GPU-b"]
    assert ask("kept.update(gpu=query('nvmlDeviceGetHandleByIndex', 0))") is None

    fake_nvml.write(gpus=3, reload=2, **{"0.uuid": "GPU-b", "1.uuid": "GPU-c", "2.uuid": "GPU-a"})
    assert ask("devices()") == "failure: driver unloaded"
    assert ask("power(0)") == "failure: driver unloaded"
    assert ask("stop()") is None
    assert ask("start()") is None
    assert ask("uuids()") == ["GPU-b", "GPU-c", "GPU-a"]
    assert ask("query('nvmlDeviceGetUUID', kept['gpu'])") == "failure: invalid argument"


def test_a_driver_that_is_away_for_a_while(fake_nvml: State, ask: Ask) -> None:
    fake_nvml.write(gpus=2, init_error=9)
    why = ask("start()")
    assert why and ask("start()") == why
    fake_nvml.write(gpus=2)
    assert ask("start()") is None
    assert ask("uuids()") == ["GPU-fake-0", "GPU-fake-1"]
    assert ask("stop()") is None
    assert ask("devices()") == "failure: driver unloaded"


def test_mig_mode_is_changed_while_we_watch(fake_nvml: State, ask: Ask) -> None:
    ask("start()")
    assert ask("uuids()") == ["GPU-fake-0", "GPU-fake-1"]
    fake_nvml.update(**{"0.mig": "1g.10gb,1g.10gb"})
    assert ask("uuids()") == ["MIG-fake-0-0", "MIG-fake-0-1", "GPU-fake-1"]
    assert ask("[device.parent for device in devices()[0]]") == ["GPU-fake-0", "GPU-fake-0", None]
    fake_nvml.update(**{"0.mig": None})
    assert ask("uuids()") == ["GPU-fake-0", "GPU-fake-1"]
