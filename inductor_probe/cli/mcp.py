"""The door for programs: `probe mcp` serves until the client closes it."""

from __future__ import annotations

from pathlib import Path

import click

from inductor_probe.errors import ExitCode, ProbeError

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command("mcp")
@click.option(
    "--root", type=_FOLDER, default=Path(), metavar="FOLDER",
    help="Read and write below this folder only; the working folder if left out.",
)  # fmt: skip
@click.option("--allow-run", is_flag=True, help="Offer what runs scripts and generated code, too.")
@click.option(
    "--workload", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE.json",
    help="Offer bench with these arguments alone, which no client changes.",
)  # fmt: skip
def mcp(root: Path, allow_run: bool, workload: Path | None) -> int:
    """Serve the verbs as tools of the Model Context Protocol, over standard input and output.

    A client starts this command, and ends it. Without --allow-run its tools only read, and nothing of a dump
    is run; with it scripts below the folder run, and code that was made here. What a stranger's dump holds
    never runs: there is no --trust.

    With --workload an agent edits the kernels in files that its variants name, and bench says whether they
    are right, and faster: inputs, check and verdict are not the client's. Nothing else runs then: --allow-run
    cannot be given with it.
    """
    try:
        from inductor_probe.mcp_server.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "mcp":
            raise
        raise ProbeError("probe mcp needs the package mcp", "pip install 'inductor_probe[mcp]'") from error
    serve(root, allow_run=allow_run, workload=workload)
    return ExitCode.OK
