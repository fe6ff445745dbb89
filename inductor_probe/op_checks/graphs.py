"""For a developer's own tests: a function as an FX graph, compiled by inductor, and what it calls.

    graph = trace_op(resize, image, decompositions={torch.ops.aten.flip.default: my_flip})
    compiled = compile_graph(graph, image)
    with OpRecorder() as seen:
        graph(image)
    seen.assert_memory_format("aten.convolution.default", "channels_last")

This is torch in the process that imports it, as a test of torch is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from msgspec import Struct
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from inductor_probe.errors import ProbeError, near_names

_FORMATS = {
    "contiguous": torch.contiguous_format,
    "channels_last": torch.channels_last,
    "channels_last_3d": torch.channels_last_3d,
}


def trace_op(
    function: Callable[..., Any],
    *inputs: Any,
    decompositions: Mapping[Any, Callable[..., Any]] | None = None,
    inductor_table: bool = True,
) -> torch.fx.GraphModule:
    """Return the FX graph of a call, without mutations, its operators decomposed by a table.

    Args:
        function: of tensors. inputs: to trace it with: tensors, or trees of them; sizes become constants.
        decompositions: overloads, or their names (`aten.flip.default`), with what computes them.
        inductor_table: decompose all else as inductor does. Without, the graph shows the operators that
            `function` calls, and inductor may refuse to lower it.
    """
    from torch._inductor.decomposition import select_decomp_table  # noqa: PLC0415 - takes seconds to import
    from torch.fx.experimental.proxy_tensor import make_fx  # noqa: PLC0415 - takes a second to import

    table = dict(select_decomp_table()) if inductor_table else {}
    table.update({_overload(name): made for name, made in (decompositions or {}).items()})
    functional = torch.func.functionalize(function, remove="mutations")
    return make_fx(functional, decomposition_table=table, tracing_mode="fake")(*inputs)


def compile_graph(graph: torch.fx.GraphModule, *inputs: torch.Tensor) -> Callable[..., Any]:
    """Compile a graph by `compile_fx_inner`, as it stands: what AOTAutograd would do to it is left out.

    Args:
        graph: as `trace_op` returns it. inputs: tensors, in the order of its placeholders.

    Returns:
        A function of such tensors, that returns what the graph does: a tensor, or a tuple.

    Raises:
        ProbeError: the graph takes another number of inputs, or takes other things than tensors.
    """
    from torch._inductor.compile_fx import compile_fx_inner  # noqa: PLC0415 - takes seconds to import
    from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: PLC0415

    names = [node.name for node in graph.graph.nodes if node.op == "placeholder"]
    if len(names) != len(inputs) or not all(isinstance(one, torch.Tensor) for one in inputs):
        raise ProbeError(
            f"the graph takes {len(names)} tensors ({', '.join(names)}), not {len(inputs)} values"
        )
    copied = torch.fx.GraphModule(graph, torch.fx.Graph())
    copied.graph.output(
        copied.graph.graph_copy(graph.graph, {})
    )  # inductor's passes change what they are given
    single = _return_tuple(copied)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fakes = [mode.from_tensor(one) for one in inputs]
        torch.fx.passes.fake_tensor_prop.FakeTensorProp(copied, mode).propagate_dont_convert_inputs(*fakes)
        compiled = compile_fx_inner(copied, fakes)

    def call(*values: torch.Tensor) -> Any:
        results = compiled(list(values))
        return results[0] if single else tuple(results)

    return call


def _return_tuple(graph: torch.fx.GraphModule) -> bool:
    """Have a graph return a tuple, as inductor expects; tell whether it returned one value alone."""
    (output,) = (node for node in graph.graph.nodes if node.op == "output")
    single = not isinstance(output.args[0], (tuple, list))
    if single:
        output.args = ((output.args[0],),)
    graph.recompile()
    return single


class TensorForm(Struct, frozen=True):
    """The form of a tensor: dtype, size and stride in elements."""

    dtype: str
    size: tuple[int, ...]
    stride: tuple[int, ...]

    def has(self, memory_format: str) -> bool:
        """Tell whether it is contiguous in a memory format: contiguous, channels_last, channels_last_3d.

        Of a size with channels 1 or one pixel, both can hold.
        """
        made = torch.empty_strided(self.size, self.stride, device="meta")
        return bool(made.is_contiguous(memory_format=_FORMATS[memory_format]))


class OpCall(Struct, frozen=True):
    """A call of an operator: its overload (`aten.flip.default`), and the tensors that go in and come out."""

    op: str
    inputs: tuple[TensorForm, ...]
    outputs: tuple[TensorForm, ...]


class OpRecorder(TorchDispatchMode):  # type: ignore[misc]  # torch does not export its type
    """Records which operators run inside a `with` block, with the forms of their tensors.

    Attributes:
        calls: in their order. Views are among them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[OpCall] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator, and record it."""
        result = func(*args, **(kwargs or {}))
        self.calls.append(OpCall(str(func), _forms((args, kwargs)), _forms(result)))
        return result

    def at(self, name: str) -> Sequence[OpCall]:
        """Return the calls of an overload `aten.flip.default`, or of all overloads of `aten.flip`.

        Raises:
            ProbeError: it was not called.
        """
        calls = [call for call in self.calls if call.op == name or call.op.rpartition(".")[0] == name]
        if not calls:
            raise ProbeError(f"{name} was not called", near_names(name, [call.op for call in self.calls]))
        return calls

    def assert_memory_format(self, name: str, memory_format: str, *, of: str = "outputs") -> None:
        """Fail unless all tensors of four (five) dimensions at each call of `name` have a memory format.

        Args:
            of: `outputs` or `inputs` of the calls.

        Raises:
            AssertionError: one has not: says which, with its stride. ProbeError: it was not called, or not
                with such tensors, or there is no such memory format.
        """
        if memory_format not in _FORMATS:
            raise ProbeError(
                f"there is no memory format {memory_format}", near_names(memory_format, _FORMATS)
            )
        dims = {"channels_last": (4,), "channels_last_3d": (5,)}.get(memory_format, (4, 5))
        forms = [
            (number, place, form)
            for number, call in enumerate(self.at(name))
            for place, form in enumerate(call.outputs if of == "outputs" else call.inputs)
            if len(form.size) in dims
        ]
        if not forms:
            raise ProbeError(
                f"no tensor with {' or '.join(map(str, dims))} dimensions is among the {of} of {name}"
            )
        for number, place, form in forms:
            if not form.has(memory_format):
                raise AssertionError(
                    f"{of[:-1]} {place} of call {number} of {name} is not {memory_format}: "
                    f"{form.dtype} {list(form.size)} with stride {list(form.stride)}"
                )


def _forms(tree: Any) -> tuple[TensorForm, ...]:
    return tuple(
        TensorForm(str(leaf.dtype)[len("torch.") :], tuple(leaf.shape), tuple(leaf.stride()))
        for leaf in pytree.tree_leaves(tree)
        if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided
    )


def overloads_named(name: str) -> list[Any]:
    """Return the overload `aten.flip.default`, or all overloads of `aten.flip`.

    Raises:
        ProbeError: torch has no such operator.
    """
    parts = name.removeprefix("torch.ops.").split(".")
    try:
        operator: Any = torch.ops
        for part in parts:
            operator = getattr(operator, part)
    except AttributeError:
        names = dir(torch.ops.aten) if parts[0] == "aten" else []
        near = near_names(parts[1] if len(parts) > 1 else name, names)
        raise ProbeError(f"torch has no operator {name}", near or "write it as aten.flip.default") from None
    if isinstance(operator, torch._ops.OpOverload):
        return [operator]
    if isinstance(operator, torch._ops.OpOverloadPacket):
        return overloads_of(operator)
    raise ProbeError(f"{name} is not an operator", "write it as aten.flip.default")


def overloads_of(packet: Any) -> list[Any]:
    """Return all overloads of an operator."""
    return [getattr(packet, name) for name in packet.overloads()]


def _overload(name: Any) -> Any:
    """Return an overload that is given as such, or by its name: `aten.flip.default`."""
    if not isinstance(name, str):
        return name
    (overload,) = overloads_named(name)
    return overload
