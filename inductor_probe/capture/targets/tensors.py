"""Tensors of the simulated device: plain tensors whose memory is this machine's, computed on by its CPU.

A tensor becomes one of the other device without a copy through DLPack, whose description of a tensor names
the device: the name is changed between giving the tensor away and taking it back. So `torch.Tensor` it is,
with a CUDA storage, autograd, views and in-place operators; no subclass that dynamo would trace into.

For each operator that has a kernel for the CPU or for CUDA, a kernel for CUDA is registered that calls the
CPU's on the same memory. Views need no memory: the CPU's kernel makes them of the CUDA tensor itself.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any

_DEVICE_TYPE, _DEVICE_ID = 8, 12
"""Bytes into DLManagedTensor (dlpack.h): `dl_tensor.device` follows the pointer to the data."""
_ON_CPU, _ON_CUDA = 1, 2  # DLDeviceType

_COMPOSITE = ("copy_", "convolution", "convolution_backward")
"""Operators that torch composes for all devices, of parts that would find no kernel here."""

_kept: list[Any] = []


def register_kernels(torch: Any) -> None:
    """Register a kernel for CUDA of every operator that has one for the CPU or for CUDA.

    Dynamo leaves them alone: where it has left a graph, it would compile what the program calls in eager.
    torch has one registration for all operators of a device (`Library.fallback`), which does not work where
    a dispatch mode is active (python_op_registration_trampoline_impl).
    """
    own = {
        "aten::resize_": _resize_,
        "aten::set_.source_Storage_storage_offset": _set_storage,
        "aten::set_.source_Storage": _set_whole_storage,
        "aten::set_.source_Tensor": _set_tensor,
        "aten::cudnn_batch_norm": _batch_norm,
        "aten::cudnn_batch_norm_backward": _batch_norm_backward,
        **{
            f"aten::_use_{library}_ctc_loss{end}": _no
            for library in ("cudnn", "miopen")
            for end in ("", ".Tensor")
        },
    }
    names = {f"aten::{name}" for name in _COMPOSITE if hasattr(torch.ops.aten, name)} | own.keys()
    for device in ("CPU", "CUDA"):
        names.update(torch._C._dispatch_get_registrations_for_dispatch_key(device))
    libraries: dict[str, Any] = {}
    with warnings.catch_warnings():
        # A build with CUDA has kernels of its own for it: torch warns of the first that is replaced.
        warnings.filterwarnings("ignore", ".*Warning only once for all operators", UserWarning)
        for name in sorted(names):
            space, _, operator = name.partition("::")
            if space == "_native":  # torch's own Python kernels, which call Triton
                continue
            if space not in libraries:
                libraries[space] = torch.library.Library(space, "IMPL")
            kernel = torch.compiler.disable(own.get(name) or _kernel(name))
            libraries[space].m.impl(operator, "CUDA", kernel, False)
    _kept.extend(libraries.values())
    clone = torch.UntypedStorage.clone
    torch.UntypedStorage.clone = lambda storage: _cloned(storage) if storage.is_cuda else clone(storage)


def _cloned(storage: Any) -> Any:
    """`torch.UntypedStorage.clone`, which `copy.deepcopy` calls: a build for the CPU makes no other."""
    torch = sys.modules["torch"]
    memory = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
    return memory.clone().untyped_storage()


def _batch_norm(*args: Any) -> Any:
    """`aten::cudnn_batch_norm`, which returns memory for its backward pass as well."""
    torch = sys.modules["torch"]
    results = run_on_cpu(torch.ops.aten.native_batch_norm.default, args, {})
    return (*results, on_cuda(torch.empty(0, dtype=torch.uint8)))


def _batch_norm_backward(*args: Any) -> Any:
    """`aten::cudnn_batch_norm_backward`."""
    given, grad, *parameters, epsilon, _ = args
    native = sys.modules["torch"].ops.aten.native_batch_norm_backward.default
    return run_on_cpu(native, (grad, given, *parameters, True, epsilon, [True] * 3), {})


def _no(*_: Any, **__: Any) -> bool:
    return False


def on_cpu(tensor: Any) -> Any:
    """Return a CPU tensor of the same memory as a CUDA tensor."""
    return _moved(tensor, _ON_CPU)


def on_cuda(tensor: Any) -> Any:
    """Return a CUDA tensor of the same memory as a CPU tensor."""
    return _moved(tensor, _ON_CUDA)


def _moved(tensor: Any, device: int) -> Any:
    torch = sys.modules["torch"]
    if tensor.layout != torch.strided:
        raise NotImplementedError(
            f"{tensor.layout} tensors are not available on a simulated GPU: make it dense (`to_dense()`), or"
            " keep it on the CPU"
        )
    plain = tensor.detach()
    if torch._is_zerotensor(plain):  # zeros without memory (`_efficientzerotensor`)
        plain = torch.zeros_like(plain)
    # What is conjugated or negated when it is read is memory as it is, and a mark.
    is_conjugated, is_negated = plain.is_conj(), plain.is_neg()
    plain = plain.conj() if is_conjugated else plain
    plain = torch._neg_view(plain) if is_negated else plain
    capsule = torch._C._to_dlpack(plain)
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    address = pointer(capsule, b"dltensor")
    ctypes.c_int32.from_address(address + _DEVICE_TYPE).value = device
    ctypes.c_int32.from_address(address + _DEVICE_ID).value = 0
    moved = torch._C._from_dlpack(capsule)
    if moved.stride() != plain.stride():  # which DLPack makes 1 of a dimension with one element
        _set(moved, moved.untyped_storage(), moved.storage_offset(), plain.shape, plain.stride())
    moved = torch._neg_view(moved) if is_negated else moved
    return moved.conj() if is_conjugated else moved


def _kernel(name: str) -> Callable[..., Any]:
    """Return the kernel for CUDA of an operator, `aten::add.Tensor`, which is looked up when it is called."""

    @functools.cache
    def operator() -> Any:
        space, _, rest = name.partition("::")
        packet, _, overload = rest.partition(".")
        found = getattr(getattr(sys.modules["torch"].ops, space), packet)
        return getattr(found, overload or "default")

    def call_on_cpu(*args: Any, **kwargs: Any) -> Any:
        return run_on_cpu(operator(), args, kwargs)

    return call_on_cpu


def run_on_cpu(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call an operator with CPU tensors in the place of CUDA tensors; return CUDA tensors."""
    torch = sys.modules["torch"]
    schema = operator._schema
    if any(value.alias_info and not value.alias_info.is_write for value in schema.returns):
        return operator.redispatch(_cpu_key(), *args, **kwargs)
    pytree = sys.modules["torch.utils._pytree"]
    written = {name: kwargs[name] for name in _outputs(operator) if kwargs.get(name) is not None}
    moved: dict[int, tuple[Any, Any]] = {}  # by the id of the CUDA tensor: it, and the CPU's

    def lower(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.is_cuda:
            if id(value) not in moved:
                moved[id(value)] = (value, on_cpu(value))
            return moved[id(value)][1]
        if isinstance(value, torch.device) and value.type == "cuda":
            return torch.device("cpu")
        return value

    def lower_output(value: Any) -> Any:
        # Memory that came through DLPack cannot be resized, as an operator may do with what it is to fill.
        moved[id(value)] = (value, torch.empty_strided(value.shape, value.stride(), dtype=value.dtype))
        return moved[id(value)][1]

    inputs = {name: value for name, value in kwargs.items() if name not in written}
    cpu_args, cpu_kwargs = pytree.tree_map(lower, (args, inputs))
    cpu_kwargs |= {name: pytree.tree_map(lower_output, value) for name, value in written.items()}
    if cpu_kwargs.get("pin_memory"):
        cpu_kwargs["pin_memory"] = None  # no memory of a GPU's needs it
    # A Python number of the caller's is a tensor for C++, and a number again here: another overload takes it.
    call = operator.overloadpacket if _has_numbers_for_tensors(operator, cpu_args) else operator
    result = call(*cpu_args, **cpu_kwargs)
    for value in pytree.tree_leaves(list(written.values())):
        _fill(value, moved[id(value)][1])
    back = {id(cpu): cuda for cuda, cpu in moved.values()}
    return pytree.tree_map(lambda value: _lifted(value, back, args, kwargs), result)


def _has_numbers_for_tensors(operator: Any, args: tuple[Any, ...]) -> bool:
    """Return whether an operator gets a number where its schema has a tensor."""
    pairs = zip(operator._schema.arguments, args, strict=False)
    return any(
        isinstance(value, (int, float, complex)) and str(want.type) == "Tensor" for want, value in pairs
    )


def _lifted(value: Any, back: dict[int, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what an operator's result is to the caller: its own tensors where it got them back."""
    torch = sys.modules["torch"]
    if not isinstance(value, torch.Tensor):
        return value
    if id(value) in back:
        return back[id(value)]
    is_own = any(value is argument for argument in (*args, *kwargs.values()))  # the CPU's, copied into
    asked = kwargs.get("device")
    return value if is_own or (asked is not None and torch.device(asked).type == "cpu") else on_cuda(value)


@functools.cache
def _outputs(operator: Any) -> tuple[str, ...]:
    """Return the names of the arguments that an operator fills, and may resize: `out`."""
    return tuple(
        argument.name
        for argument in operator._schema.arguments
        if argument.kwarg_only and argument.alias_info and argument.alias_info.is_write
    )


@functools.cache
def _cpu_key() -> Any:
    C = sys.modules["torch"]._C  # noqa: N806 - torch's own name for it
    return C.DispatchKeySet(C.DispatchKey.CPU)


def _fill(tensor: Any, computed: Any) -> None:
    """Give a CUDA tensor the values that were computed for it, and their shape."""
    if computed.shape == tensor.shape and computed.stride() == tensor.stride():
        on_cpu(tensor).copy_(computed)
    else:
        _set_tensor(tensor, on_cuda(computed))


def _set(tensor: Any, storage: Any, offset: Any, size: Any, stride: Any) -> Any:
    set_ = sys.modules["torch"].ops.aten.set_.source_Storage_storage_offset
    set_.redispatch(_cpu_key(), tensor, storage, offset, size, stride)
    return tensor


def _set_tensor(tensor: Any, source: Any) -> Any:
    """`aten::set_.source_Tensor`."""
    return _set(tensor, source.untyped_storage(), source.storage_offset(), source.shape, source.stride())


def _set_storage(tensor: Any, storage: Any, offset: Any, size: Any, stride: Any = ()) -> Any:
    """`aten::set_.source_Storage_storage_offset`."""
    torch = sys.modules["torch"]
    return _set(tensor, storage, offset, size, stride or torch.empty(size, device="meta").stride())


def _set_whole_storage(tensor: Any, storage: Any) -> Any:
    """`aten::set_.source_Storage`: all that it holds, in one dimension."""
    return _set(tensor, storage, 0, (storage.nbytes() // tensor.itemsize,), (1,))


def _resize_(tensor: Any, size: Any, *, memory_format: Any = None) -> Any:
    """`aten::resize_`, which keeps the first elements: into new memory, as in `_fill`."""
    torch = sys.modules["torch"]
    if tuple(size) == tuple(tensor.shape):
        return tensor
    new = torch.empty(size, dtype=tensor.dtype, memory_format=memory_format or torch.contiguous_format)
    count = min(new.numel(), tensor.numel())
    if count:
        new.as_strided((count,), (1,)).copy_(on_cpu(tensor).as_strided((count,), (1,)))
    return _set_tensor(tensor, on_cuda(new))
