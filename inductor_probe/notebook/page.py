"""The frame of everything that a notebook shows: escaped text inside, one style for light and dark."""

from __future__ import annotations

from html import escape

from inductor_probe.report.visible import visible

_LIGHT = (
    "--ip-red:#c4262e;--ip-green:#1a7f37;--ip-yellow:#9a6700;--ip-cyan:#0b7285;--ip-blue:#0550ae;"
    "--ip-violet:#8250df;--ip-dim:#6a737d;--ip-paper:#fff;"
)
_DARK = (
    "--ip-red:#ff7b72;--ip-green:#56d364;--ip-yellow:#e3b341;--ip-cyan:#56d4dd;--ip-blue:#79c0ff;"
    "--ip-violet:#d2a8ff;--ip-dim:#9aa4af;--ip-paper:#161b22;"
)
_DARK_PLACES = ('[data-jp-theme-light="false"] .ip', ".vscode-dark .ip", 'html[theme="dark"] .ip')
"""How JupyterLab, VS Code and Colab say that they are dark; a rendered copy is `by-system`."""

_MONO = "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:12px;"
_RULES = (
    """
.ip{font-size:13px;line-height:1.45;overflow-x:auto;padding:2px 0 6px}
.ip-line{white-space:pre-wrap;overflow-wrap:anywhere}
.ip-gap{height:.7em}
.ip-bold{font-weight:600}.ip-dim{color:var(--ip-dim)}.ip-red{color:var(--ip-red)}
.ip-green{color:var(--ip-green)}.ip-yellow{color:var(--ip-yellow)}.ip-cyan{color:var(--ip-cyan)}
.ip.ip table.ip-table{border-collapse:collapse;border:0;margin:2px 0 4px;width:auto;table-layout:auto;MONO}
.ip.ip table.ip-table tr,.ip.ip table.ip-table tbody tr{background:none;border:0}
.ip.ip table.ip-table td,.ip.ip table.ip-table th{text-align:left;vertical-align:top;padding:2px 16px 2px 0;
 border:0;white-space:pre-wrap;overflow-wrap:break-word;max-width:112ch;font-weight:inherit}
.ip.ip table.ip-rows td{white-space:pre}.ip.ip table.ip-rows td.ip-long{white-space:pre-wrap;min-width:40ch;
 max-width:72ch}
.ip.ip table.ip-table th{color:var(--ip-dim);font-weight:400;border-bottom:1px solid #8885}
.ip.ip table.ip-rows tbody tr:hover{background:#8882}
.ip.ip table.ip-table td.ip-right,.ip.ip table.ip-table th.ip-right{text-align:right}
.ip.ip table.ip-table .ip-bold{font-weight:600}
.ip.ip pre.ip-code{margin:4px 0;padding:7px 10px;border-left:3px solid #8886;background:#8881;overflow-x:auto;
 white-space:pre;line-height:1.45;max-height:34em;overflow-y:auto;color:inherit;MONO}
.ip details{margin:3px 0}.ip summary{cursor:pointer;width:fit-content}
.ip summary:hover{color:var(--ip-blue)}
.ip-chip{border:1px solid currentColor;border-radius:8px;padding:0 6px;font-size:11px;white-space:nowrap}
.ip-k{color:var(--ip-violet)}.ip-v{color:var(--ip-blue)}.ip-n{color:var(--ip-cyan)}.ip-s{color:var(--ip-green)}
.ip-c{color:var(--ip-dim);font-style:italic}.ip-f{color:var(--ip-yellow)}.ip-x{color:var(--ip-red)}
.ip.ip svg{display:block;max-width:none;color:inherit;overflow:visible}.ip svg text{fill:currentColor}
.ip.ip .ip-figure svg{max-width:100%;height:auto}
.ip td svg{margin-top:2px}.ip.ip label svg{display:inline-block;vertical-align:-1px}
.ip-scroll{overflow-x:auto}.ip-map{position:relative;margin:6px 0 4px}
.ip-map>svg{position:absolute;left:0;top:0}
.ip-map label{position:absolute;box-sizing:border-box;cursor:pointer;overflow:hidden;white-space:nowrap;
 line-height:16px;text-overflow:ellipsis;margin:0;MONO}
.ip-node{border:1px solid #8888;border-left:5px solid var(--ip-of);border-radius:5px;padding:3px 8px;
 background:var(--ip-paper)}
.ip-buffer{border:1px solid #8888;border-radius:13px;background:var(--ip-paper);padding:3px 11px}
.ip-buffer.ip-ends{border-width:2px}
.ip-map .ip-marked{border-color:var(--ip-red)}
.ip-kernel{color:var(--ip-dim)}.ip-map .ip-kernel{font-size:11px}
.ip-map label:hover{border-color:var(--ip-blue)}.ip-map .ip-kernel:hover{color:var(--ip-blue)}
.ip-wire{fill:none;stroke:#888;stroke-width:1.3}.ip-wire.ip-slow{stroke:var(--ip-red);stroke-width:2}
.ip-tip{fill:#888}.ip-tip.ip-slow{fill:var(--ip-red)}
.ip-pick{position:absolute;opacity:0;pointer-events:none}
.ip-panel{display:none;border-top:1px solid #8885;padding-top:6px}.ip-pick:checked+.ip-panel{display:block}
.ip-legend{display:flex;flex-wrap:wrap;gap:2px 18px;margin:4px 0;font-size:12px}
.ip-legend label{cursor:pointer}.ip-legend i{display:inline-block;width:5px;height:12px;margin-right:6px;
 background:var(--ip-of);vertical-align:-1px}
""".replace("MONO", _MONO)
    .replace("\n ", "")
    .replace("\n", "")
)
STYLE = (
    f"<style>.ip{{{_LIGHT}}}{','.join(_DARK_PLACES)}{{{_DARK}}}"
    f"@media(prefers-color-scheme:dark){{.by-system .ip{{{_DARK}}}}}{_RULES}</style>"
)
"""For all that stands in an element of class `ip`; it touches nothing else of the page around."""


def page(*parts: str, style: str = "") -> str:
    """Return parts of HTML below each other as one output; `style` are CSS rules of this one alone.

    The style comes with each output, since each may be cut out, copied or folded away alone.
    """
    own = f"<style>{style}</style>" if style else ""
    return f'{STYLE}{own}<div class="ip">{"".join(parts)}</div>'


def escaped(text: str) -> str:
    """Return text of a dump fit for HTML and its attributes; what acts on a reader is shown as an escape."""
    return escape(visible(text))


def folded(title: str, inside: str, *, is_open: bool = False) -> str:
    """Return HTML that shows `inside` when `title`, a text, is clicked."""
    return f"<details{' open' if is_open else ''}><summary>{escaped(title)}</summary>{inside}</details>"
