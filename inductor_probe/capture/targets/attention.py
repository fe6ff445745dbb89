"""Which kernel torch takes for scaled dot product attention, of the GPU that is simulated.

`aten::scaled_dot_product_attention` asks the device's properties for it, in C++ that a build without CUDA
lacks (ATen/native/transformers/cuda/sdp_utils.cpp, `select_sdp_backend`), so the choice is made here, by the
same rules as far as they concern dense tensors: cuDNN before FlashAttention on capability 9.0, FlashAttention
before the memory-efficient kernel, the plain formula last.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

from inductor_probe.model.gpu_target import GpuTarget

_AMPERE = (8, 0)
_HOPPER = (9, 0)
_LARGEST_HEAD = 256
_HEAD_STEP = 8
"""Elements that the size of a head is a multiple of, for cuDNN; FlashAttention gets padded heads."""
_BIAS_STEP = 8
"""The same of the strides of a bias, for the memory-efficient kernel."""
_LOWEST_OF_CUDNN = -65504.0
"""What cuDNN adds to scores that a mask excludes, where the others add minus infinity."""

_kept: list[Any] = []


def choose_attention(torch: Any, target: GpuTarget) -> None:
    """Choose the kernel for attention on the device as torch does on the target."""
    library = torch.library.Library("aten", "IMPL")
    chosen = torch.compiler.disable(_attention(target.compute_capability))  # as in `tensors.register_kernels`
    for key in ("AutogradCUDA", "CUDA"):
        library.m.impl("scaled_dot_product_attention", key, chosen, False)
    _kept.append(library)


def _attention(capability: tuple[int, int]) -> Callable[..., Any]:
    def scaled_dot_product_attention(  # noqa: PLR0917 - the operator's own arguments
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        *,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Any:
        torch = sys.modules["torch"]
        aten, tensors = torch.ops.aten, [query, key, value]
        kernel = "math"
        if _is_traced(tensors):  # the CPU, which computes otherwise, has none of the others
            kernel = _kernel(capability, tensors, attn_mask, dropout_p, is_causal, enable_gqa)
        needs_grad = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
        mask = _bias(attn_mask, query.dtype, _LOWEST_OF_CUDNN if kernel == "cudnn" else -math.inf)
        match kernel:
            case "cudnn":
                return aten._scaled_dot_product_cudnn_attention(
                    *tensors, mask, needs_grad, dropout_p, is_causal, False, scale=scale
                )[0]
            case "flash":
                head = query.shape[-1]
                padded = [_padded(tensor, _HEAD_STEP) for tensor in tensors]
                factor = scale if scale is not None else 1 / math.sqrt(head)
                result = aten._scaled_dot_product_flash_attention(
                    *padded, dropout_p, is_causal, False, scale=factor
                )[0]
                return result if result.shape[-1] == head else result[..., :head]
            case "efficient":
                return aten._scaled_dot_product_efficient_attention(
                    *tensors, _expanded(mask, query, key), needs_grad, dropout_p, is_causal, scale=scale
                )[0]
        return aten._scaled_dot_product_attention_math(
            *tensors, mask, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa
        )[0]

    return scaled_dot_product_attention


def _is_traced(tensors: list[Any]) -> bool:
    """Return whether attention is compiled, and not computed."""
    modes: Any = sys.modules["torch.utils._python_dispatch"]
    torch = sys.modules["torch"]
    plain = (torch.Tensor, torch.nn.Parameter)
    return modes._len_torch_dispatch_stack() > 0 or any(type(tensor) not in plain for tensor in tensors)


def _kernel(  # noqa: PLR0917 - what torch is asked
    capability: tuple[int, int],
    tensors: list[Any],
    mask: Any,
    dropout: float,
    is_causal: bool,
    enable_gqa: bool,
) -> str:
    """`select_sdp_backend` for four-dimensional tensors."""
    torch = sys.modules["torch"]
    cuda = torch.backends.cuda
    query, key = tensors[:2]
    heads = [tensor.shape[-1] for tensor in tensors]
    if not _is_for_a_kernel(tensors, mask, enable_gqa):
        return "math"
    is_short = query.dtype in (torch.float16, torch.bfloat16)
    fits = max(heads) <= _LARGEST_HEAD
    aligned = all(head % _HEAD_STEP == 0 for head in heads)
    for_cudnn = is_short and aligned and fits and _is_for_cudnn(query, key, mask, dropout)
    if capability == _HOPPER and for_cudnn and cuda.cudnn_sdp_enabled():
        return "cudnn"
    is_square = not is_causal or query.shape[-2] == key.shape[-2]
    same = heads[0] == heads[1] == heads[2]  # of symbolic sizes, too
    for_flash = is_short and fits and same and mask is None and is_square
    if capability >= _AMPERE and for_flash and cuda.flash_sdp_enabled():
        return "flash"
    known = query.dtype in (torch.float32, torch.float16) or (is_short and capability >= _AMPERE)
    step = 16 // query.element_size() if is_short or capability >= _AMPERE else 1
    whole = not any(head % step for head in (heads[0], heads[2]))
    is_efficient = known and whole and not enable_gqa and cuda.mem_efficient_sdp_enabled()
    return "efficient" if is_efficient else "math"


def _is_for_a_kernel(tensors: list[Any], mask: Any, enable_gqa: bool) -> bool:
    """Return whether tensors have what all kernels ask for (`sdp_utils_cpp.h`, its `dense_constraints`).

    A mask that is expanded along the keys, or lies the other way round, is for the formula alone.
    """
    query, key, value = tensors
    if any(tensor.dim() != 4 or tensor.stride(-1) != 1 for tensor in tensors):
        return False
    if query.shape[-2] == 0 or key.shape[-2] == 0 or not query.shape[0] == key.shape[0] == value.shape[0]:
        return False
    heads, of_keys = query.shape[1], key.shape[1]
    is_grouped = enable_gqa and heads % of_keys == 0
    if of_keys != value.shape[1] or (heads != of_keys and not is_grouped):
        return False
    return mask is None or bool(mask.stride(-1) == 1)


def _is_for_cudnn(query: Any, key: Any, mask: Any, dropout: float) -> bool:
    """Return whether attention has what cuDNN asks for beside dtypes and the size of heads."""
    torch = sys.modules["torch"]
    deterministic = torch.are_deterministic_algorithms_enabled()
    if deterministic and not torch.is_deterministic_algorithms_warn_only_enabled():
        return False
    if key.shape[-2] == 1 or (dropout and query.shape[-2] == 1):
        return False
    if mask is None:
        return True
    wanted = (*query.shape[:-1], key.shape[-2])[-mask.dim() :]
    sizes = zip(mask.shape, wanted, strict=False)
    return mask.dim() in (2, 4) and not mask.requires_grad and all(size in (1, want) for size, want in sizes)


def _bias(mask: Any, dtype: Any, lowest: float) -> Any:
    """Return a mask as what is added to the scores (`convert_boolean_attn_mask`)."""
    torch = sys.modules["torch"]
    if mask is None or mask.dtype is not torch.bool:
        return mask
    return torch.where(mask, 0.0, torch.scalar_tensor(lowest, dtype=dtype, device=mask.device))


def _expanded(bias: Any, query: Any, key: Any) -> Any:
    """Return a bias with a row for each query, whose strides are aligned (`preprocess_mask`).

    Torch pads each that is not, by a whole step where the length is a multiple already.
    """
    if bias is None:
        return None
    *steps, last = bias.stride()
    length = bias.shape[-1]
    if last != 1 or any(step % _BIAS_STEP for step in steps):
        missing = _BIAS_STEP - length % _BIAS_STEP
        bias = sys.modules["torch"].nn.functional.pad(bias, (0, missing))[..., :length]
    return bias.expand(*query.shape[:2], query.shape[-2], key.shape[-2])


def _padded(tensor: Any, step: int) -> Any:
    missing = -tensor.shape[-1] % step
    return sys.modules["torch"].nn.functional.pad(tensor, (0, missing)) if missing else tensor
