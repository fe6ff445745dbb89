"""Runs a script as `python SCRIPT ARGS` would, and judges the calls of what it compiles; says what it finds.

Command line: that of `capture/own_child.py`, with an `AccuracyOptions` as OPTIONS.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import wrapt

from inductor_probe.accuracy_checks import interpreted
from inductor_probe.accuracy_checks.options import RAISES, AccuracyOptions
from inductor_probe.capture import flips
from inductor_probe.capture.callables import Callables, Callee, context, copied, name_of, untraced, where_of
from inductor_probe.capture.events import EventLog
from inductor_probe.capture.own_child import opened, run_to_end, set_hooks

ALWAYS = (
    ("inductor.fx_graph_cache", "False"),
    ("functorch.enable_autograd_cache", "False"),
    ("inductor.fallback_random", "True"),
)
"""Settings with which a script is judged: graphs are compiled here, and draw the random numbers of eager."""


Context = Callable[[ExitStack], None]
"""Sets torch as it was at a call: gradients, autocast."""
MOST_RECOMPILES = 256
"""Of a callable that is judged with arguments of many sizes."""
MOST_OF_ONE = 3
"""Wrong calls of one callable that are followed: of a training loop each step is wrong by the same."""
MOST_FOLLOWED = 12
"""Wrong calls for which changes are tried: each keeps copies of what it reads."""


class Judge(Callables):
    """Judges calls of the user's callables before they are made.

    Args:
        tell: sends an event.
    """

    def __init__(self, options: AccuracyOptions, tell: Callable[..., None]) -> None:
        super().__init__()
        self._options, self._tell = options, tell
        self._spent = 0.0
        self._graphs: dict[int, list[Any]] = {}
        self._followers: list[tuple[int, Any, Context]] = []
        self._rounded: list[tuple[int, Callee, Any, Context]] = []
        self._followed: dict[int, int] = {}
        self._first: dict[int, tuple[Callee, Any, Any]] = {}
        self._stages: Any = None

    def set_up(self) -> None:
        """Set the hooks: torch is imported by this."""
        from inductor_probe.accuracy_checks.stages import Stages  # noqa: PLC0415 - settings come first

        self._stages = Stages()
        self._stages.install()

    def before(self, callee: Callee, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Judge a call, unless there were many: then each second, fourth, eighth one."""
        callee.calls += 1
        number = callee.calls
        if self._options.vary and id(callee) not in self._first:
            self._first[id(callee)] = (callee, copied((args, kwargs)), context())
        if self._spent > self._options.seconds and number & (number - 1):
            return
        begin = time.monotonic()
        self.busy = True
        try:
            with untraced():
                self._judge(callee, number, args, kwargs)
        except Exception as error:  # whatever his program, or torch, may raise
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            message = f"{type(error).__name__}: {' '.join(lines[:2])}"
            self._tell("not-judged", name=name_of(callee.eager), call=number, message=message)
            if RAISES in os.environ:
                raise
        finally:
            self.busy = False
            self._spent += time.monotonic() - begin

    def _vary(self) -> None:
        """Judge each callable with other arguments than the script has."""
        from inductor_probe.harness.varied import varied  # noqa: PLC0415 - torch is there now

        sys.modules["torch._dynamo.config"].recompile_limit = MOST_RECOMPILES  # type: ignore[attr-defined]
        for callee, (args, kwargs), enter in self._first.values():
            for what, *other in varied(args, kwargs):
                with ExitStack() as stack, untraced():
                    enter(stack)
                    try:
                        self._judge(callee, 1, other[0], other[1], what)
                    except Exception as error:  # the program, or eager, may not take such arguments
                        self._tell(
                            "not-varied", name=name_of(callee.eager), what=what, message=str(error)[:200]
                        )

    def _judge(self, callee: Callee, number: int, args: Any, kwargs: Any, what: str = "") -> None:
        from inductor_probe.accuracy_checks.calls import CheckedCall  # noqa: PLC0415 - torch is there now
        from inductor_probe.harness.own_calls import OwnCall  # noqa: PLC0415

        before = len(self._stages.traced)
        call = CheckedCall(OwnCall(callee.eager, callee.compiled, args, kwargs, backward=True))
        verdict = call.check()
        followed = self._followed.get(id(callee), 0)
        follows = self._options.follow and followed < MOST_OF_ONE
        follower: Any = None
        if follows and (verdict == "wrong" or call.is_drawn):
            from inductor_probe.accuracy_checks.follow import Follower  # noqa: PLC0415

            follower = Follower(call, self._stages, self._tell)
        if follower is not None and call.is_drawn:
            verdict = follower.decide()
        graphs = self._graphs.setdefault(id(callee), [])
        graphs += [one for traced in self._stages.traced[before:] for one in traced.lowered]
        self._tell(
            "call", name=name_of(callee.eager), where=where_of(callee), call=number, verdict=verdict,
            judged={name: vars(one) for name, one in call.judged.items()}, remarks=call.remarks,
            refused=call.refused, graphs=[one.key for one in graphs], inputs=what,
        )  # fmt: skip
        if verdict == "rounding" and len(self._rounded) < MOST_FOLLOWED and any(map(_casts, graphs)):
            self._rounded.append((number, callee, call, context()))
        if verdict == "wrong" and follower is not None:
            self._followed[id(callee)] = followed + 1
            if not follower.found:
                follower.follow()
            if len(self._followers) < MOST_FOLLOWED:
                self._followers.append((number, follower, context()))
            self._tell_faults(number, follower)

    def _tell_missing(self) -> None:
        """Say which private places of torch are not there: what they tell is not known."""
        version = sys.modules["torch"].__version__ if "torch" in sys.modules else ""
        for place in self._stages.missing:
            self._tell("not-followed", stage=place, message=f"not available on torch {version}")

    def _tell_faults(self, number: int, follower: Any) -> None:
        for fault in follower.found:
            self._tell("fault", call=number, **{**vars(fault), "judged": vars(fault.judged)})

    def at_end(self, ending: str) -> None:
        """Find out what makes the calls right that are wrong, or whether casts that were left out do."""
        from inductor_probe.accuracy_checks.changes import casts_kept  # noqa: PLC0415 - torch is there now

        self.busy = True
        if self._first:
            self._vary()
        for number, callee, call, enter in self._rounded if self._options.follow else ():
            name = name_of(callee.eager)
            try:
                with ExitStack() as stack, untraced():
                    enter(stack)
                    call.come_back()
                    names = [*call.right_with(casts_kept())]
                self._tell("casts", name=name, where=where_of(callee), call=number, values=names)
            except Exception as error:  # whatever torch may raise where it compiles otherwise
                self._tell("not-judged", name=f"{name} with casts kept", call=number, message=str(error))
        for place, (number, follower, enter) in enumerate(self._followers):
            try:
                with ExitStack() as stack, untraced():
                    enter(stack)
                    follower.explain(self._options.try_s / (len(self._followers) - place))
                self._tell_faults(number, follower)
            except Exception as error:  # whatever torch may raise where it compiles otherwise
                self._tell("not-judged", name="what makes it right", call=number, message=str(error))
                if RAISES in os.environ:
                    raise
        self._tell_missing()
        self._tell("over", ending=ending)


def _casts(lowered: Any) -> bool:
    """Whether a graph has a cast to a narrower float."""
    return any(
        "float16" in str(node.args) for node in lowered.graph.graph.nodes if "conver" in str(node.target)
    )


def main() -> None:
    """Run the script, and say in the end how far it came."""
    chosen, tell, _, (script, *args) = opened(AccuracyOptions)
    judge = Judge(chosen, tell)
    judge.install()
    log = EventLog(Path(chosen.folder))
    if chosen.target is not None:
        for name, set_all in interpreted.hooks(chosen.target, log, Path(chosen.folder)):
            wrapt.register_post_import_hook(set_all, name)
    named = flips.settings_without_dump(chosen.flips, chosen.folder)
    set_hooks((*ALWAYS, *named, *chosen.settings), chosen.flips, log)
    judge.set_up()
    run_to_end(script, args, judge.at_end)


if __name__ == "__main__":
    main()
