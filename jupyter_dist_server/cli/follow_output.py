"""The output of a job, shown as it is written."""

from __future__ import annotations

import codecs
import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing

from ..jobs.file_changes import Wake
from ..jobs.job_command import log_paths
from ..jobs.log_reader import LogReader, Piece, fold
from ..jobs.store.job import Job
from ..jobs.store.store import Store
from .printing import StoppedNotice, printable
from .queue import refresh


def follow(store: Store, job: Job, log: LogReader, error: bool = False) -> Iterator[Piece]:
    """Yield the output of a job, or its standard error, until it has ended."""
    watched = ""
    notice = StoppedNotice(store)
    was_gone = False
    with closing(Wake([store.watched])) as wake:
        while True:
            job = store.get(job.id)
            log.path = log_paths(job)[error]  # it may have been renamed while it waited
            folder = os.path.dirname(log.path)
            if folder != watched and os.path.isdir(folder) and wake.watch(folder):
                watched = folder
            is_silent = True
            if job.has_output:
                for piece in read_on(log):
                    is_silent = False
                    yield piece
            if is_silent:
                notice.look()
                refresh(store)  # its dispatcher or its runner may have been killed
            if log.is_gone and not was_gone:
                told = (
                    f"{printable(log.path)} was deleted, so that output of job {job.label} is lost."
                )
                rest = "" if job.is_ended else " A new file of that name will be shown."
                print(f"jdist: {told}{rest}", file=sys.stderr, flush=True)
            was_gone = log.is_gone
            if job.is_ended:
                if job.started is not None and not was_gone and not os.path.exists(log.path):
                    print(f"jdist: {is_missing(job, log.path)}", file=sys.stderr, flush=True)
                return
            wake.wait(10.0)


def is_missing(job: Job, path: str) -> str:
    """Say that the output of a job is missing."""
    return f"The output of job {job.label} does not exist: {printable(path)} was deleted or moved."


def read_on(log: LogReader) -> Iterator[Piece]:
    """Yield what can be read now, and that the file was replaced."""
    while (piece := log.read()) and (piece.data or piece.replaced):
        yield piece


def show(pieces: Iterable[Piece], log: LogReader, *, raw: bool, as_json: bool) -> None:
    """Print an output; unless `raw`, without what progress bars wrote over."""
    if as_json:
        _show_as_json(pieces)
        return
    data = _data(pieces, log)
    for part in data if raw else fold(data):
        sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()


def _data(pieces: Iterable[Piece], log: LogReader) -> Iterator[bytes]:
    for piece in pieces:
        if piece.replaced:
            told = f"jdist: {printable(log.path)} was replaced; this is the new file."
            print(told, file=sys.stderr)
        yield piece.data
        sys.stdout.buffer.flush()


def _show_as_json(pieces: Iterable[Piece]) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for piece in pieces:
        if piece.replaced:
            decoder.reset()
        told = {
            "offset": piece.start,
            "next": piece.end,
            "size": piece.size,
            "replaced": piece.replaced,
            "text": decoder.decode(piece.data),
        }
        print(json.dumps(told), flush=True)
