"""Commands as README and guides show them, run as a reader would: in order, in one folder a document.

A block starts with the word `console`, and what else stands there says how it is meant:

    ```console             commands after `$ `; each line shown below one is in what it really prints
    ```console times       they are run, too; what is shown is of one machine at one time
    ```console gpu         they need a GPU
    ```console cluster     they need a Ray cluster: tests/executors/test_cluster.py has one
    ```console avx512      they need vectors of 512 bits, of which what they show has numbers
    ```console not run: R  they are not run, for the reason R

A shown line that is `...` stands for any others; `(exit status 1)` is the status, 0 where nothing is said.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec.structs import replace

from inductor_probe.machine.cpu import vector_bits
from inductor_probe.model.manifest import MANIFEST_NAME
from inductor_probe.store.made_here import record_path, remember_recipe
from inductor_probe.store.manifest import manifest_to_json, read_manifest
from tests.conftest import REPOSITORY
from tests.fork_server import LEAVE_OUT_OWN_CALLS, ForkServer

BIN = Path(sys.executable).parent
GUIDES = REPOSITORY / "docs" / "guides"
_BLOCK = re.compile(r"^```console(?P<kind>[^\n]*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
_STATUS = re.compile(r"\(exit status (\d+)\)")
_LABEL = re.compile(r" --label (\S+)")
_TREE = "torch_compile_debug"
OWN_CALLS = ("README.md", "eager.md", "call_parts.md")
"""Documents whose commands time the call of the user's program, too: others are about something else."""
_COMMAND = re.compile(r"(?P<variables>(?:[A-Z_]+=[\w.-]+ )*)probe (?P<words>.+?)(?: > (?P<file>[\w.-]+))?")
"""`ATEN_CPU_CAPABILITY=avx2 probe why --json > a.json`: what needs no shell."""
_OF_SHELL = re.compile(r"[|&;<>()$`*?\[\]{}~#!\n]")
"""What may mean something to a shell, beside quotes."""


@dataclass(frozen=True)
class Command:
    """A command of a document. `kind` is empty, `times`, `gpu`, `cluster`, `avx512` or `not run: why`."""

    document: Path
    text: str
    kind: str
    shown: tuple[str, ...]
    status: int = 0

    def __str__(self) -> str:
        return f"{self.document.name}: {self.text}"


def commands_of(document: Path) -> list[Command]:
    """Return the commands of a document in order; a line that ends with a backslash goes on in the next."""
    found = []
    for block in _BLOCK.finditer(document.read_text()):
        kind = block["kind"].strip()
        whole = re.sub(r"\\\n\s*", "", block["text"])
        for part in re.split(r"^\$ ", whole, flags=re.MULTILINE)[1:]:
            text, _, rest = part.partition("\n")
            lines = [line for line in rest.splitlines() if line.strip() and line.strip() != "..."]
            status = next((int(said[1]) for line in lines if (said := _STATUS.fullmatch(line))), 0)
            shown = tuple(line for line in lines if not _STATUS.fullmatch(line))
            found.append(Command(document, text, kind, shown, status))
    return found


@dataclass(frozen=True)
class Dumped:
    """A run that a document made, and what its command printed."""

    run: Path
    ran: subprocess.CompletedProcess[str]


@dataclass
class Reader:
    """Someone who follows a document in a folder.

    Attributes:
        dumps: command without its label -> its run and what it printed, for documents that start with the
            same dump: it is made once, and copied under the label that is asked for.
        state: where probe keeps the record of what was made here, and those runs are.
        server: runs commands of probe in forks.
    """

    folder: Path
    state: Path
    dumps: dict[str, Dumped]
    server: ForkServer

    def follow(self, command: Command) -> subprocess.CompletedProcess[str]:
        """Run a command, or copy the dump that it makes; skip the test where it cannot be run."""
        if command.kind == "gpu" and not has_gpu():
            pytest.skip("it needs a GPU, and there is none here")
        if command.kind == "cluster" and "RAY_ADDRESS" not in os.environ:
            pytest.skip("it needs a Ray cluster: tests/executors/test_cluster.py runs it on one")
        if command.kind == "avx512" and not has_avx512():
            pytest.skip("it needs AVX-512, and torch has none of it here")
        if command.kind.startswith("not run"):
            pytest.skip(command.kind)
        dump, label = _LABEL.sub("", command.text), _LABEL.search(command.text)
        if (made := self.dumps.get(dump)) is not None:
            run = self.folder / _TREE / made.run.name
            shutil.copytree(made.run, run, dirs_exist_ok=True)
            manifest = replace(read_manifest(run / MANIFEST_NAME), label=label[1] if label else None)
            (run / MANIFEST_NAME).write_text(json.dumps(manifest_to_json(manifest)))
            record = record_path({"XDG_STATE_HOME": str(self.state)})
            remember_recipe(run, manifest, self.folder / manifest.script, record)
            return made.ran
        before = set((self.folder / _TREE).glob("run_*"))
        ran = self._forked(command) or self.run(["bash", "-c", command.text])
        new = set((self.folder / _TREE).glob("run_*")) - before
        if command.text.startswith("probe dump ") and len(new) == 1 and ran.returncode == 0:
            (run,) = new
            # As it is now: a guide goes on to edit what lies beside it.
            self.dumps[dump] = Dumped(shutil.copytree(run, self.state / "dumps" / run.name), ran)
        return ran

    def _forked(self, command: Command) -> subprocess.CompletedProcess[str] | None:
        """Run a command of probe in a fork, None where it needs a shell or a process of its own."""
        asked = _COMMAND.fullmatch(command.text)
        if asked is None or _OF_SHELL.search(asked["words"]):
            return None
        environment = {**os.environ, **self._variables()}
        if command.document.name not in OWN_CALLS:
            environment[LEAVE_OUT_OWN_CALLS] = "1"
        environment |= dict(each.split("=", 1) for each in asked["variables"].split())
        words = shlex.split(asked["words"])
        if words[0] in ("debug", "doctor") or not self.server.can_run(words, environment, fresh=()):
            return None
        ran = self.server.run(words, self.folder, environment)
        if asked["file"] is None:
            return ran
        (self.folder / asked["file"]).write_text(ran.stdout)
        return subprocess.CompletedProcess(ran.args, ran.returncode, "", ran.stderr)

    def _variables(self) -> dict[str, str]:
        path = f"{BIN}{os.pathsep}{os.environ['PATH']}"  # of torchrun, too, which a command starts
        return {"COLUMNS": "100", "XDG_STATE_HOME": str(self.state), "PATH": path}

    def run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        """Run something else in the folder."""
        environment = {**os.environ, **self._variables()}
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )


def check(command: Command, ran: subprocess.CompletedProcess[str]) -> None:
    """Check that a command ended, and printed, as its document says."""
    assert "Traceback" not in ran.stderr
    assert ran.returncode == command.status, ran.stdout + ran.stderr
    if command.kind != "times":
        printed = {plain(line) for line in (ran.stdout + ran.stderr).splitlines()}
        missing = [line for line in command.shown if plain(line) not in printed]
        assert not missing, f"it does not print {missing}, but\n{ran.stdout}{ran.stderr}"


def plain(line: str) -> str:
    """Return a line with single spaces: a table's columns are as wide as what else is in it."""
    return " ".join(line.split())


def follower(folder: Path, state: Path, dumps: dict[str, Dumped], server: ForkServer) -> Reader:
    """Return a reader in a folder that has the project's scenarios beside it, as in a checkout."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("scenarios", "tests"):
        (folder / name).symlink_to(REPOSITORY / name)
    return Reader(folder, state, dumps, server)


def has_gpu() -> bool:
    """Whether NVIDIA's driver is here."""
    return any(Path("/dev").glob("nvidia[0-9]*"))


def has_avx512() -> bool:
    """Whether torch compiles for AVX-512 here: the processor has it, and no variable asks for less."""
    return vector_bits() == 512 and os.environ.get("ATEN_CPU_CAPABILITY") in (None, "avx512")
