"""Runs a script, reduces a graph of it, and says how far it is; torch is imported once, here.

Command line: that of `capture/own_child.py`, with a `ReducingOptions` as OPTIONS.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.capture.events import EventLog
from inductor_probe.capture.own_child import opened, set_hooks
from inductor_probe.capture.targets.graphs import Graphs, leave_kernels_out
from inductor_probe.files import write_whole
from inductor_probe.model.codec import from_json, to_json
from inductor_probe.model.flip import Flip
from inductor_probe.reduction.predicates import Shown, predicate_of
from inductor_probe.reduction.program import Program
from inductor_probe.reduction.search import OverBudgetError, Search
from inductor_probe.reduction.smaller import Forms

_LIMIT_S, _TIMES = 60.0, 5.0
"""Seconds for a candidate: these, or so many times those of the unreduced program."""
_LOADED = (
    "torch._inductor.compile_fx", "torch._dynamo.convert_frame", "torch._inductor.async_compile",
    "torch._inductor.output_code", "torch._inductor.codecache", "torch._dynamo.repro.after_aot",
    "torch._subclasses.fake_tensor",
)  # fmt: skip


class ReducingOptions(Struct, frozen=True):
    """What is asked for.

    Attributes:
        keep: texts of predicates. folder: for what was tried, and each step. budget: seconds.
        target: the file for the best so far. head: its docstring.
        graph: a compile id, or a part of it; all graphs if empty. jobs: scripts that are asked at once.
        settings: of torch, for the script. imports: modules that candidates import first.
        final: ask the script alone, and reduce nothing.
        failure, causes: of the unreduced program: see `judging.Case`. flips: decisions that are turned.
    """

    keep: tuple[str, ...]
    folder: str
    target: str
    head: str
    budget: float
    jobs: int
    graph: str = ""
    settings: tuple[tuple[str, str], ...] = ()
    imports: tuple[str, ...] = ()
    final: bool = False
    failure: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    flips: tuple[Flip, ...] = ()


class Reducer:
    """Asks programs, in this order of the search, and knows what was asked before.

    Args:
        threads: of torch, in the scripts.
    """

    def __init__(self, options: ReducingOptions, threads: int) -> None:
        from inductor_probe.reduction.judging import Case, Forks

        self._folder, self._target, self._head = Path(options.folder), Path(options.target), options.head
        self._steps = 0
        self._end = time.monotonic() + options.budget
        keep = tuple(map(predicate_of, options.keep))
        timed = any(one.kind == "slow" for one in keep)
        self.forks = Forks(
            Case(keep, threads, any(one.is_built for one in keep), options.failure, options.causes),
            jobs=1 if timed else options.jobs,
            limit_s=600.0,
            folder=self._folder,
        )
        self._values: Path | None = None
        self._copied = False
        self._tried: dict[str, Any] = {}
        self._journal = self._folder / "tried.jsonl"
        for line in self._journal.read_text().splitlines() if self._journal.exists() else ():
            with suppress(ValueError):  # the last line of a process that was killed
                name, *answer = json.loads(line)
                self._tried[name] = answer
        self.asked = self.known = 0
        self._forms: dict[str, Any] = {}

    def use_values(self, file: str) -> None:
        """Let scripts find the real values of a graph in this file."""
        self._values = Path(file) if file else None

    def ask(self, program: Program) -> Shown:
        """Return what one program shows."""
        answers: dict[int, Shown] = {}
        self._run([program], answers, stop=lambda _: True, over=False)
        return answers[0]

    def first(self, programs: Iterable[Program]) -> tuple[int, Program] | None:
        """Return the first of some programs that shows it: see `search.Asker`."""
        answers: dict[int, Shown] = {}
        made = self._run(programs, answers, stop=lambda answer: answer.holds, over=True)
        place = next((place for place in sorted(answers) if answers[place].holds), None)
        return None if place is None else (place, made[place])

    def _run(
        self,
        programs: Iterable[Program],
        answers: dict[int, Shown],
        *,
        stop: Callable[[Shown], bool],
        over: bool,
    ) -> dict[int, Program]:
        """Ask programs, several at once, until one stops it and all before it are known."""
        left, running, made = enumerate(programs), dict[int, tuple[int, str]](), dict[int, Program]()
        best: int | None = None
        try:
            while True:
                while best is None and not self.forks.is_full and (each := next(left, None)) is not None:
                    if over and time.monotonic() > self._end:
                        raise OverBudgetError
                    place, program = each
                    made[place] = program
                    name, script = self._script(program)
                    if name in self._tried:
                        self.known += 1
                        holds, says, failure, causes = self._tried[name]
                        answers[place] = Shown(holds, tuple(says), tuple(failure), tuple(causes))
                        best = place if stop(answers[place]) else None
                    elif script is not None:
                        running[self.forks.begin(script)] = (place, name)
                if best is not None:
                    for pid in [pid for pid, (place, _) in running.items() if place > best]:
                        self.forks.end(pid)
                        del running[pid]
                if not running:
                    return made
                pid, answer = self.forks.wait()
                place, name = running.pop(pid)
                answers[place], self.asked = answer, self.asked + 1
                self._note(name, answer)
                if stop(answer) and (best is None or place < best):
                    best = place
        finally:
            self.forks.end_all()

    def _script(self, program: Program) -> tuple[str, Path]:
        text = program.text()
        name = hashlib.sha256(f"{self.forks.case.built}{text}".encode()).hexdigest()[:20]
        script = self._folder / "candidates" / f"{name}.py"
        if name not in self._tried:
            script.parent.mkdir(exist_ok=True)
            script.write_text(text)
            if self._values is not None and not script.with_suffix(".pt").exists():
                script.with_suffix(".pt").symlink_to(self._values)
        return name, script

    def _note(self, name: str, answer: Shown) -> None:
        row = [name, answer.holds, list(answer.says), list(answer.failure), list(answer.causes)]
        self._tried[name] = row[1:]
        with self._journal.open("a") as file:
            file.write(json.dumps(row) + "\n")
        for suffix in (".py", ".pt"):
            (self._folder / "candidates" / f"{name}{suffix}").unlink(missing_ok=True)

    def forms(self, program: Program) -> tuple[Forms, ...] | None:
        """Return what the values of a program are: see `search.Asker`."""
        from inductor_probe.reduction.traced import forms_of

        key = program.text()
        if key not in self._forms:
            try:
                self._forms[key] = forms_of(program)
            except Exception:  # whatever torch says of sizes that do not fit each other
                self._forms[key] = None
        forms: tuple[Forms, ...] | None = self._forms[key]
        return forms

    def write(self, program: Program) -> None:
        """Write the best so far, with the values that it has, as a step and in the place of the last."""
        self._steps += 1
        text = program.text(self._head)
        for target in (self._folder / f"step-{self._steps:04}.py", self._target):
            write_whole(target, text)
        values = self._target.with_suffix(".pt")  # of all steps: it has what the graph had
        if self._values is not None and "VALUES[" in text and not self._copied:
            shutil.copyfile(self._values, values)
            self._copied = True


def main() -> None:
    """Reduce, or ask one script, as the command line says."""
    options, tell, _, (script, *arguments) = opened(ReducingOptions)
    folder = Path(options.folder)
    sys.path[:1] = [str(Path(options.target).parent), str(Path(script).parent)]  # in the place of ours
    threads = _import_torch(options, folder)
    reducer = Reducer(options, threads)
    if options.final:
        from inductor_probe.reduction.judging import shown

        with tempfile.TemporaryDirectory(prefix="alone-", dir=folder) as files:
            answer = shown(Path(script), reducer.forks.case, Path(files), arguments)
        tell("final", answer=to_json(answer))
    else:
        traced = _captured(script, arguments, folder, threads)
        tell("captured", ending=traced["ending"], graphs=[one["name"] for one in traced["traced"]])
        _reduce(options, reducer, traced["traced"], tell)
    tell("over", ending="ended")


def _import_torch(options: ReducingOptions, folder: Path) -> int:
    """Import torch, and let it do what it does once, so that forks need not; return its threads.

    No region of OpenMP may run here: its threads would be gone in a fork.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    for name in _LOADED:
        import_module(name)
    config: Any = sys.modules["torch._inductor.config"]
    build_kernels = leave_kernels_out()
    with config.patch({"fx_graph_cache": False}):
        torch.compile(lambda x: (x + 1).sum())(torch.ones(3))
    build_kernels()
    torch._dynamo.reset()
    set_hooks(options.settings, options.flips, EventLog(folder))
    config.compile_threads = 1  # several scripts are compiled at once
    gc.collect()
    gc.freeze()
    return int(threads)


def _captured(script: str, arguments: list[str], folder: Path, threads: int) -> dict[str, Any]:
    """Run the script in a fork; return what it traced."""
    answer = folder / "traced.json"
    pid = os.fork()
    if not pid:
        try:
            import torch

            from inductor_probe.reduction.traced import capture

            torch.set_num_threads(threads)
            Graphs(EventLog(folder), lambda _: True).hook(sys.modules["torch._inductor.output_code"])
            leave_kernels_out()
            answer.write_text(json.dumps(capture(script, arguments, folder)))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(0)
    os.waitpid(pid, 0)
    result: dict[str, Any] = (
        json.loads(answer.read_text()) if answer.exists() else {"traced": [], "ending": "it crashed"}
    )
    return result


def _reduce(options: ReducingOptions, reducer: Reducer, rows: list[Any], tell: Callable[..., None]) -> None:
    from inductor_probe.reduction.judging import operators_in
    from inductor_probe.reduction.traced import Traced

    graphs = [_importing(from_json(Traced, row), options.imports) for row in rows]
    graphs = [one for one in graphs if options.graph in ("", one.name, one.name.partition("/")[0])]
    case = reducer.forks.case
    keep = {one.kind for one in case.keep}
    whole: Traced | None = None
    for one in _together(graphs) if "recompiles" in keep else graphs:
        if one.program is None:
            tell("graph", name=one.name, nodes=0, holds=False, says=[f"cannot be written: {one.problem}"])
            continue
        reducer.use_values(one.values)
        begin, answer = time.monotonic(), reducer.ask(one.program)
        if not answer.holds and "fails" in keep and not case.built:
            reducer.forks.case = replace(case, built=True)
            answer = reducer.ask(one.program)
        seconds = time.monotonic() - begin
        tell("graph", name=one.name, nodes=len(one.program.lines), holds=answer.holds, says=answer.says)
        if answer.holds:
            whole, shown, limit = one, answer, max(_LIMIT_S, _TIMES * seconds)
            break
        reducer.forks.case = case
    if whole is None or whole.program is None:
        tell("nothing")
        return
    reducer.use_values(whole.values)
    reducer.forks.case = replace(reducer.forks.case, failure=shown.failure, causes=shown.causes)
    reducer.forks.limit_s = limit

    def better(phase: str, program: Program) -> None:
        reducer.write(program)
        sizes = sum(len(one.form.size) for one in program.inputs)
        tell(
            "better",
            phase=phase,
            lines=len(program.lines),
            inputs=len(program.inputs),
            sizes=sizes,
            asked=reducer.asked,
            known=reducer.known,
        )

    better("whole", whole.program)
    made = {one.name: one for one in whole.made}
    about = [name for one in case.keep for each in one.expected for name in each.subjects]
    about += operators_in(shown.causes)
    search = Search(reducer, about, made, better)
    smallest = search.reduced(whole.program)
    named = smallest.renamed()
    reducer.write(smallest if "VALUES[" in smallest.text() else named)
    tell(
        "reduced", lines=len(smallest.lines), of=len(whole.program.lines), asked=reducer.asked,
        known=reducer.known, over=search.is_over_budget, graph=whole.name, failure=shown.failure,
        causes=shown.causes,
    )  # fmt: skip


def _importing(one: Any, imports: tuple[str, ...]) -> Any:
    """Return a graph whose script imports modules before it sets anything."""
    if one.program is None or not imports:
        return one
    lines = tuple(f"import {name}" for name in imports)
    return replace(one, program=replace(one.program, settings=(*lines, *one.program.settings)))


def _together(graphs: list[Any]) -> Iterable[Any]:
    """Yield the last graph of each frame that was compiled again, with the inputs of all its compiles."""
    frames: dict[str, list[Any]] = {}
    for one in graphs:
        if one.program is not None:
            frames.setdefault(one.name.partition("/")[0], []).append(one)
    for several in frames.values():
        last = several[-1]
        names = [one.name for one in last.program.inputs]
        calls = []
        for one in several:
            by_name = {each.name: each for each in one.program.inputs}
            if all(name in by_name for name in names):
                calls.append(tuple(replace(by_name[name], values="") for name in names))
        yield replace(last, program=replace(last.program, calls=tuple(calls), options=""))


if __name__ == "__main__":
    main()
