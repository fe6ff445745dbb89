"""The program that shows what is wrong with a sample, without a database and without this package."""

from __future__ import annotations

from typing import Any

import torch

from inductor_probe.op_checks.samples import Sample, place_of, source_of

_HEAD = '''"""{operator}, {dtype}, {mode}: {kind}

Written by probe check-op (torch {torch}). Run it with the Python that has torch: it ends with status 1 if
eager and compiled still differ.
"""

import base64
import os
import sys
import zlib

# Neither cache knows which decompositions there were: what they have may be of others, and is left as it is.
os.environ.update(TORCHINDUCTOR_FX_GRAPH_CACHE="0", TORCHINDUCTOR_AUTOGRAD_CACHE="0")

import torch
{database}

def tensor_of(data, dtype, size, stride, grad=False):
    """Make a tensor of its elements in order, or of their bytes."""
    if isinstance(data, str):
        raw = bytearray(zlib.decompress(base64.b85decode(data)))
        flat = torch.frombuffer(raw, dtype=dtype) if raw else torch.empty(0, dtype=dtype)
    else:
        flat = torch.tensor(data, dtype=dtype)
    made = torch.empty_strided(size, stride, dtype=dtype, device={device!r})
    return made.copy_(flat.reshape(size)).requires_grad_(grad)

'''
_SAMPLE = '''
def arguments():
    """The smallest sample that was seen to fail."""
    args = {args}
    kwargs = {kwargs}
    return args, kwargs

'''
_FROM_DATABASE = '''
def arguments():
    """The sample cannot be written down: it is taken from PyTorch's test database."""
    torch.manual_seed(0)
    samples = OPERATOR.sample_inputs({device!r}, {dtype}, requires_grad={grad})
    wanted = {shown!r}
    for sample in samples:
        if {noncontiguous}:
            sample = sample.noncontiguous()
        args, kwargs = (sample.input, *sample.args), sample.kwargs
        if sum(leaf.numel() for leaf in torch.utils._pytree.tree_leaves((args, kwargs))
               if isinstance(leaf, torch.Tensor)) == {elements}:
            return args, kwargs
    raise SystemExit(f"the database has no such sample any more: {{wanted}}")

'''
_DECOMPOSITION = '''
def install():
    """Put the decomposition where torch asks for one: torch/_ops.py, torch/_inductor/decomposition.py."""
    from torch._inductor import decomposition

    {load}
    for overload in ({overloads},):
        decomposition.decompositions[overload] = function
        for name in ("CompositeImplicitAutograd", "Autograd", "AutogradCPU", "AutogradCUDA"):
            key = getattr(torch._C.DispatchKey, name)
            if key in overload.py_kernels:
                overload.py_kernels[key] = function
        overload._dispatch_cache.clear()


install()

'''
_BODY = '''
def run(function, widen=False):
    """Call it; return the leaves of the result, with gradients behind them."""
    args, kwargs = arguments()
    if widen:
        args, kwargs = torch.utils._pytree.tree_map_only(torch.Tensor, wide, (args, kwargs))
    torch.manual_seed(0)
    leaves = torch.utils._pytree.tree_leaves(function(*args, **kwargs))
    if not {grad}:
        return leaves
    outputs = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    ramps = []
    for leaf in outputs:
        ramp = torch.linspace(-1, 1, max(leaf.numel(), 1), dtype=torch.float64, device=leaf.device)
        ramps.append(ramp[: leaf.numel()].reshape(leaf.shape).to(leaf.dtype))
    torch.autograd.backward(outputs, ramps)
    inputs = torch.utils._pytree.tree_leaves((args, kwargs))
    return leaves + [leaf.grad for leaf in inputs if isinstance(leaf, torch.Tensor) and leaf.requires_grad]


def wide(tensor):
    """Return a tensor of floats in float64."""
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return tensor
    to = torch.complex128 if tensor.is_complex() else torch.float64
    return tensor.detach().to(to).requires_grad_(tensor.requires_grad)


def function(*args, **kwargs):
    return {call}(*args, **kwargs)


eager = run(function)
compiled = run(torch.compile(function, dynamic={dynamic}))
try:
    exact = run(function, widen=True)
except Exception:  # no float64: eager is what there is to compare with
    exact = eager
wrong = len(eager) != len(compiled)
for number, (one, other, right) in enumerate(zip(eager, compiled, exact)):
    if not isinstance(one, torch.Tensor):
        wrong |= one != other
        continue
    forms = [(tensor.dtype, tuple(tensor.shape), tensor.stride()) for tensor in (one, other)]
    print(f"output {{number}}: eager {{forms[0]}}, compiled {{forms[1]}}")
    strides = [[step for size, step in zip(form[1], form[2]) if size > 1] for form in forms]
    wrong |= forms[0][:2] != forms[1][:2] or (number == 0 and one.numel() > 0 and strides[0] != strides[1])
    if forms[0][:2] == forms[1][:2] and one.numel():
        errors = [(wide(tensor.detach()) - right.detach()).abs() for tensor in (one, other)]
        largest = [error.nan_to_num(0).max().item() for error in errors]
        print(f"  largest error against float64: eager {{largest[0]:g}}, compiled {{largest[1]:g}}")
        rtol, atol = torch.testing._comparison.default_tolerances(one.dtype)
        slack = torch.maximum(atol + rtol * right.detach().abs(), torch.tensor(2 * largest[0]))
        same_nan = (other.isnan() == one.isnan()) if one.is_floating_point() else torch.tensor(True)
        wrong |= bool((errors[1] > slack).any()) or not bool(same_nan.all())
print("eager and compiled differ" if wrong else "eager and compiled agree")
sys.exit(int(wrong))
'''


def program(
    operator: Any,
    sample: Sample,
    case: dict[str, Any],
    kind: str,
    *,
    device: str,
    place: str,
    names: list[str],
) -> str:
    """Return the text of a program that runs a sample eager and compiled, and says what differs.

    Args:
        operator: an `OpInfo`. case: see `worker`. kind: of failure.
        place, names: of the decomposition that the case is run with, and of the overloads it stands for.
    """
    grad, mode = case["mode"].startswith("backward"), case["mode"]
    args, kwargs, call = source_of(sample.args), _keywords(sample.kwargs), place_of(operator)
    written = args is not None and kwargs is not None
    database = "" if call and written else (
        "\nfrom torch.testing._internal.common_methods_invocations import op_db\n\n"
        f"OPERATOR = next(info for info in op_db if info.formatted_name == {operator.formatted_name!r})\n"
    )  # fmt: skip
    text = _HEAD.format(
        operator=operator.formatted_name,
        dtype=case["dtype"],
        mode=mode,
        kind=kind,
        torch=torch.__version__,
        database=database,
        device=device,
    )
    if case["way"] == "decomposition":
        text += _DECOMPOSITION.format(
            load=_loading(place), overloads=", ".join(f"torch.ops.{name}" for name in names)
        )
    if written:
        text += _SAMPLE.format(args=args, kwargs=kwargs)
    else:
        text += _FROM_DATABASE.format(
            device=device, dtype=f"torch.{case['dtype']}", grad=grad, shown=sample.shown(),
            elements=sample.elements, noncontiguous=case["form"] == "noncontiguous",
        )  # fmt: skip
    return text + _BODY.format(grad=grad, call=call or "OPERATOR.op", dynamic=mode.endswith("dynamic"))


def _keywords(values: dict[str, Any]) -> str | None:
    parts = {name: source_of(value) for name, value in values.items()}
    if None in parts.values():
        return None
    return "{" + ", ".join(f"{name!r}: {part}" for name, part in parts.items()) + "}"


def _loading(place: str) -> str:
    """Return the lines that import a decomposition: from a file by its path, or from a module."""
    module, _, name = place.rpartition(":")
    if not module.endswith(".py"):
        return f"from {module} import {name} as function"
    return (
        "import importlib.util\n\n"
        f"    spec = importlib.util.spec_from_file_location('decompositions_to_try', {module!r})\n"
        "    module = importlib.util.module_from_spec(spec)\n"
        "    spec.loader.exec_module(module)\n"
        f"    function = module.{name}"
    )
