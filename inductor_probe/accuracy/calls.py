"""A call of the user's compiled callable, judged: eager, in float64, and compiled, from the same state."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.utils._pytree import keystr, tree_flatten_with_path

from inductor_probe.accuracy.judgement import RIGHT, WRONG, Judged, judge, worst
from inductor_probe.accuracy.shadow import Shadow
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
        # Not all that writes to a tensor says so by its version: the running mean of a batch norm, for one.
        small = [one for one in own.state.tensors if not isinstance(one, torch.nn.Parameter) and _plain(one)]
        self._before = {id(one): one.detach().clone() for one in small if id(one) in self._names}

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

    def come_back(self) -> None:
        """Put back the state that the call found, after whatever the program did since."""
        self.own.state.restore_all()

    def run(self, side: str, mode: Any = None) -> None:
        """Make the call once from its state, and put that back."""
        self._run(side, mode)

    def _run(self, side: str, mode: Any = None) -> tuple[Values, Values]:
        own = self.own
        versions = {id(tensor): _version(tensor) for tensor in own.state.tensors}
        with eagerly(side == EAGER):
            if mode is None:
                outputs = own.run(side)
            else:
                with mode:
                    outputs = own.run(side)
        values: Values = {f"output {place}": output for place, output in enumerate(outputs)}
        for tensor in own.state.tensors:
            name = self._names.get(id(tensor), "a tensor")
            if own.backward and tensor.is_leaf and tensor.requires_grad and tensor.grad is not None:
                values[f"gradient of {name}"] = tensor.grad
            if _version(tensor) != versions[id(tensor)] or self._differs(tensor):
                values[f"{name} after the call"] = tensor
        wide: Values = {}
        if isinstance(mode, Shadow):
            wide = {name: mode.of(value.detach()).clone() for name, value in values.items() if _plain(value)}
        copies = {name: value.detach().clone() for name, value in values.items() if _plain(value)}
        own.state.see()
        return copies, wide

    def _differs(self, tensor: torch.Tensor) -> bool:
        before = self._before.get(id(tensor))
        return before is not None and not torch.equal(before.nan_to_num(), tensor.detach().nan_to_num())


def _plain(value: torch.Tensor) -> bool:
    return value.layout == torch.strided and not value.is_mkldnn


def _version(tensor: torch.Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version


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
    return names
