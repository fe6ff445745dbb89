"""Who asked torch to realise a buffer, or to fix its layout: the frames on the stack say it.

torch has one function that realises (`StorageBox.realize`) and five that fix a layout, and dozens that call
them. Between the decision and who asked for it stand functions that only pass it on (`require_strides`,
`as_storage_and_layout`, ...). The first frame that does more than this is who asked. For example

    copy_input <- require_strides <- require_exact_strides <- run_node       a graph's output
    realize_input <- process_kernel <- create <- handler <- call_function    an operand of an extern kernel
    decide_layout <- finalize                                                nobody: lowering is over
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from inductor_probe.capture.recorders.decision_log import (
    frame_at,
    named,
)
from inductor_probe.model.decision import Operand, TorchFrame

_GRAPH = "torch/_inductor/graph.py"
_IR = "torch/_inductor/ir.py"
_LOWERING = "torch/_inductor/lowering.py"
_LOWERING_MODULE = "torch._inductor.lowering"
_CONVOLUTION = "torch/_inductor/kernel/conv.py"
_EXTERN = (_IR, "torch/_inductor/mkldnn_ir.py", "torch/_inductor/comm_lowering.py")
_TEMPLATES = (
    "torch/_inductor/kernel/", "torch/_inductor/select_algorithm.py", "torch/_inductor/codegen/",
    "torch/_inductor/scheduler.py",
)  # fmt: skip

_PASSING_ON = frozenset((
    "realize", "realize_hint", "mark_reuse", "copy_input", "realize_input", "require_stride1",
    "require_strides", "require_stride_order", "require_exact_strides", "require_channels_last",
    "require_channels_last_3d", "require_contiguous", "require_contiguous_strides", "as_storage_and_layout",
    "convert_to_reinterpret_view", "decide_layout", "get_fill_order", "freeze_layout",
    "freeze_layout_with_stride_order", "freeze_layout_with_fill_order", "freeze_layout_with_same_order",
    "freeze_layout_with_exact_strides", "unwrap_storage_for_input", "unwrap_storage", "get_read_indices",
    "create_reinterpret_view", "handle_unbacked_or_dynamic_reshape",
))  # fmt: skip
"""In ir.py: functions that realise a buffer or fix a layout for whoever calls them."""
_ANYWHERE = frozenset(("<genexpr>", "<listcomp>", "<dictcomp>", "<lambda>", "realize_inputs"))
_CONSTRAINTS = frozenset((
    "constrain_to_fx_strides", "constrain_to_fake_tensor", "constrain_to_fake_tensors", "apply_constraint",
    "require_dense", "require_contiguous", "require_contiguous_strides", "require_channels_last",
    "sdpa_constraint", "_apply_constraint_inner",
))  # fmt: skip
"""In lowering.py: what `maybe_layout_constraints` returns for an operator, and what these call."""
_OF_SPLIT = "check_for_split_dense_dim_reindexing"
_TAGS = (
    "needs_exact_strides", "needs_contiguous_strides", "needs_fixed_stride_order", "flexible_layout",
)  # fmt: skip
"""In torch's order, `torch._library.utils.get_layout_constraint_tag`."""
_OUTERMOST = frozenset(("run_node", "output", "finalize", "codegen"))
AskerCode: TypeAlias = Literal[
    "output", "as-strided-input", "channels-last-preferred", "convolution", "operator-constraint",
    "extern-operand", "template", "view", "concatenation", "mutation", "reduction-strides",
    "reduction-layers", "lowering", "end-of-lowering",
]  # fmt: skip
"""What kind of thing asked: the operand `asker`, which `catalogue/shared.py` explains."""
_AS_STRIDED = ("aten.as_strided", "aten.resize")


class Asker(Struct, frozen=True):
    """Who asked.

    Attributes:
        code: what kind of thing it is. place: the function that asked, with the call in progress.
        trail: names of the functions from the decision outwards to it, it included.
        node: the FX node that torch was lowering. operator: what that calls. Both None outside of lowering.
        tag: of the operator, which says how its operands have to lie, where that is what asks.
    """

    code: AskerCode
    place: TorchFrame
    trail: tuple[str, ...]
    node: str | None
    operator: str | None
    tag: str | None = None

    def operands(self) -> dict[str, Operand]:
        """Return who asked as operands of a decision."""
        operands: dict[str, Operand] = {"asker": self.code, "function": self.place.function}
        if self.node is not None:
            operands["lowering"] = self.node
        if self.operator is not None:
            operands["operator"] = self.operator
        if self.tag is not None:
            operands["tag"] = self.tag
        return operands


def asker(frame: FrameType | None, graph: Any) -> Asker | None:
    """Return who asked for what is being decided in `frame`, None where no function of inductor did.

    Args:
        graph: torch's `V.graph`, of which the FX node in lowering is read.
    """
    trail: list[str] = []
    asking: TorchFrame | None = None
    caller = frame
    while caller is not None:
        file, name = named(caller.f_code)
        if file is not None:
            last = name.rpartition(".")[2]
            trail.append(last)
            asking = frame_at(caller.f_code, caller.f_lineno)
            passes_on = last in _ANYWHERE or (file == _IR and last in _PASSING_ON)
            if not passes_on or (file == _GRAPH and last in _OUTERMOST):
                break
        caller = caller.f_back
    if asking is None or caller is None:
        return None
    node: Any = None if trail[-1] in ("finalize", "codegen") else getattr(graph, "current_node", None)
    code = _code(asking, trail, caller, node)
    if code == "extern-operand" and trail[-1] == "run_node":  # for a user that is lowered later
        node = next(iter(users_of_buffers(node)), node)
    operator = operator_of(node) if node is not None and node.op == "call_function" else None
    tag = _tag(node) if code == "operator-constraint" else None
    return Asker(code, asking, tuple(trail), getattr(node, "name", None), operator, tag)


def operator_of(node: Any) -> str:
    """Return what an FX node calls: `aten.mm.default`, or a function of inductor by its name.

    A pattern that was replaced calls a `functools.partial` of a function, whose text has an address.
    """
    target = node.target
    if type(target).__name__ in ("OpOverload", "OpOverloadPacket"):
        return str(target)
    while (function := getattr(target, "func", None)) is not None:
        target = function
    return str(getattr(target, "__qualname__", target))


def decomposition_of(mode: Any, operator: Any) -> Any:
    """Return the function that `maybe_handle_decomp` decomposes an operator with, None where it has none."""
    table = getattr(mode, "decomposition_table", None)
    if table is None:  # torch 2.11
        table = sys.modules["torch.fx.experimental.proxy_tensor"].CURRENT_DECOMPOSITION_TABLE
    return table.get(operator)


def _tag(node: Any) -> str | None:
    """Return the tag of an operator that asks for a layout of its operands; an enum names each."""
    names = {str(getattr(tag, "name", tag)) for tag in getattr(getattr(node, "target", None), "tags", ())}
    return next((name for name in _TAGS if name in names), None)


def prefers_channels_last(node: Any, graph: Any) -> bool:
    """Whether `GraphLowering.run_node` makes a returned value channels-last that eager mode need not have so.

    It does so under layout optimisation, near a convolution, of what a backward graph gets and no user sees.
    """
    if node is None or node not in getattr(graph, "nodes_prefer_channels_last", ()):
        return False
    value = node.meta.get("val")
    is_image = value is not None and value.dim() == 4
    used = any(str(user.target).startswith(_AS_STRIDED) for user in node.users)
    return is_image and not used and node not in getattr(graph, "user_visible_output_strides", ())


def users_of_buffers(node: Any) -> list[Any]:
    """Return the users of an FX node that take nothing but buffers."""
    needing = sys.modules[_LOWERING_MODULE].needs_realized_inputs
    return [user for user in getattr(node, "users", ()) if user.target in needing]


def _code(asking: TorchFrame, trail: list[str], frame: FrameType, node: Any) -> AskerCode:
    file, name = asking.file, trail[-1]
    if file == _GRAPH:
        return _of_graph(name, node)
    if file == _CONVOLUTION or (file in _EXTERN and "convolution" in name):
        return "convolution"
    if file == _LOWERING and name in _CONSTRAINTS:
        return "operator-constraint"
    if file == _IR and name == "num_splits":
        return "reduction-strides"
    if file == _IR and name == "realize_into":
        return "concatenation" if _owner(frame) == "ConcatKernel" else "mutation"
    if file == _IR and name == "create" and _owner(frame) == "ConcatKernel":
        return "concatenation"
    if file == _IR and name == "create" and _owner(frame).endswith("View"):
        return "view"
    if file in _EXTERN:
        return "reduction-layers" if "multilayer" in name or name == _OF_SPLIT else "extern-operand"
    if file.startswith(_TEMPLATES):
        return "template"
    return "lowering"


def _owner(frame: FrameType) -> str:
    """Return the class of a class method: Python 3.10 does not name it."""
    return str(getattr(frame.f_locals.get("cls"), "__name__", ""))


def _of_graph(name: str, node: Any) -> AskerCode:
    """Return what `GraphLowering.run_node` has in hand, by the users of the node as torch tests them."""
    if name == "finalize":
        return "end-of-lowering"
    if name == "output":
        return "output"
    if name == "mark_buffer_mutated":
        return "mutation"
    if name == "maybe_apply_channels_last_stride_order":
        return "channels-last-preferred"
    users = list(getattr(node, "users", ()))
    if any(user.op == "output" for user in users):
        return "output"
    if any(str(user.target).startswith(_AS_STRIDED) for user in users):
        return "as-strided-input"
    # A user in `needs_realized_inputs`, or a pass that marked the node.
    return "lowering" if getattr(node, "meta", {}).get("inductor_realize_to_strides") else "extern-operand"
