"""Where a text may be broken or cut: between words, and inside of a long one at its separators alone.

A command (`units.one_word`) is one word, too: where it is wider than the terminal, its next line goes on as a
shell's does, so that it can be copied.

`cpp_fused_add_0` has the parts `cpp_`, `fused_`, `add_` and `0`; `torch/_inductor/ir.py:12` has `torch/`,
`_inductor/`, `ir.`, `py:` and `12`. A part is broken only where it alone is wider than all the room there is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rich.cells import cell_len, chop_cells

from inductor_probe.errors import pattern_of
from inductor_probe.report.units import NO_BREAK

_WORD = re.compile(r"[^ \t\n]+")
_COMMAND = re.compile(rf" ?(\S+(?:{NO_BREAK}\S+)+) ?")
_PART = re.compile(
    r"""
    [_\[(]*(?: [^\W_] | (?<=\d)\.(?=\d) )+ (?: [\W_]*?/ | [\W_]* )  # a word or number (2.5), what follows it
    | [\W_]*?/ | [\W_]+
    """,
    re.VERBOSE,
)
_COUNTED = re.compile(r" (?:(?:\+|x)\d+|and \d+ more)$")
_KERNEL = re.compile(r"(?<![\w/.…])(?:cpp|triton)_(?:[a-z]+_)?fused_\w*(?![\w…]|[/.]\w)")
_GOES_ON = f"{NO_BREAK}\\"
_BETWEEN = "_./,: ()[]"
_Span = tuple[int, int]
LONGEST = 48
"""Columns of a name on a screen; a longer one loses its middle: `triton_per_fused_…layer_norm_0`."""


def line_spans(text: str, room: int, further: int | None = None, *, whole: bool = False) -> list[_Span]:
    """Return where in `text` each of its lines begins and ends; the spaces between two lines are in neither.

    Args:
        text: one line. room: columns of the first of the lines it takes.
        further: columns of the others; as of the first if left out. whole: no word is broken, however long.
    """
    if cell_len(text) <= room:
        return [(0, len(text))]
    lines: list[_Span] = []
    begin, end, width = 0, 0, room
    for word in _WORD.finditer(text):
        if cell_len(text[begin : word.end()]) <= width:
            end = word.end()
            continue
        if end > begin:  # a word that is wider than a line begins one, too
            lines.append((begin, end))
            begin, width = word.start(), further or room
        if whole:
            end = word.end()
            continue
        indent = word.start() - begin
        for first, last in _pieces(text, word.span(), max(min(width - indent, further or room), 1)):
            if cell_len(text[begin:last]) > width and end > begin:
                lines.append((begin, end))
                begin, width = first, further or room
            end = last
    if end > begin or not lines:
        lines.append((begin, end))
    return lines


def with_broken_commands(text: str, room: int) -> str:
    """Return a text in which commands that are wider than a line begin one, and go on as for a shell.

    Each of its lines but the last ends with a backslash. A word of a command is not broken, however long.
    """
    return _COMMAND.sub(
        lambda match: match[0] if cell_len(match[1]) <= room else f"\n{_broken(match[1], room)}\n", text
    )


def _broken(command: str, room: int) -> str:
    lines = [""]
    for word in command.split(NO_BREAK):
        line = f"{lines[-1]}{NO_BREAK}{word}" if lines[-1] else word
        if lines[-1] and cell_len(line) + len(_GOES_ON) > room:
            lines[-1] += _GOES_ON
            lines.append(f"{NO_BREAK * 2}{word}")
        else:
            lines[-1] = line
    return "\n".join(lines)


def broken(text: str, room: int) -> list[str]:
    """Break a text between words: `op0, op1, OUTPUT` at 9 columns is `op0, op1,` and `OUTPUT`."""
    return [text[begin:end] for begin, end in line_spans(text, room)]


def _pieces(text: str, word: _Span, room: int) -> Iterator[_Span]:
    """Yield where the parts of a word are, and of one that no line has room for, what a line has."""
    for part in _PART.finditer(text, *word):
        begin = part.start()
        for piece in chop_cells(part[0], room) if cell_len(part[0]) > room else (part[0],):
            yield begin, begin + len(piece)
            begin += len(piece)


def longest_part(texts: Iterable[str], *, words: bool) -> int:
    """Return the columns of the widest word, or part of one, in any of these texts: narrower breaks it."""
    pattern = _WORD if words else _PART
    distinct = {part.rstrip() for text in texts for part in pattern.findall(text)}
    return max(map(cell_len, distinct), default=0)


def shorten(name: str, room: int) -> str:
    """Cut the middle out of a long name, at separators: both ends of a kernel's name distinguish kernels.

    Of a pair (`op0_op1 + op2`) out of each of the two, so that both are names; how many more there are stays.
    """
    if len(name) <= room:
        return name
    if counted := _COUNTED.search(name):
        return shorten(name[: counted.start()], max(room - len(counted[0]), 1)) + counted[0]
    first, plus, second = name.partition(" + ")
    if first.isidentifier() and second.isidentifier():
        half = (room - len(plus)) // 2
        wider = max(half, room - len(plus) - min(len(first), len(second)))
        rooms = (half, wider) if len(first) <= len(second) else (wider, half)
        return plus.join(map(shorten, (first, second), rooms))
    parts = [part.span() for part in _PART.finditer(name)]
    heads = [stop for start, stop in parts for stop in (start + len(name[start:stop].rstrip(_BETWEEN)), stop)]
    # Of the end half of the room, or one part that needs up to three quarters; the start has what is left.
    half, most = len(name) - room // 2, len(name) - room * 3 // 4
    tails = [start for start, _ in parts if start >= half] or [
        start for start, _ in parts[-1:] if start >= most
    ]
    for tail in tails:
        left = room - 1 - len(name) + tail
        if head := max((stop for stop in heads if stop <= left), default=0):
            return _joined(name[:head], name[tail:])
    if tails:
        return f"…{name[tails[0] :]}"
    return _joined(name[: room - 1 - len(name) + half], name[half:])


def _joined(head: str, tail: str) -> str:
    """Join what is left of a name; one that was cut before has one ellipsis where both cuts meet."""
    return f"{head.rstrip('…')}…{tail.lstrip('…')}"


def short_forms(names: Iterable[str]) -> dict[str, str]:
    """Return for each name what screens show of it: at most `LONGEST` columns, where those tell it apart.

    Kernels of a graph end with numbers of their own (torch/_inductor/codegen/wrapper.py,
    next_kernel_suffix), so that theirs are the same on each screen. Those of libraries may differ anywhere.
    What has several words, as a line of code, is no name: only the kernels in it are shortened.
    """
    texts = dict.fromkeys(names)
    distinct = [text for text in texts if " " not in _COUNTED.sub("", text)]
    forms = {text: with_short_names(text) for text in texts}
    forms |= {name: shorten(name, LONGEST) for name in distinct}
    for name in distinct:
        room = LONGEST
        while forms[name] != name and _is_shared(forms[name], distinct):
            room += 8
            forms[name] = shorten(name, room)
    return forms


def _is_shared(form: str, names: Iterable[str]) -> bool:
    """Whether a short form means several names, however often each is launched."""
    matches = re.compile(pattern_of(_COUNTED.sub("", form)), re.DOTALL).fullmatch
    return sum(1 for name in names if matches(_COUNTED.sub("", name))) > 1


def with_short_names(text: str) -> str:
    """Return a sentence in which names of inductor's kernels are as short as in tables."""
    if len(text) <= LONGEST or "fused_" not in text:
        return text
    return _KERNEL.sub(lambda name: shorten(name[0], LONGEST), text)


def shorten_path(path: str, room: int) -> str:
    """Cut the start off a place in a file, at a separator: `…/attention.py:12`. Its end says which it is."""
    if cell_len(path) <= room:
        return path
    first = len(path) - max(room - 1, 0)
    cuts = (part.start() for part in _PART.finditer(path))
    slash = path.find("/", first)
    return f"…{path[slash if slash >= 0 else next((cut for cut in cuts if cut >= first), first) :]}"


def start_of(name: str, room: int) -> str:
    """Return as much of a name's start as there is room for, up to a separator."""
    cuts = [part.end() for part in _PART.finditer(name) if part.end() <= room]
    return name[: cuts[-1] if cuts else room]
