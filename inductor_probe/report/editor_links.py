"""Places as links of the terminal (OSC 8), by which a click opens the editor at the line.

    PROBE_EDITOR_URL='vscode://file{path}:{line}'
    /home/u/net.py:12  ->  ESC ]8;;vscode://file/home/u/net.py:12 ESC \\ /home/u/net.py:12 ESC ]8;; ESC \\

The sequence is that of "Hyperlinks in Terminal Emulators" (Egmont Koblinger, 2017). Complete paths of a text
become links once it has its colours: `visible` has left no escape of a dump's in it, and a URL has none.
"""

from __future__ import annotations

import re
from urllib.parse import quote

from inductor_probe.errors import ProbeError

VARIABLE = "PROBE_EDITOR_URL"
_PLACE = re.compile(r"(?<![\w/.\-])(?P<path>/[^\s:;\x1b'\"`()]+\.\w+)(?::(?P<line>\d+))?(?![\w/])")
_END = "\x1b\\"


def with_links(text: str, template: str) -> str:
    """Return a text for a terminal with its places as links.

    Raises:
        ProbeError: the template has no `{path}`, or something else in braces.
    """
    try:
        without, example = (template.format(path=path, line=1) for path in ("", "/a"))
    except (KeyError, IndexError, ValueError) as error:
        raise ProbeError(*_wrong(template)) from error
    if without == example or not template.isprintable():
        raise ProbeError(*_wrong(template))

    def link(match: re.Match[str]) -> str:
        url = template.format(path=quote(match["path"]), line=match["line"] or 1)
        return f"\x1b]8;;{url}{_END}{match[0]}\x1b]8;;{_END}"

    return _PLACE.sub(link, text)


def _wrong(template: str) -> tuple[str, str]:
    return (
        f"{VARIABLE} is {template!r}, which names no file",
        f"it has {{path}}, and may have {{line}}: {VARIABLE}='vscode://file{{path}}:{{line}}'",
    )
