"""Whether a graph's code may run: what is on disk is read once, judged, and handed on to be run."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from inductor_probe.errors import NotFoundError, ProbeError
from inductor_probe.files import seen_from
from inductor_probe.model.manifest import MANIFEST_NAME
from inductor_probe.model.runs import MadeHere, Trust

if TYPE_CHECKING:
    from inductor_probe.api.on_disk import GraphOnDisk, RunOnDisk
    from inductor_probe.model.bench import BenchSettings
    from inductor_probe.model.manifest import ConstantFact, InputFact, Manifest
    from inductor_probe.store.made_here import GraphTexts


def source_to_run(graph: GraphOnDisk, settings: BenchSettings, *, trust: bool, launched: bool = True) -> str:
    """Return the text of a graph's bench file if it may run: see `require_trust`.

    Raises:
        NotFoundError: there is none. ProbeError: it may not.
    """
    source = require_trust(graph, trust=trust, imports=settings.imports, launched=launched)
    if source is None:
        raise NotFoundError(f"{graph.path} has no bench file any more", "probe bench-kernel writes it")
    return source


def require_trust(
    graph: GraphOnDisk,
    *,
    trust: bool,
    imports: Sequence[str] = (),
    rewriting: bool = False,
    adding: bool = False,
    launched: bool = True,
) -> str | None:
    """Refuse to run a graph's code unless it was provably made here, or `trust` is given.

    Args:
        imports: modules, or Python files, that are going to be run first.
        rewriting: its bench file is going to be written before it is run.
        adding: variants are going to be added to it then.
        launched: its kernels are going to be launched: those of Triton need a GPU.

    Returns:
        The text of its bench file, None if there is none. This is what was judged, so this is what is to be
        run: the file may be changed at any time.

    Raises:
        ProbeError: says why, and what to do. UnreadableError: the bench file is not Python text in UTF-8.
    """
    from inductor_probe.bench_file.bench_file import existing_bench_file
    from inductor_probe.report.words.runs import refusal
    from inductor_probe.store.made_here import graph_texts, made_here, other_writers

    refuse_archive(graph)
    if launched:
        _refuse_simulated(graph)
    source = existing_bench_file(graph.path)
    text = source.text if source else None
    if trust:
        return text
    manifest = graph.run.manifest
    run = graph.run.path if manifest else None
    texts = graph_texts(graph.path, run)
    made = made_here(graph.path, run, texts=texts)
    if source is not None and made.others is None:
        made = replace(made, others=other_writers(source.path, source.status))
    edited = adding
    if made.same and not made.place and text is not None:  # else nobody asks, and telling takes a second
        edited = edited or not _is_generated(graph, texts, text, rewriting=rewriting)
    decided = trust_of(graph.path, made, manifest, edited=edited)
    if not decided.allowed:
        raise ProbeError(*refusal(decided))
    _refuse_imports(graph, imports, made)
    return text


def texts_to_run(
    graph: GraphOnDisk, *, trust: bool, imports: Sequence[str] = (), launched: bool = True
) -> Mapping[str, str | None]:
    """Return the texts of a graph's files, by name, if code that is made from them may run.

    They are read once: what was judged is what is to be used. Its bench file has no part in it. Kernels that
    are compiled and not `launched` need no GPU. `imports` are modules, or Python files, that are run first.

    Raises:
        ProbeError: nothing shows that they were made here, and there is no `trust`; it is in an archive;
            it was compiled for a simulated GPU, and there is none.
    """
    from inductor_probe.report.words.runs import refusal
    from inductor_probe.store.made_here import graph_texts, made_here

    refuse_archive(graph)
    if launched:
        _refuse_simulated(graph)
    manifest = graph.run.manifest
    run = graph.run.path if manifest else None
    texts = graph_texts(graph.path, run)
    if not trust:
        made = made_here(graph.path, run, texts=texts)
        decided = trust_of(graph.path, made, manifest)
        if not decided.allowed:
            raise ProbeError(*refusal(decided))
        _refuse_imports(graph, imports, made)
    return texts.files


def _refuse_simulated(graph: GraphOnDisk) -> None:
    """Refuse Triton kernels that were generated for a simulated GPU, on a machine without a GPU.

    Raises:
        ProbeError: says so.
    """
    if why := why_not_launched(graph):
        raise ProbeError(why, f"{WITHOUT_GPU}; time it where there is one")


WITHOUT_GPU = "`probe check-kernel` says whether its kernels are right, and needs none"
"""What can be known of kernels that cannot be launched."""


def why_not_launched(graph: GraphOnDisk) -> str | None:
    """Return why kernels for a simulated GPU cannot be launched on this machine; None where they can."""
    if gpu := missing_gpu(graph):
        return f"{graph.name} was compiled for a simulated {gpu}, and this machine has no GPU to run it on"
    return None


def missing_gpu(graph: GraphOnDisk) -> str | None:
    """Return the simulated GPU that a graph was compiled for, where this machine has none to run it on."""
    manifest = graph.run.manifest
    return manifest.gpu.device if manifest and manifest.gpu and lacks_gpu(graph) else None


def lacks_gpu(graph: GraphOnDisk) -> bool:
    """Tell whether a graph has memory of CUDA, and this machine no GPU to run it on."""
    from inductor_probe.machine.gpu import gpu_states, has_gpu

    code = graph.generated.code
    layouts = [allocation.layout for allocation in code.allocations] if code else []
    on_cuda = (layout is not None and (layout.device or "").startswith("cuda") for layout in layouts)
    return any(on_cuda) and not has_gpu(gpu_states())


def trust_of(graph: Path, made: MadeHere, manifest: Manifest | None = None, *, edited: bool = False) -> Trust:
    """Decide whether the code of a graph may run.

    It may if the user's own record shows that `probe dump` made these files on this machine, and nobody else
    may write to them. What a dump says about itself decides nothing: it may be forged.

    Args:
        graph: its folder.
        made: what the record says of it.
        manifest: of its run, for what it claims.
        edited: its bench file holds, or would hold, anything but what is made from these files: then it
            must lie where probe made it, too.
    """
    if made.same and made.others:
        return Trust("other-writers", graph, others=made.others)
    if made.same and (made.place or not edited):
        return Trust("made-here", graph)
    if made.same:
        return Trust("moved-and-edited", graph)
    if made.changed:
        return Trust("changed", graph)
    claims = None if manifest is None else manifest.machine
    return Trust("not-recorded", graph, problem=made.problem, claims=claims)


def script_to_run(run: RunOnDisk, manifest: Manifest, *, trust: bool) -> Path:
    """Return the script of a run if the run may be made again from what its manifest says.

    It may if the record shows that it was made here so, or with `trust`.

    Only in the folder in which it was made: elsewhere another script may have the name that it gives.

    Args:
        manifest: what is going to be used, and so what is judged.

    Raises:
        ProbeError: says why not, what would run with which arguments, variables and settings, and what to do.
        NotFoundError: the script is not where it was.
    """
    from inductor_probe.report.words.runs import recipe_refusal
    from inductor_probe.store.made_here import recipe_made_here

    made, recorded = recipe_made_here(run.path, manifest)
    script = _script(run, manifest, recorded)
    if trust or (made.place and made.others is None):
        if script is None:
            raise NotFoundError(
                f"{run.path} was made from {recorded or manifest.script}, and there is no such script here",
                "run this where the script is, or name the script in place of the run",
            )
        return script
    if made.place:
        decided = Trust("other-writers", run.path, others=made.others)
    elif made.changed or made.same:
        decided = Trust("changed" if made.changed else "moved", run.path)
    else:
        decided = Trust("not-recorded", run.path, problem=made.problem, claims=manifest.machine)
    raise ProbeError(*recipe_refusal(decided, _would_run(manifest, script)))


def _script(run: RunOnDisk, manifest: Manifest, recorded: Path | None) -> Path | None:
    """Return the script of a run as seen from here: the `recorded` one, or else what its name means."""
    if recorded is not None:
        return seen_from(recorded, Path.cwd()) if recorded.is_file() else None
    named = Path(manifest.script)
    for folder in (Path.cwd(), run.path.parent.parent):
        if (folder / named).is_file():
            return named if folder == Path.cwd() else folder / named
    return None


def _would_run(manifest: Manifest, script: Path | None) -> list[tuple[str, str]]:
    """Return what a run would be made again with; first the variables that load or start code."""
    loading = [pair for pair in manifest.variables if pair[0].startswith(_LOADING)]
    variables = dict.fromkeys((*loading, *manifest.variables))
    gpu = manifest.gpu
    # Python and the script, then `--case NAME` and `--set NAME=VALUE`; the rest is the script's.
    first = 2 + 2 * (len(manifest.cases) + len(manifest.knobs))
    uses = (
        ("script", [str(script) if script else f"{manifest.script}, which is not here"]),
        ("cases", list(map(shlex.quote, manifest.cases))),
        ("arguments", [shlex.quote(word) for word in manifest.command[first:]]),
        ("variables", [f"{name}={shlex.quote(value)}" for name, value in variables]),
        # A knob that a scenario does not have is taken for a setting of torch.
        (
            "settings",
            [f"{name}={shlex.quote(value)}" for name, value in (*manifest.knobs, *manifest.settings)],
        ),
        ("decisions", list(map(str, manifest.flips))),
        ("target", [gpu.target] if gpu else []),
    )
    return [(what, _in_a_line(texts)) for what, texts in uses if texts]


_LOADING = ("LD_", "DYLD_", "PYTHON", "PATH", "CXX", "CC")
"""How variables begin that decide which code is loaded or started."""
_MOST_SHOWN = 200
"""A manifest of a hundred settings has its compiler behind them: what runs is shown, and not how much."""


def _in_a_line(texts: Sequence[str]) -> str:
    shown = " ".join(texts[:_MOST_SHOWN]).replace("\n", "\\n")
    left_out = len(texts) - _MOST_SHOWN
    return f"{shown} and {left_out} more, which {MANIFEST_NAME} has" if left_out > 0 else shown


def refuse_archive(graph: GraphOnDisk) -> None:
    """Refuse a graph in an archive: a bench file holds the user's edits, and would be lost there.

    Raises:
        ProbeError: it is in one; the hint unpacks it.
    """
    from inductor_probe.discovery.archive import archive_of, unpack

    archive = archive_of(graph.path)
    if archive is None:
        return
    inside, folder = graph.path.relative_to(unpack(archive).folder), archive.name.partition(".")[0]
    unpacks = [["mkdir", "-p", folder], ["tar", "-xf", str(archive), "-C", folder]]
    if archive.suffix.lower() == ".zip":
        unpacks = [["python", "-m", "zipfile", "-e", str(archive), folder]]
    bench = ["probe", "bench-kernel", str(Path(folder, inside))]
    if archive.suffix.lower() == ".pt2":  # what is needed of a package is what was read of it
        code = graph.path / "output_code.cpp"
        unpacks, bench = [["mkdir", "-p", folder], ["cp", str(code), folder]], [*bench[:2], folder, "--trust"]
    commands = [*unpacks, bench]
    raise ProbeError(
        f"{graph.name} is in {archive}: a bench file, and your edits in it, would not be kept there",
        " && ".join(map(shlex.join, commands)),
    )


def _refuse_imports(graph: GraphOnDisk, imports: Sequence[str], made: MadeHere) -> None:
    """Refuse a file for `--import` that came with a dump: the record does not know it."""
    from inductor_probe.store.made_here import folders_of, other_writers

    dump = folders_of(graph.path.resolve())[-1]
    for file in (Path(name).resolve() for name in imports if name.endswith(".py")):
        if file.is_relative_to(dump) and not (made.place and other_writers(file) is None):
            raise ProbeError(
                f"--import {file} is in the dump {dump}: nothing shows that it is yours",
                "read it, then add --trust, or import a copy of it that is not in the dump",
            )


def _is_generated(graph: GraphOnDisk, texts: GraphTexts, text: str, *, rewriting: bool) -> bool:
    """Return whether `text` is the bench file that `texts` make."""
    from inductor_probe.analysis.input_bounds import input_bounds
    from inductor_probe.bench_file.bench_file import is_generated
    from inductor_probe.store.manifest import parse_manifest

    facts: Sequence[InputFact] = ()
    constants: Sequence[ConstantFact] | None = None
    if texts.run is not None and texts.manifest is not None:
        record = parse_manifest(texts.manifest, texts.run / MANIFEST_NAME).graph(graph.name)
        facts, constants = (record.inputs, record.constants) if record else ((), None)
    bounds = input_bounds(graph.generated)
    return is_generated(
        text, graph.path, texts.files, facts, bounds, constants=constants, rewriting=rewriting
    )
