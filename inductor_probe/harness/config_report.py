"""The configs of a Triton kernel as a table, and in a sentence."""

from __future__ import annotations

import math

from inductor_probe.harness.configs import ConfigTime

WORTH_SAYING = 0.01


def config_table(name: str, found: list[ConfigTime]) -> str:
    """Lay out the configs of a kernel, fastest first; `*` marks the one that inductor chose."""
    keys = list(dict.fromkeys(key for each in found for key in each.values))
    chosen = next((each for each in found if each.chosen), None)
    rows = [["", *keys, "us", "mad", "of chosen", "regs", "spills", "shared", "from"]]
    for each in found:
        plain = each.plain()
        timed = ["", "", ""]
        if each.samples:
            ratio = each.median() / chosen.median() if chosen and chosen.samples else math.nan
            timed = [f"{plain['median'] * 1e6:.2f}", f"{plain['mad'] * 1e6:.2f}", f"{ratio:.3f}x"]
        rows.append(
            [
                "*" if each.chosen else "",
                *(str(each.values.get(key, "")) for key in keys),
                *timed,
                *(
                    "" if value is None else str(value)
                    for value in (each.registers, each.spills, each.shared)
                ),
                each.origin,
            ]
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [f"[ configs of {name} ]"]
    for number, row in enumerate(rows):
        cells = (
            cell.ljust(width) if at in (0, len(row) - 1) else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join(cells).rstrip())
        note = found[number - 1].note if number else None
        if note:
            lines.append(f"       {note}")
    return "\n".join(lines)


def configs_sentence(found: list[ConfigTime]) -> str:
    """Say in words whether another config is faster than the one that inductor chose."""
    timed = [each for each in found if each.samples]
    chosen = next((each for each in timed if each.chosen), None)
    left = [each for each in found if not each.samples]
    missing = f"; {len(left)} of {len(found)} have no time" if left else ""
    if chosen is None:
        return f"the config that inductor chose has no time{missing}"
    best = timed[0]
    ratio = best.median() / chosen.median()
    if best.chosen or ratio > 1 - WORTH_SAYING:
        least = f"{100 * WORTH_SAYING:g} %"
        return f"no config is more than {least} faster than the one that inductor chose{missing}"
    named = " ".join(f"{key}={value}" for key, value in best.values.items())
    return f"{named} takes {ratio:.3f}x the time of the config that inductor chose{missing}"
