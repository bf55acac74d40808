"""What jobs are told about their end: memory, exit codes, unused GPUs, long output."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest

from jupyter_dist_server.cli.show_and_logs import gpu_use
from jupyter_dist_server.jobs.log_reader import LogReader
from jupyter_dist_server.jobs.runner.log_limit import LogLimit
from jupyter_dist_server.jobs.store.attempt import Attempt, GpuUsage
from jupyter_dist_server.jobs.usage_reader import EVERY, add_reading

from ..fake_nvml.build import State
from ..waiting import wait_for
from .queue_driver import Queue

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."


def test_exit_137_is_out_of_memory_only_if_the_kernel_says_so(queue: Queue) -> None:
    by_code = queue.ended(queue.submit("-c", "0", "sh", "-c", "exit 137"))
    assert (by_code["state"], by_code["reason"]) == ("FAILED", "RaisedSignal:9")
    assert by_code["exit_code"] == 137 and "exit code 137" in by_code["detail"]
    killed = queue.ended(queue.submit("-c", "0", "sh", "-c", "kill -KILL $$"))
    assert (killed["state"], killed["reason"]) == ("FAILED", "RaisedSignal:9")


def test_exit_137_of_what_was_ended_by_request(queue: Queue) -> None:
    code = "trap 'exit 137' TERM; echo up; while :; do sleep 0.05; done"
    limited = queue.submit("-c", "0", "-t", "0:01", "sh", "-c", code)
    assert queue.ended(limited)["state"] == "TIMEOUT"
    cancelled = queue.submit("-c", "0", "sh", "-c", code)
    wait_for(lambda: queue.show(cancelled)["started"] and queue.output(cancelled), "its output")
    queue.run("cancel", cancelled)
    assert queue.ended(cancelled)["state"] == "CANCELLED"


def test_a_rank_that_was_killed_and_that_torchrun_has_replaced_is_named(queue: Queue) -> None:
    script = queue.folder / "train.py"
    script.write_text(
        "import os, signal\n"
        "if os.environ['TORCHELASTIC_RESTART_COUNT'] == '0':\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    path = f"PATH={Path(sys.executable).parent}:{os.environ['PATH']}"
    job = queue.submit("--torchrun", "--env", path, "--env", "PET_MAX_RESTARTS=1", "train.py")
    found = queue.ended(job)
    assert (found["state"], found["exit_code"]) == ("COMPLETED", 0)
    assert found["detail"].startswith("Rank 0 (pid ")
    assert found["detail"].endswith(") was ended by signal 9 meanwhile.")


def test_memory_of_gpus_and_of_the_machine(queue: Queue) -> None:
    text = f"GPU 3: {OOM} GPU 0 has a total capacity of 139.80 GiB of which 11.20 GiB is free."
    gpu = queue.ended(queue.submit("-c", "0", "sh", "-c", f"echo '{text}' >&2; exit 1"))
    assert (gpu["state"], gpu["reason"]) == ("OUT_OF_MEMORY", "OutOfMemory")
    assert gpu["detail"] == f"GPU memory ran out: GPU 3: {OOM}"
    said = queue.run_program("run", "-c", "0", "sh", "-c", f"echo '{OOM}'; exit 1", code=1)
    assert "is OUT_OF_MEMORY. GPU memory ran out" in said
    code = "x = bytearray(400 << 20)"
    limited = queue.ended(queue.submit("--mem", "200M", "python", "-c", code))
    assert (limited["state"], limited["exit_code"]) == ("OUT_OF_MEMORY", 1)
    assert "--mem" in limited["detail"]
    assert queue.ended(queue.submit("--mem", "1G", "python", "-c", code))["state"] == "COMPLETED"


def test_some_exit_codes_start_a_job_again(queue: Queue) -> None:
    code = "[ $JDIST_ATTEMPT = 3 ] || exit 75"
    job = queue.submit("-c", "0", "--requeue-on", "75,85", "sh", "-c", code)
    wait_for(lambda: queue.show(job)["state"] == "COMPLETED", "its third attempt")
    found = queue.show(job)
    assert [one["exit_code"] for one in found["attempts"]] == [75, 75, 0]
    assert "no list of exit codes" in queue.run("submit", "--requeue-on", "x", "true", code=2)


def test_memory_that_ran_out_before_says_nothing_of_an_attempt(queue: Queue) -> None:
    code = f"[ $JDIST_ATTEMPT != 1 ] || echo '{OOM}'; exit 3"
    job = queue.submit("-c", "0", "-o", "kept", "sh", "-c", code)
    assert queue.ended(job)["state"] == "OUT_OF_MEMORY"
    queue.run("requeue", job)
    wait_for(lambda: queue.show(job)["attempt"] == 2 and queue.show(job)["ended"], "its end")
    assert (queue.show(job)["state"], queue.show(job)["exit_code"]) == ("FAILED", 3)
    other = ["-c", "0", "-o", "kept", "--open-mode", "append", "sh", "-c"]
    assert queue.ended(queue.submit(*other, "exit 3"))["state"] == "FAILED"
    emptied = "echo CUDA out of memory > kept; exit 3"
    assert queue.ended(queue.submit(*other, emptied))["state"] == "OUT_OF_MEMORY"


def test_an_exit_code_starts_a_job_again_whose_memory_ran_out(queue: Queue) -> None:
    code = f"[ $JDIST_ATTEMPT = 1 ] || exit 0; echo '{OOM}'; exit 75"
    job = queue.ended(queue.submit("-c", "0", "--requeue-on", "75", "sh", "-c", code))
    assert (job["state"], job["attempt"]) == ("COMPLETED", 2)


def test_a_command_is_run_at_the_end(queue: Queue) -> None:
    command = 'echo "$JDIST_JOB_LABEL $JDIST_JOB_STATE $JDIST_JOB_EXIT_CODE" > told'
    queue.submit("-c", "0", "--notify", command, "sh", "-c", "exit 3")
    wait_for((queue.folder / "told").exists, "the command")
    wait_for(lambda: (queue.folder / "told").read_text() == "1 FAILED 3\n", "its output")


def test_gpus_that_were_not_used_are_named(
    queue: Queue, fake_nvml: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(EVERY, "0.1")
    fake_nvml.write(
        **{"gpus": 2, "memory": 80 << 30, "1.utilization": 60, "1.memory_used": 7 << 30}
    )
    code = "while [ ! -e go ]; do sleep 0.05; done"
    one = queue.submit("--gpu-ids", "0", "sh", "-c", code)
    two = queue.submit("--gpu-ids", "1", "--force", "sh", "-c", code)

    def readings(job: str) -> int:
        return sum(
            gpu["samples"] for one in queue.show(job)["attempts"] for gpu in one["usage"].values()
        )

    wait_for(lambda: readings(one) > 3 and readings(two) > 3, "readings")
    told = {gpu["index"]: gpu for gpu in json.loads(queue.run("info", "--json"))["gpus"]}
    ((at, load, memory), *_) = next(iter(queue.show(two)["attempts"][0]["usage"].values()))["curve"]
    assert (load, memory) == (60, 7 << 30) and abs(time.time() - at) < 600
    assert told["0"]["idle_since"] and not told["1"]["idle_since"]
    (queue.folder / "go").touch()
    assert queue.ended(one)["detail"] == "It asked for a GPU and did not use it."
    assert queue.ended(two)["detail"] == ""
    assert "GPU load 60 % (peak 60 %), GPU memory up to 7 GiB" in queue.run("show", two)
    assert "60 %  7 GiB" in queue.run("history")
    wait_for(lambda: not queue.processes("dist-sampler"), "the sampler's end")


def test_the_middle_of_a_long_output_is_cut_out(tmp_path: Path) -> None:
    path = tmp_path / "log"
    limit = LogLimit(str(path), 400_000)
    with path.open("ab") as log:
        log.write(b"first\n" + b"x" * 1_000_000 + b"\n")
        log.flush()
        limit.look()
        log.write(b"last\n")
    assert os.stat(path).st_blocks * 512 < 400_000
    text = b"".join(LogReader(str(path)))
    assert text.startswith(b"first\n") and text.endswith(b"last\n")
    assert b"bytes of output were cut out here" in text and b"\0" not in text
    assert len(text) < 400_000


def test_a_job_that_fills_its_log_goes_on(queue: Queue) -> None:
    code = "import sys\nfor _ in range(300): sys.stdout.write('x' * 99_999 + '\\n')\nprint('done')"
    job = queue.submit(
        "-c", "0", "--log-max", "1M", "python", "-c", code + "\nimport time; time.sleep(2)"
    )
    assert queue.ended(job)["state"] == "COMPLETED"
    assert os.stat(queue.folder / f"jdist-{job}.out").st_blocks * 512 < 2 << 20
    said = queue.run_program("logs", job)
    assert "done\n" in said and "cut out here" in said


def test_hours_and_peaks_of_gpus_are_of_all_attempts() -> None:
    usage = {"GPU-0": GpuUsage(memory_first=0, memory_peak=7 << 30, load_peak=60, samples=3)}
    first = Attempt(1, 1, "NODE_FAIL", "None", 100.0, 1900.0, None, None, 2, usage)
    second = Attempt(1, 2, "COMPLETED", "None", 5000.0, 5900.0, 0, None, 4, {})
    assert gpu_use([first, second]) == ("2.00", "60 %", "7 GiB")
    assert gpu_use([]) == ("", "", "")


def test_a_curve_covers_an_attempt_of_any_length_in_few_points() -> None:
    seen = GpuUsage(memory_first=0)
    for reading in range(10_000):
        load = None if reading < 10 else 100 if reading < 5000 else 0
        add_reading(seen, load, reading, 1e9 + 10 * reading)
        assert len(seen.curve) <= 160
    assert seen.samples == 10_000 and seen.per_point == 64
    assert [point.at for point in seen.curve] == [10**9 + 640 * place for place in range(157)]
    assert [point.load for point in seen.curve[:78]] == [100] * 78
    assert seen.curve[78].load == 12.5 and seen.curve[-1].load == 0
    assert [point.memory for point in seen.curve[-2:]] == [64 * 156 - 1, 9999]
