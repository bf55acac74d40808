"""The magics that show what the ranks do, and why they wait."""

from __future__ import annotations

from functools import partial

from IPython.core.magic import line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments

from ...client.ranks.spied_stack import native_stacks
from ...verdicts.explain_hang import explain, explain_hang
from ...verdicts.script_text import stacks_text, verdict_text
from ..cells.cell_wait import evidence_on, explain_wait
from ..output.remedies import say_lost_nodes
from .base import DistMagics
from .option_parser import no_options, parse, plain_usage
from .reports.gpu_table import gpu_rows
from .reports.pool_status import status_table
from .save_evidence import save_evidence


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
    @argument(
        "--save",
        metavar="FILE",
        help="write what the ranks tell to FILE.json, for a bug report, or dumps for torchfrtrace "
        "to a folder",
    )
    @argument("--native", action="store_true", help="show stacks with frames in C, by py-spy")
    @line_magic
    def dist_why(self, line: str) -> None:
        """Say why ranks wait: which rank is missing in which collective, and what it does.

        Examples::

            %dist_why
            %dist_why --native
            %dist_why --save why.json
            %dist_why --save dumps
        """
        options = parse(self.dist_why, line)
        _, client = self.pool.require()
        look = partial(evidence_on, client, signal=True)
        verdict, evidence = self.pool.loop.run(explain(look))
        snapshot = client.link.snapshot
        ranks = snapshot.ranks if snapshot else []
        pids = {rank.rank: rank.pid for rank in ranks if rank.pid and not rank.node}
        shown = evidence
        if options.native:
            evidence, shown = self.pool.loop.run(native_stacks(evidence, pids))
            verdict = verdict and explain_hang(evidence)
        if options.save:
            print(self.pool.loop.run(save_evidence(client, evidence, options.save)))
        print(verdict_text(verdict, evidence))
        for remedy in verdict.remedies if verdict else []:
            print(f"{remedy.label}: {remedy.magic}")
        if options.native:
            print(f"\n{stacks_text(shown, pids)}")
