"""What HTML of this project may hold: known elements and attributes, nothing that acts or loads."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"br", "input"}
ELEMENTS = {
    "style", "div", "span", "b", "i", "br", "pre", "table", "thead", "tbody", "tr", "th", "td", "details",
    "summary", "label", "input", "svg", "title", "rect", "path", "text", "g", "defs", "clippath", "use",
    "p", "ul", "li", "strong", "h3", "h4", "code", "tspan", "foreignobject",
}  # fmt: skip
ATTRIBUTES = {
    "class", "style", "title", "for", "id", "name", "type", "checked", "open", "width", "height", "viewbox",
    "role", "x", "y", "d", "fill", "fill-opacity", "stroke", "stroke-opacity", "stroke-dasharray",
    "text-anchor", "font-size", "font-family", "transform", "clip-path", "version", "href", "rx",
    "data-name", "data-nodes", "stroke-width",
}  # fmt: skip


class Parsed(HTMLParser):
    """The text of HTML, and its elements with their attributes.

    Raises:
        AssertionError: an element or attribute that is not known, one that acts, or one that is not closed.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text = ""
        self.elements: list[tuple[str, dict[str, str]]] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert not self._open, f"not closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ELEMENTS, tag
        found = {name: value or "" for name, value in attrs}
        assert set(found) <= ATTRIBUTES, set(found) - ATTRIBUTES
        for name, value in found.items():
            assert "url(" not in value or "url(#" in value, (name, value)
            assert name != "href" or value.startswith("#"), value
        self.elements.append((tag, found))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open, tag
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1:] != ["style"]:
            self.text += data

    def of_class(self, name: str) -> list[dict[str, str]]:
        """Return the attributes of all elements of a class."""
        return [found for _, found in self.elements if name in found.get("class", "").split()]


def checked(html: str) -> Parsed:
    """Return HTML parsed, after every element and attribute of it was found harmless."""
    return Parsed(html)
