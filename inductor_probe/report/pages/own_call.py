"""The user's own calls: what each takes against eager, how that was timed, and what is to be known of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inductor_probe.model.own_call import NoOwnCall, OwnCall
from inductor_probe.report.document import Block, Line
from inductor_probe.report.pages.call_parts import call_parts_table
from inductor_probe.report.words.own_call import how_timed, own_remark, own_sentence, why_no_own_call

_MARGIN = 0.01


def own_lines(calls: Sequence[OwnCall], why: NoOwnCall | None, margin: float = _MARGIN) -> Iterator[Block]:
    """Yield a sentence for each call and what it consists of, and why others were not timed."""
    for call in calls:
        yield Line((f"{own_sentence(call, margin)}.", "bold"))
        yield Line((f"{how_timed(call)}.", "dim"))
        for remark in call.remarks:
            yield Line([("warning: ", "yellow"), own_remark(remark)])
        if call.parts is not None:
            yield from call_parts_table(call.parts)
    if why is not None:
        yield Line((f"{why_no_own_call(why)}.", "dim"))
