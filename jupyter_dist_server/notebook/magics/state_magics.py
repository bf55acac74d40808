"""The magics that show what the ranks do, and why they wait."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import msgspec
from IPython.core.magic import line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments

from ...common.errors import DistError
from ...verdicts.explain_hang import explain
from ...verdicts.what_ranks_do import busy_sentence
from ..cells.wait_watch import evidence_on, explain_wait
from ..output.remedies import say_lost_nodes
from .base import DistMagics
from .option_parser import no_options, parse, plain_usage
from .reports.gpu_table import gpu_rows
from .reports.pool_status import status_table


@magics_class
class StateMagics(DistMagics):
    """What the ranks of this notebook do."""

    @plain_usage
    @line_magic
    def dist_status(self, line: str) -> None:
        """Show where each rank runs, and what it does.

        Examples::

            %dist_status
        """
        no_options("dist_status", line)
        record, said, dead = self.pool.status()
        client = self.pool.require()[1]
        gpus = self.pool.loop.run(gpu_rows(record, client.link))
        print(status_table(record, said, dead, gpus))
        if lost := say_lost_nodes(client):
            print(f"\n{lost}")
        if verdict := explain_wait(client, self.pool.loop):
            print(f"\n{verdict.text}")

    @plain_usage
    @magic_arguments()
    @argument("--save", metavar="FILE", help="write what the ranks tell as JSON, for a bug report")
    @line_magic
    def dist_why(self, line: str) -> None:
        """Say why ranks wait: which rank is missing in which collective, and what it does.

        Examples::

            %dist_why
            %dist_why --save why.json
        """
        options = parse(self.dist_why, line)
        _, client = self.pool.require()
        look = partial(evidence_on, client, signal=True)
        verdict, evidence = self.pool.loop.run(explain(look))
        if options.save:
            try:
                saved = msgspec.json.format(msgspec.json.encode(evidence))
                Path(options.save).expanduser().write_bytes(saved)
            except OSError as error:
                raise DistError(
                    "file_unwritable",
                    f"{options.save} cannot be written: {error.strerror}.",
                    "Choose an existing folder with write permission.",
                ) from error
        if verdict is None:
            busy = [busy_sentence(rank, evidence[rank]) for rank in sorted(evidence)]
            print(" ".join(["No rank waits for another.", *filter(None, busy)]))
            return
        print(verdict.text)
        for remedy in verdict.remedies:
            print(f"{remedy.label}: {remedy.magic}")
