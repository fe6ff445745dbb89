"""Objects that show themselves: as text in a Python prompt, as HTML in a notebook."""

from __future__ import annotations

from inductor_probe.model.codec import Json, to_json
from inductor_probe.model.output import Output
from inductor_probe.report.shown import Renderable
from inductor_probe.report.shown import Shown as ShownAsText

__all__ = ["Renderable", "Shown"]


class Shown(ShownAsText):
    """Gives an object both looks from one rich renderable; IPython asks for the second by its name."""

    @property
    def output(self) -> Output:
        """What `--json` prints of it, as a record."""
        raise NotImplementedError

    @property
    def json(self) -> Json:
        """What `--json` prints of it, ready for `json.dumps`."""
        return to_json(self.output)

    def _repr_html_(self) -> str:
        from inductor_probe.notebook.page import page  # noqa: PLC0415 - a terminal has no use for it
        from inductor_probe.notebook.rich_html import rich_html  # noqa: PLC0415 - as above

        return page(rich_html(self.__rich__()))
