"""A notebook with two ranks, for `test_surroundings`: run as a program in each surrounding."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from ..environment import environment
from ..notebook_driver import plain_notebook


def main(folder: Path) -> None:
    """Start ranks, use them, and end them; say which step fails."""
    notebook = plain_notebook(environment(folder / "home"), folder)
    try:
        notebook.ok("%load_ext jupyter_dist_server")
        started = notebook.ok("%dist_init -n 2").shown
        assert "2 ranks ready" in started, started
        groß = "t = torch.ones(2**20)\ndist.all_reduce(t)\ngroß = t.sum().item()"
        said = notebook.ok(f"%%distributed\n{groß}\nprint('größte', groß)").lines
        assert said == [f"[0-1] größte {2.0**21}"], said
        loader = "DataLoader(torch.arange(8.0), num_workers=1, multiprocessing_context='fork')"
        code = f"from torch.utils.data import DataLoader\nprint(sum(map(float, {loader})))"
        print(notebook.run(f"%%distributed\n{code}").shown)
        print(notebook.ok("%dist_pull t\nprint(tuple(t.shape))").text)
        print(notebook.ok("%dist_status").text)
        print(notebook.ok("%dist_shutdown").shown)
    finally:
        notebook.close()
    left = list(Path(tempfile.gettempdir()).glob("jdist-*"))
    assert not left, left
    print("done")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
