"""Numbers the way people read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from inductor_probe.catalogue.templates import counted
from inductor_probe.model.ir import Dim
from inductor_probe.model.layouts import Symbol

__all__ = [
    "NO_BREAK", "bytes_text", "bytes_were", "bytes_with", "counted", "dims_text", "duration", "first_names",
    "folded_names", "one_word", "rate_text", "symbols_text", "table_symbols", "three_digits",
]  # fmt: skip
"""With `counted`, which templates need, too."""

NO_BREAK = "\xa0"
_KIB = 1024


def bytes_text(size: Dim | None) -> str:
    """`4.04 MiB`; a symbolic size is shown as it is, an unknown one as `?`."""
    if size is None:
        return "?"
    if isinstance(size, str):
        return f"{size} B"
    if size < _KIB:
        return f"{size} B"
    value = float(size)
    unit = ""
    for prefix in "KMGT":
        value, unit = value / _KIB, f"{prefix}iB"
        if value < _KIB:
            break
    return f"{three_digits(value)} {unit}"


def three_digits(value: float) -> str:
    """Return a number with three digits, and no exponent where it has more: `1.25`, `1000` (not `1e+03`)."""
    return f"{value:.0f}" if abs(value) >= 999.5 else f"{value:.3g}"


def bytes_were(size: Dim | None, recorded: int | None) -> str:
    """`84 B` of a symbolic size whose value was recorded, else as `bytes_text`: for tables."""
    return bytes_text(size if recorded is None else recorded)


def bytes_with(size: Dim | None, recorded: int | None, symbols: Sequence[Symbol]) -> str:
    """`4*s77*s27 B (84 B with s77 = 3, s27 = 7)`: for pages."""
    if recorded is None:
        return bytes_text(size)
    values = ", ".join(f"{symbol.name} = {symbol.value}" for symbol in symbols)
    return f"{size} B ({bytes_text(recorded)} with {values})"


def symbols_text(symbols: Iterable[Symbol]) -> str:
    """`s77 = arg2_1.size(0), was 3; u0, known when the graph runs`; each once."""
    return "; ".join(map(_symbol, dict.fromkeys(symbols)))


def table_symbols(symbols: Iterable[Symbol]) -> str:
    """Return what the symbols in a table's bytes stand for; empty for none."""
    named = tuple(dict.fromkeys(symbols))
    if any(symbol.value is not None for symbol in named):
        return f"{symbols_text(named)} (bytes are with these values)"
    return symbols_text(named)


def _symbol(symbol: Symbol) -> str:
    source = f" = {symbol.source}" if symbol.source else ""
    if symbol.value is not None:
        return f"{symbol.name}{source}, was {symbol.value}"
    return f"{symbol.name}{source}" if source else f"{symbol.name}, known when the graph runs"


def dims_text(dims: tuple[Dim, ...] | None) -> str:
    """`[4, 3, 345, 256]`, `?` when not known."""
    return "?" if dims is None else f"[{', '.join(map(str, dims))}]"


def first_names(names: Sequence[str], most: int = 24) -> str:
    """`a, b and 3 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def folded_names(names: Sequence[str], where: str, most: int = 12) -> str:
    """`op0, op1, ... (100: probe nodes --kernel K)`: the members of a foreach node, `where` all are shown."""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:2])}, ... ({len(names)}: {where})"


def one_word(text: str) -> str:
    """Return a command as one word of a sentence for a terminal, which breaks it so that it can be copied."""
    return text.replace(" ", NO_BREAK)


def duration(seconds: float) -> str:
    """Say a time with four digits: `12.34 us`."""
    size, unit = next((each for each in ((1.0, "s"), (1e-3, "ms")) if seconds >= each[0]), (1e-6, "us"))
    number = seconds / size
    return f"{number:.{max(0, 4 - len(str(int(number))))}f} {unit}" if number == number else "-"  # noqa: PLR0124


def rate_text(rate: float | None, unit: str) -> str:
    """`48.3 GB/s`, `2.15 GFLOP`; nothing where not known."""
    if rate is None:
        return ""
    units = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
    size, prefix = next((step for step in units if rate >= step[0]), (1.0, ""))
    return f"{three_digits(rate / size)} {prefix}{unit}"
