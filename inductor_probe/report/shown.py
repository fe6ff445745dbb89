"""Objects that show themselves: as text in a Python prompt, as HTML in a notebook, as markdown."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from inductor_probe.model.codec import Json, to_json
from inductor_probe.model.output import Output
from inductor_probe.report.document import Document

if TYPE_CHECKING:
    from inductor_probe.report.terminal import Terminal


class Shown:
    """Gives an object all of its looks from one document, and its JSON from one record."""

    @property
    @abstractmethod
    def document(self) -> Document:
        """What is shown."""

    @property
    @abstractmethod
    def output(self) -> Output:
        """What `--json` prints of it, as a record."""

    @property
    def json(self) -> Json:
        """What `--json` prints of it, ready for `json.dumps`."""
        return to_json(self.output)

    @property
    def markdown(self) -> str:
        """What `--format markdown` prints."""
        from inductor_probe.report.markdown import to_markdown  # noqa: PLC0415 - one back end is enough

        return to_markdown(self.document)

    def __rich__(self) -> Terminal:
        from inductor_probe.report.terminal import Terminal  # noqa: PLC0415 - as above

        return Terminal(self.document)

    def __repr__(self) -> str:
        from inductor_probe.report.terminal import to_text  # noqa: PLC0415 - as above

        return to_text(self.document)

    def _repr_html_(self) -> str:
        from inductor_probe.report.html import page  # noqa: PLC0415 - as above

        return page(self.document)
