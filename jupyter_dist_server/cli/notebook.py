"""``jdist notebook``."""

from __future__ import annotations

import argparse

from ..jobs.submit.job_options import add_job_options
from .submit import add_answer_options, run_submit

run_notebook = run_submit


def add_notebook_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist notebook``."""
    parser.add_argument("notebook", metavar="NOTEBOOK", help="a file.ipynb, which stays as it is")
    add = parser.add_argument
    add("-P", "--parameter", action="append", metavar="NAME=VALUE", help="set in the notebook")
    add("-O", "--output-notebook", metavar="FILE", help="what to write; default NOTEBOOK-%%j.ipynb")
    add_answer_options(parser)
    add_job_options(parser)
