"""A notebook as a job, by papermill; its pool has the job's GPUs."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest

from jupyter_dist_server.jobs.runner.run_notebook import read_value

from ..fake_nvml.build import State
from ..waiting import wait_for
from .queue_driver import Queue

CELLS = [
    "lr = 1.0",
    "%load_ext jupyter_dist_server\nprint('lr', lr * 2)",
    "%dist_init",
    "%%distributed\nimport time\nif rank == 0:\n    print('epoch 0')\n    time.sleep(0.5)\n"
    "print('rank', rank, 'of', world_size, 'on', gpu_id)",
]


@pytest.fixture
def notebook(queue: Queue) -> Path:
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    cells[0].metadata["tags"] = ["parameters"]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    path = queue.folder / "train.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)
    return path


def text_of(path: Path) -> str:
    """Return all text; a rank's that was ahead of the others' is a display."""
    cells = nbformat.read(path, as_version=4).cells
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    return "".join(o.get("text") or o.get("data", {}).get("text/plain", "") for o in outputs)


def test_a_notebook_runs_on_the_gpus_of_its_job(
    queue: Queue, notebook: Path, fake_nvml: State
) -> None:
    fake_nvml.write(gpus=8, memory=80 << 30)
    said = queue.run("notebook", "train.ipynb", "-P", "lr=0.1", "--gpu-ids", "5,6")
    assert said.startswith("Submitted job 1.\n")
    notebook.write_text("changed meanwhile")
    job = queue.ended("1")
    assert job["state"] == "COMPLETED", queue.output("1")
    printed = text_of(queue.folder / "train-1.ipynb")
    assert "lr 0.2\n" in printed
    assert "rank 0 of 2 on 5" in printed and "rank 1 of 2 on 6" in printed
    log = queue.output("1")
    assert "lr 0.2\n" in log and "epoch 0\n" in log and "rank 1 of 2 on 6" in log
    leases = "jupyter-dist/*/leases/*"  # its runner removes them once it has said how it ended
    wait_for(lambda: not list(queue.folder.glob(leases)), "the end of the leases")


def test_a_cell_that_fails_fails_the_job_and_what_came_before_is_saved(queue: Queue) -> None:
    cells = [nbformat.v4.new_code_cell(source) for source in ("print('before')", "1 / 0")]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    written = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(written, queue.folder / "fails.ipynb")
    job = queue.ended(queue.run("notebook", "--parsable", "-O", "out.ipynb", "fails.ipynb").strip())
    assert (job["state"], job["exit_code"]) == ("FAILED", 1)
    assert "Cell 2 failed: ZeroDivisionError: division by zero" in queue.output("1")
    assert "before" in text_of(queue.folder / "out.ipynb")
    assert "fails.ipynb" in queue.run("show", "1")


def test_bad_notebooks_are_refused(queue: Queue) -> None:
    assert "none.ipynb does not exist" in queue.run("notebook", "none.ipynb", code=2)
    (queue.folder / "a.ipynb").write_text("{}")
    assert "not “lr”" in queue.run("notebook", "a.ipynb", "-P", "lr", code=2)
    for text in ("print(1)\n", "[]", "\xff"):
        (queue.folder / "a.txt").write_text(text, encoding="latin-1")
        assert "a.txt is not a notebook: " in queue.run("notebook", "a.txt", code=2)


def test_values_of_parameters() -> None:
    values = ["1", "0.5", "true", "None", "[1, 2]", "sgd", "a=b", "1e-3"]
    assert [*map(read_value, values)] == [1, 0.5, True, None, [1, 2], "sgd", "a=b", 0.001]


def test_a_job_can_submit_jobs_that_outlive_it(queue: Queue) -> None:
    jdist = queue.program()
    outer = queue.submit("-c", "0", "sh", "-c", f"{jdist} submit -c 0 sleep 2; echo done")
    assert queue.ended(outer)["state"] == "COMPLETED"
    assert queue.ended("2")["state"] == "COMPLETED"
    assert os.path.exists(queue.folder / "jdist-2.out")


def test_a_notebook_runs_in_the_kernel_that_is_named(queue: Queue) -> None:
    written = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("print('here')")])
    written.metadata["kernelspec"] = {"name": "not-there", "display_name": "None"}
    nbformat.write(written, queue.folder / "moved.ipynb")
    job = queue.run("notebook", "--parsable", "--kernel", "python3", "moved.ipynb").strip()
    assert queue.ended(job)["state"] == "COMPLETED", queue.output(job)
    assert text_of(queue.folder / f"moved-{job}.ipynb") == "here\n"


@pytest.mark.parametrize("whom", ["job", "runner"])
def test_a_kernel_listens_in_a_private_folder_that_goes_with_the_job(
    queue: Queue, leases: Path, monkeypatch: pytest.MonkeyPatch, whom: str
) -> None:
    monkeypatch.setenv("TMPDIR", str(leases.parent))  # names of sockets must be short
    code = "open('up', 'w').close()\nimport time\ntime.sleep(1000)"
    written = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbformat.write(written, queue.folder / "long.ipynb")
    job = queue.run("notebook", "--parsable", "--kernel", "python3", "long.ipynb").strip()
    wait_for(lambda: (queue.folder / "up").exists(), "the kernel")
    (folder,) = leases.parent.glob("kernel-*")
    assert folder.stat().st_mode & 0o77 == 0
    files = {file.name: file.is_socket() for file in folder.iterdir()}
    assert files == {"kernel.json": False} | {f"kernel-{number}": True for number in range(1, 6)}
    if whom == "job":
        queue.run("cancel", "--now", job)
    else:
        (runner,) = queue.processes("dist-runner")
        runner.kill()
        wait_for(lambda: queue.show(job)["state"] == "NODE_FAIL", "the repair")
    wait_for(lambda: not folder.exists(), "the removal of the folder")
