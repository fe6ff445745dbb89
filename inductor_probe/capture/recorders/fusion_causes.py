"""What torch compared when it refused to fuse a pair: a cause with its operands.

A function here reads the scheduler nodes of a pair (`first` runs before `second` in the fused kernel) and
asks torch nothing that costs or keeps state. `Reason` holds what was seen; texts of index expressions are
made once for each pair that is recorded, not for each of the many times that torch asks.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any, TypeAlias

from inductor_probe.capture.branches import CallPath, CannotWatchError, WatchedCopy, calls, holes
from inductor_probe.capture.recorders.base import Operands
from inductor_probe.capture.recorders.decision_log import decides, path_of_name, printed
from inductor_probe.capture.torch_places import watched_copy
from inductor_probe.model.decision import CauseCode, Operand
from inductor_probe.model.fusion_reasons import REASONS

Reason: TypeAlias = tuple[CauseCode, Operands]
LazyCause: TypeAlias = Callable[[], Reason]

_DISTANCE = "proximity_score > ?"
_NODES, _SCORE = "len(node1.get_nodes()) + len(node2.get_nodes()) > ?", "shared_data_score < ?"
_BUFFERS = "scheduler.fusion_prevent_too_many_reads_and_writes(node1, node2, ?)"
_REUSED = "?statically_known_gt(memory_overhead, ? * bw_saving)"


def asked_again(name: str, *args: Any) -> tuple[Any, CallPath | None]:
    """Return what a watched copy of a function of the scheduler says, and which way it went.

    It has to be one that changes nothing; torch has asked it just before. None where it cannot be watched.
    """
    copy = _copy("torch._inductor.scheduler", name)
    if copy is None:
        return None, None
    with calls() as made:
        says = copy.ask(*args)
    return says, path_of_name(name, made)


@functools.cache
def _copy(module: str, name: str) -> WatchedCopy | None:
    try:
        return watched_copy(sys.modules[module], name)
    except CannotWatchError:
        return None


def _limit(which: str, name: str, pattern: str) -> Operands:
    """Return what `InductorChoices` compares with in a test: torch's literal, or the setting there."""
    copy = _copy("torch._inductor.choices", f"InductorChoices.{name}")
    value = copy.limit(pattern) if copy is not None else None
    return {which: value} if isinstance(value, int | float) else {}


def logged_cause(
    form: str, args: tuple[Any, ...], pair: tuple[Any, Any] | None, frame: FrameType
) -> Reason | LazyCause:
    """Return the cause of a refusal that torch logs, or what returns it where it takes long to tell.

    Args:
        form, args: what `WhyNoFuse` was called with.
        pair: the nodes, None if they are not known.
        frame: of the function that refused. Its variables are gone when the cause is asked for.
    """
    reason = REASONS.get(form)
    if reason is None or reason.code == "other":
        return "other", {"text": form % args if args else form}
    operands: Operands = {name: text_of(value) for name, value in zip(reason.numbers, args, strict=False)}
    code = reason.code
    if pair is None:
        return code, operands
    first, second = pair
    match code:
        case "accesses-differ":
            both_reduce = first.is_reduction() and second.is_reduction()
            state = {"cpu": is_cpu(first, second), "both_reduce": both_reduce}
            return _later(unshared, _by_buffer(first), _by_buffer(second), state)
        case "dependency-differs":
            return _dependency(first, second, frame.f_locals)
    operands |= _compared(code, first, second, frame)
    return code, operands


def _compared(code: CauseCode, first: Any, second: Any, frame: FrameType) -> Operands:
    """Return what torch compared beside what its reason says."""
    match code:
        case "intermediate-node":
            variables = frame.f_locals
            return {"node": str(variables.get("op_name")), "buffer": str(variables.get("name"))}
        case "fusion-size-limit":
            nodes = len(first.get_nodes()) + len(second.get_nodes())
            return {"nodes": nodes, **_limit("limit", "can_fuse", _NODES)}
        case "too-many-buffers":
            return _limit("limit", "can_fuse", _BUFFERS)
        case "few-shared-bytes":
            return _limit("threshold", "can_fuse_horizontal", _SCORE)
        case "distant-nodes":
            _, path = asked_again("Scheduler.are_long_distant_nodes", first.scheduler, first, second)
            seen = path.tested(_DISTANCE) if path is not None else None
            return dict(zip(("distance", "limit"), seen.values, strict=True)) if seen is not None else {}
        case "peak-memory":
            return _reusable(first, second)
        case "cycle":
            return {"through": _through(first, second)}
        case "tiling-not-of-reduction" | "ranges-do-not-split" | "numel-of-neither":
            return _numels(first, second)
    return {}


def _later(function: Callable[..., Reason], *args: Any) -> LazyCause:
    return lambda: function(*args)


# Accesses. A dep is an access of a node: MemoryDep(buffer, index, loop variables, sizes), StarDep (the whole
# buffer), WeakDep (order only). torch/_inductor/dependencies.py


_Uses: TypeAlias = dict[str, list[tuple[str, Any]]]
"""Of each buffer that a node uses how it does and the dep: `{"buf0": [("writes", dep)]}`."""


def unshared(one: _Uses, other: _Uses, state: dict[str, bool]) -> Reason:
    """Return why two nodes share no data by torch's count, from their accesses.

    `Scheduler.score_fusion_memory` sums the bytes of the deps that are in both nodes, equal in buffer, index
    and sizes. For example a node that writes buf0 at `4*d0 + d1` over (8, 4), and one that reads it at
    `d0 + 4*d1` over (4, 8), share nothing: the order of loops differs. torch would reorder those of one, but
    not for the CPU, nor where both reduce (`Scheduler.shared_data_after_reordering_loop`): see `state`.
    """
    common = [name for name in one if name in other]
    if not common:
        return "no-common-data", {}
    rows = [
        (_equal_but_for(mine, yours), (does, did) != ("reads", "reads"), name, does, mine, did, yours)
        for name in common
        for does, mine in one[name]
        for did, yours in other[name]
    ]
    code, _, name, does, mine, did, yours = max(rows, key=lambda row: (row[0] is not None, row[1]))
    operands: Operands = {
        "buffer": name, "first_does": does, "second_does": did,
        **_access("first", mine), **_access("second", yours), "buffers": tuple(common),
    }  # fmt: skip
    return ("accesses-differ", operands) if code is None else (code, {**operands, **state})


def _by_buffer(node: Any) -> _Uses:
    """Return the accesses of a node, as they are now.

    A node that writes into a buffer in place has a dep on all of it, so that it runs after what was written
    before (`Scheduler.compute_dependencies`), and writes under a new name: it `updates` the buffer there.
    """
    uses: _Uses = {}
    updates = _updates(node)
    for does, deps in (("writes", node.read_writes.writes), ("reads", node.read_writes.reads)):
        for dep in deps:
            if _is_order(dep):
                continue
            if dep.name in updates and not hasattr(dep, "var_names"):
                uses.setdefault(dep.name, []).append(("updates", updates[dep.name]))
            else:
                uses.setdefault(dep.name, []).append((does, dep))
    return uses


def _updates(node: Any) -> dict[str, Any]:
    """Return the deps by which a node writes into buffers in place, by the names of these buffers."""
    written = {dep.name: dep for dep in node.read_writes.writes}
    return {
        mutated: written[output.get_name()]
        for output in node.get_outputs()
        for mutated in output.get_mutations()
        if output.get_name() in written
    }


def _equal_but_for(first: Any, second: Any) -> CauseCode | None:
    """Return how two accesses of the same elements differ in their loops; None where they are others.

    As torch tests it: once loops are merged, `10*d0 + d1` over (6, 10) is `15*d0 + d1` over (4, 15), and once
    those are sorted by stride, `d0 + 64*d1` over (64, 64) is `d0` over 4096.
    """
    if not all(_is_affine(dep) for dep in (first, second)) or len(first.size) + len(second.size) < 3:
        return None
    if first.normalize() == second.normalize():
        return "loop-sizes-differ"
    is_equal = first.normalize_with_stride_order() == second.normalize_with_stride_order()
    return "loop-order-differs" if is_equal else None


def _is_affine(dep: Any) -> bool:
    """Whether an index has loop variables only, and sizes that are numbers: no gather, nothing dynamic."""
    if not hasattr(dep, "var_names"):
        return False
    return dep.index.free_symbols <= set(dep.var_names) and all(size.is_number for size in dep.size)


def _access(which: str, dep: Any) -> Operands:
    """Return `{"first_index": "4*d0 + d1", "first_ranges": "d0: 8, d1: 4"}`; a whole buffer has no index."""
    if not hasattr(dep, "var_names"):
        return {f"{which}_index": "all"}
    pairs = zip(dep.var_names, dep.size, strict=False)
    ranges = ", ".join(f"{printed(name)}: {printed(size)}" for name, size in pairs)
    return {f"{which}_index": printed(dep.index), f"{which}_ranges": ranges}


def _dependency(first: Any, second: Any, variables: Mapping[str, Any]) -> LazyCause:
    """Read which dep is left, from the variables of `Scheduler.can_fuse_vertical`."""
    remaining = variables.get("remaining_deps_by_name", {})
    names = set(first.get_buffer_names())
    left = next((dep for deps in remaining.values() for dep in deps if dep.name in names), None)
    if left is None:
        return lambda: ("dependency-differs", {})
    is_weak = _is_order(left)
    write = next((dep for dep in first.read_writes.writes if dep.name == left.name), None)
    if is_weak:  # the second may overwrite only when the first has read
        real = _real_name(second, left.mutating_buf)
        write = next((dep for dep in first.read_writes.reads if dep.name == real), write)
        left = next((dep for dep in second.read_writes.writes if dep.name == left.mutating_buf), left)
    updated = None if is_weak or hasattr(left, "var_names") else _updates(second).get(left.name)

    def cause() -> Reason:
        operands: Operands = {"buffer": (write or left).name}
        if write is not None:
            operands |= _access("first", write)
        if is_weak:
            return "in-place-write", {**operands, **_access("second", left)}
        does = "reads" if updated is None else "updates"
        return "dependency-differs", {**operands, "second_does": does, **_access("second", updated or left)}

    return cause


def _real_name(node: Any, mutating: str) -> str:
    return str(node.scheduler.mutation_real_name.get(mutating, mutating))


def common_buffers(first: Any, second: Any) -> tuple[str, ...]:
    """Return the buffers whose bytes `Scheduler.score_fusion_memory` counts, in the order of the first.

    It counts equal deps. Where it counts by name, of templates, or none is equal, they are all that both use.
    """
    others = {*second.read_writes.reads, *second.read_writes.writes}
    mine = [dep for dep in (*first.read_writes.writes, *first.read_writes.reads) if not _is_order(dep)]
    names = {dep.name for dep in others if not _is_order(dep)}
    is_template = first.is_template() or second.is_template()
    equal = [] if is_template else [dep.name for dep in mine if dep in others]
    return tuple(dict.fromkeys(equal or [dep.name for dep in mine if dep.name in names]))


def _is_order(dep: Any) -> bool:
    """Whether a dep orders two nodes, and moves no data: a `WeakDep`."""
    return hasattr(dep, "mutating_buf")


# Templates


def epilogue_cause(path: CallPath | None, template: Any) -> Reason:
    """Return which leg of the condition of `Scheduler._can_fuse` an epilogue of a template does not meet."""
    if decides(path, "node2.is_reduction()"):
        return "epilogue-reduces", {}
    if decides(path, "_is_epilogue_fusion_enabled(node1)") or decides(path, "config.epilogue_fusion"):
        own = getattr(template.get_template_node(), "allow_epilogue_fusion", None)
        return "epilogue-fusion-off", {"template_setting": own is not None}
    is_seen = decides(path, "node2.has_aliasing_or_mutation()")
    return ("epilogue-mutates" if is_seen else "unlisted-test"), {}


# Other operands


def is_cpu(first: Any, second: Any) -> bool:
    """Whether a node of the pair runs on the CPU."""
    return any(node.get_device() is not None and node.get_device().type == "cpu" for node in (first, second))


def _numels(first: Any, second: Any) -> Operands:
    (_, (numel1, rnumel1)), (_, (numel2, rnumel2)) = first.group, second.group
    return {
        "first_numel": text_of(numel1), "second_numel": text_of(numel2),
        "first_rnumel": text_of(rnumel1), "second_rnumel": text_of(rnumel2),
    }  # fmt: skip


def _reusable(first: Any, second: Any) -> Operands:
    """Return what `Scheduler.can_fusion_increase_peak_memory` compared: memory to be reused, and a factor."""
    _, path = asked_again("Scheduler.can_fusion_increase_peak_memory", first.scheduler, first, second)
    seen = path.tested(_REUSED) if path is not None else None
    if path is None or seen is None:
        return {}
    factor = path.literal((holes(seen.text, _REUSED) or ("", ""))[1])
    return {"reusable_elements": seen.values[0], **({"factor": factor} if factor is not None else {})}


def _through(first: Any, second: Any) -> tuple[str, ...]:
    """Return the nodes in the fused node by which each of a pair would wait for the other.

    As `Scheduler.will_fusion_create_cycle`: an ancestor of the pair was fused with a node that is none, and
    that node needs one of the pair. Only the first step of such a path is named.
    """
    names = {*first.get_operation_names(), *second.get_operation_names()}
    ancestors = {*first.ancestors, *second.ancestors} - names
    fused = (first.scheduler.name_to_fused_node[name] for name in ancestors)
    rows = [node for node in fused if not set(node.get_operation_names()) <= ancestors]
    direct = [node for node in rows if names & set(node.ancestors)]
    return next((leaf_names(node) for node in (*direct, *rows)), ())


def leaf_names(node: Any) -> tuple[str, ...]:
    """Return the names of the unfused nodes in a scheduler node."""
    return tuple(leaf.get_name() for leaf in node.get_nodes())


def text_of(value: Any) -> Operand:
    """Return a size or a mapping of sizes as an operand."""
    if getattr(value, "is_Integer", False):
        return int(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {size}" for name, size in value.items())
    return value if isinstance(value, (bool, int, float, str)) else str(value)


# What was fused


def way_of(first: Any, second: Any, fused: Any) -> Reason:
    """Return how two nodes became one: what their fused kernel has in common."""
    depth = getattr(fused, "outer_loop_fusion_depth", None)
    if depth is not None:
        return "outer-loops", {"depth": int(depth)}
    if type(fused).__name__ == "FusedMixOrderReductions" and not _is_mixed(first):
        rules = sys.modules["torch._inductor.scheduler"].MixOrderReduction
        return "mix-order-reductions", {"buffers": tuple(rules.get_common_read(first, second))}
    if first.is_template() and not second.is_template():
        return "template-epilogue", {}
    if second.is_template() and not first.is_template():
        return "template-prologue", {}
    is_read = bool(set(first.get_operation_names()) & set(second.ancestors))
    return "producer-and-consumer" if is_read else "common-buffer", {}


def _is_mixed(node: Any) -> bool:
    return type(node).__name__ == "FusedMixOrderReductions"


def times_of(measure: Callable[[], bool], times: Sequence[float]) -> Operands:
    """Return what a benchmark of a pair measured: each kernel alone, and one for both.

    `Scheduler.speedup_by_fusion` returns `measure`. Of two nodes it times three kernels; of a template and
    its epilogue a kernel for each choice, of which the fastest counts, and it has timed both alone (`ms1`,
    `ms2`) before.
    """
    cells = dict(zip(measure.__code__.co_freevars, measure.__closure__ or (), strict=True))
    if "ms1" in cells and times:
        first, second, fused = cells["ms1"].cell_contents, cells["ms2"].cell_contents, min(times)
    elif "ms1" not in cells and len(times) == 3:
        first, second, fused = times
    else:
        return {}
    return {"first_ms": float(first), "second_ms": float(second), "fused_ms": float(fused)}
