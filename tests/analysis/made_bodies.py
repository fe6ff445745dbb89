"""Loop bodies made by hand, operation by operation."""

from __future__ import annotations

from collections.abc import Iterable

from inductor_probe.model.ir import Block, Dotted, LoopBody, Op, Ref, SchedulerNode

F32 = Dotted("torch.float32")


def body_node(
    ops: Iterable[Op],
    ranges: tuple[tuple[str, int | str], ...] = (("p0", 8),),
    indexes: tuple[tuple[str, str], ...] = (("index0", "p0"),),
    blocks: tuple[Block, ...] = (),
    **attributes: object,
) -> SchedulerNode:
    numbered = tuple(
        Op(op.result, op.target, op.args, op.kwargs, line) for line, op in enumerate(ops, start=100)
    )
    body = LoopBody(ranges, indexes, (Block("body", ("ops",), numbered), *blocks))
    return SchedulerNode("op0", "SchedulerNode", "ComputedBuffer", body=body, **attributes)  # type: ignore[arg-type]  # test values


def op(result: str, target: str, *args: object, **kwargs: object) -> Op:
    name = target if target.startswith("self.") or target == "[]" else f"ops.{target}"
    return Op(result, name, tuple(args), tuple(kwargs.items()))  # type: ignore[arg-type]  # as above


LOAD = (op("i", "self.get_index", "index0"), op("x", "load", "arg0", Ref("i")))


def store(value: str) -> tuple[Op, ...]:
    return op("at", "self.get_index", "index0"), op("s", "store", "buf0", Ref("at"), Ref(value), None)
