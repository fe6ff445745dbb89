"""A call of the user's compiled callable, judged: eager, in float64, and compiled, from the same state."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import torch
from torch.utils._pytree import keystr, tree_flatten_with_path

from inductor_probe.accuracy_checks.judgement import RIGHT, WRONG, Judged, judge, worst
from inductor_probe.accuracy_checks.shadow import Shadow
from inductor_probe.harness.own_calls import COMPILED, EAGER, OwnCall, eagerly
from inductor_probe.harness.own_state import draw_otherwise

Values = dict[str, torch.Tensor]


class CheckedCall:
    """One call, from the state that it found.

    Attributes:
        judged: by the name of a value: `output 0`, `gradient of weight`, `argument 1 after the call`.
        remarks: `draws` (random numbers that are drawn from outside torch), `varies` (eager gives other
            values each time), `strides`: values whose memory is laid out differently.
        refused: operations that have no float64.
    """

    def __init__(self, own: OwnCall) -> None:
        self.own = own
        self.judged: dict[str, Judged] = {}
        self.remarks: dict[str, str] = {}
        self.refused: dict[str, str] = {}
        self._names = _names(own)
        self._right: tuple[Values, Values] = ({}, {})
        self._noise: dict[int, Values] = {}

    def check(self) -> str:
        """Run both, compare, and return the verdict."""
        reference = Shadow()
        self._right = self._run(EAGER, reference)
        self.refused = reference.refused
        self.judged = self.again()
        if self.verdict == WRONG:
            self._replay(self._right[0])
        return self.verdict

    def again(self) -> dict[str, Judged]:
        """Make the compiled call, and judge what it gives beside what eager gave."""
        eager, wide = self._right
        compiled, _ = self._run(COMPILED)
        judged: dict[str, Judged] = {}
        for name in eager:
            if name not in compiled:
                judged[name] = Judged(WRONG, "form", form=(_form(eager[name]), "nothing"))
                continue
            judged[name] = judge(eager[name], compiled[name], wide[name], partial(self._noisy_value, name))
            if eager[name].stride() != compiled[name].stride() and eager[name].numel() > 1:
                self.remarks["strides"] = name
        for name in compiled.keys() - eager.keys():
            judged[name] = Judged(WRONG, "form", form=("nothing", _form(compiled[name])))
        return judged

    @property
    def verdict(self) -> str:
        """Of all values: the worst."""
        return worst([*self.judged.values()])

    @property
    def is_drawn(self) -> bool:
        """Whether random numbers that are drawn are all that makes it undecided."""
        undecided = [one.why for one in self.judged.values() if one.verdict == "undecided"]
        return bool(undecided) and set(undecided) == {"draws"} and self.verdict != WRONG

    def is_wrong(self) -> None:
        """Note that what is undecided is wrong: not by random numbers."""
        for judged in self.judged.values():
            if judged.verdict == "undecided":
                judged.verdict, judged.why = WRONG, "values"

    def _replay(self, eager: Values) -> None:
        """Run eager again, and with other random numbers: what differs then is not the compiler's."""
        again, _ = self._run(EAGER)
        draw_otherwise()
        drawn, _ = self._run(EAGER)
        for name, judged in self.judged.items():
            if judged.verdict == RIGHT or name not in eager:
                continue
            for remark, other in (("varies", again), ("draws", drawn)):
                if name in other and judge(eager[name], other[name]).verdict != RIGHT:
                    self.remarks.setdefault(remark, name)
                    judged.verdict, judged.why = "undecided", remark

    def _noisy(self, seed: int) -> Values:
        if seed not in self._noise:
            self._noise[seed] = self._run(EAGER, Shadow(seed))[1]
        return self._noise[seed]

    def _noisy_value(self, name: str, seed: int) -> torch.Tensor | None:
        return self._noisy(seed).get(name)

    def right_with(self, change: AbstractContextManager[Any]) -> set[str]:
        """Compile it with a change, and return the values that are right then, of those that are not.

        Dynamo forgets what it compiled.
        """
        before = {name for name, one in self.judged.items() if one.verdict != RIGHT}
        torch._dynamo.reset()
        try:
            with change:
                after = self.again()
        finally:
            torch._dynamo.reset()
        return {name for name in before if name in after and after[name].verdict == RIGHT}

    def come_back(self) -> None:
        """Put back the state that the call found, after whatever the program did since."""
        self.own.state.restore_all()

    def run(self, side: str, mode: Any = None) -> None:
        """Make the call once from its state, and put that back."""
        self._run(side, mode)

    def _run(self, side: str, mode: Any = None) -> tuple[Values, Values]:
        own = self.own
        with eagerly(side == EAGER):
            if mode is None:
                outputs = own.run(side)
            else:
                with mode:
                    outputs = own.run(side)
        values: Values = {f"output {place}": output for place, output in enumerate(outputs)}
        for tensor in own.state.tensors:
            name = self._names[id(tensor)]
            if own.backward and tensor.is_leaf and tensor.requires_grad and tensor.grad is not None:
                values[f"gradient of {name}"] = tensor.grad
        # Not all that writes to a tensor counts its versions: the running mean of a batch norm, for one.
        for tensor in own.state.changed_tensors():
            values[f"{self._names[id(tensor)]} after the call"] = tensor
        wide: Values = {}
        if isinstance(mode, Shadow):
            wide = {name: mode.of(value.detach()).clone() for name, value in values.items() if _plain(value)}
        copies = {name: value.detach().clone() for name, value in values.items() if _plain(value)}
        own.state.see()
        return copies, wide


def _plain(value: torch.Tensor) -> bool:
    return value.layout == torch.strided and not value.is_mkldnn


def _form(value: torch.Tensor) -> str:
    return f"{str(value.dtype)[6:]} {list(value.shape)}"


def _names(own: OwnCall) -> dict[int, str]:
    """Return what the user calls tensors: by id."""
    names: dict[int, str] = {}
    function: Callable[..., Any] = own.functions[EAGER]
    module = getattr(function, "__self__", function)
    if isinstance(module, torch.nn.Module):
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            names[id(tensor)] = name
    for place, value in enumerate(own.args):
        for path, leaf in tree_flatten_with_path(value)[0]:
            names.setdefault(id(leaf), f"argument {place}{keystr(path)}")
    for key, value in own.kwargs.items():
        for path, leaf in tree_flatten_with_path(value)[0]:
            names.setdefault(id(leaf), f"argument {key}{keystr(path)}")
    for place, tensor in enumerate(own.state.tensors):
        names.setdefault(id(tensor), f"tensor {place}")
    return names
