"""Whether this machine, or one with another GPU, has what compiled code assumes; nothing of it is run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from inductor_probe.analysis.portable import judged
from inductor_probe.discovery.archive import members_of
from inductor_probe.discovery.dump_files import BENCH_NAME
from inductor_probe.discovery.package import is_package
from inductor_probe.errors import NotFoundError, UnreadableError
from inductor_probe.files import LARGEST_BYTES, read_text
from inductor_probe.machine.host import host_with, this_host
from inductor_probe.model.check import CheckOutput
from inductor_probe.model.output import Output
from inductor_probe.model.portable import Assumption, Kind, Portability
from inductor_probe.reader import assumptions
from inductor_probe.report.document import Document
from inductor_probe.report.pages.portable import portable_page
from inductor_probe.report.shown import Shown

_LIBRARY = ".so"
_TEXTS = (".cpp", ".h", "_metadata.json", "_compile_flags.json", "CMakeLists.txt")


class Portable(Shown, Struct, frozen=True):
    """What artifacts assume, and whether the machine has it; shows itself."""

    artifacts: tuple[Portability, ...]

    @property
    def portable(self) -> bool:
        """Whether no assumption is broken, as far as is known."""
        return all(one.portable for one in self.artifacts)

    @property
    def output(self) -> Output:
        """What `--json` prints, as a record."""
        return CheckOutput(portable=self.artifacts)

    @property
    def document(self) -> Document:
        """A verdict and a table for each artifact."""
        return portable_page(self.artifacts)


def portability(*artifacts: str | Path, target: str | None = None) -> Portable:
    """Read what each artifact assumes, and hold it against this machine, or one with another GPU.

    Args:
        artifacts: packages of AOTInductor, bench files, `output_code.py` and wrappers that were exported.
        target: a GPU by its name, or a file that describes one; the GPU of this machine if left out.

    Raises:
        NotFoundError: a file, or a GPU of that name, does not exist.
        UnreadableError: it is damaged, or nothing that inductor made.
    """
    host = host_with(target) if target else this_host()
    made = []
    for artifact in map(Path, artifacts):
        stated = assumptions.collected(_of_package(artifact) if is_package(artifact) else _of_file(artifact))
        if not stated:
            raise UnreadableError(
                f"{artifact} states nothing of a machine: it is nothing that inductor made",
                "give a package (.pt2), a bench file, or a wrapper in Python such as output_code.py",
            )
        rows = judged(stated, host)
        made.append(Portability(artifact=artifact, kind=_kind(artifact), host=host.name, assumptions=rows))
    return Portable(tuple(made))


def _kind(path: Path) -> Kind:
    if is_package(path):
        return "package"
    return "bench file" if path.name == BENCH_NAME else "wrapper"


def _of_file(path: Path) -> Iterator[Assumption]:
    if path.is_dir():
        raise NotFoundError(f"{path} is a folder", f"name a file in it: {path / 'output_code.py'}")
    read = assumptions.of_cpp if path.suffix == ".cpp" else assumptions.of_python
    return read(read_text(path), str(path))


def _of_package(path: Path) -> Iterator[Assumption]:
    """Yield what the members say; an entry of the archive is `m.pt2:m/data/aotinductor/model/x.cpp:12`.

    Raises:
        UnreadableError: it is damaged, or one of its texts is not UTF-8 or not what inductor writes.
    """
    for name, data in members_of(path, _wanted):
        place = f"{path}:{name}"
        if name.endswith(_LIBRARY):
            yield from assumptions.of_library(data, place)
            continue
        try:
            text = data.decode()
            if name.endswith("_metadata.json"):
                yield from assumptions.of_metadata(text, place)
            elif name.endswith(".json"):
                yield from assumptions.of_flags(text, place)
            else:
                yield from assumptions.of_cpp(text, place)
        except ValueError as error:
            raise UnreadableError(f"{place}: not a text of inductor's: {error}") from error


def _wanted(name: str) -> int:
    """How many bytes of a member are read."""
    if name.endswith(_LIBRARY):
        return assumptions.MACHINE_CODE
    return LARGEST_BYTES if name.endswith(_TEXTS) else 0
