"""``jdist notebook``."""

from __future__ import annotations

import argparse
import os

from ..jobs.store.store import Store
from ..jobs.submit.job_options import add_job_options
from ..jobs.submit.job_request import JobRequest
from ..jobs.submit.prepare import prepare


def add_notebook_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist notebook``."""
    parser.add_argument("notebook", metavar="NOTEBOOK", help="a file.ipynb, which stays as it is")
    add = parser.add_argument
    add("-P", "--parameter", action="append", metavar="NAME=VALUE", help="set in the notebook")
    add("-O", "--output-notebook", metavar="FILE", help="what to write; default NOTEBOOK-%%j.ipynb")
    add("--parsable", action="store_true", help="print the id alone")
    add_job_options(parser)


def run_notebook(options: argparse.Namespace, store: Store) -> int:
    """Queue a notebook."""
    jobs = prepare(JobRequest.of(options), store, os.getcwd()).submit(store)
    if options.parsable:
        print(jobs[0].id)
    elif len(jobs) == 1:
        print(f"Submitted job {jobs[0].label}.")
    else:
        print(f"Submitted jobs {jobs[0].label} … {jobs[-1].label}.")
    return 0
