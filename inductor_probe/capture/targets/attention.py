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
_BIAS_STEP = 16
"""The same of a row of a bias, for the memory-efficient kernel."""

_kept: list[Any] = []


def choose_attention(torch: Any, target: GpuTarget) -> None:
    """Choose the kernel for attention on the device as torch does on the target."""
    library = torch.library.Library("aten", "IMPL")
    for key in ("AutogradCUDA", "CUDA"):
        library.m.impl("scaled_dot_product_attention", key, _attention(target.compute_capability), False)
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
            kernel = _kernel(capability, tensors, attn_mask, is_causal, enable_gqa)
        needs_grad = torch.is_grad_enabled() and any(
            tensor.requires_grad for tensor in (*tensors, attn_mask) if tensor is not None
        )
        mask = _bias(attn_mask, query.dtype)
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


def _kernel(
    capability: tuple[int, int], tensors: list[Any], mask: Any, is_causal: bool, enable_gqa: bool
) -> str:
    """`select_sdp_backend` for four-dimensional tensors."""
    torch = sys.modules["torch"]
    cuda = torch.backends.cuda
    query, key = tensors[:2]
    heads = [tensor.shape[-1] for tensor in tensors]
    if any(tensor.dim() != 4 or tensor.stride(-1) != 1 for tensor in tensors):
        return "math"
    is_short = query.dtype in (torch.float16, torch.bfloat16)
    fits = max(heads) <= _LARGEST_HEAD
    aligned = all(head % _HEAD_STEP == 0 for head in heads)
    if capability == _HOPPER and is_short and aligned and fits and cuda.cudnn_sdp_enabled():
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


def _bias(mask: Any, dtype: Any) -> Any:
    """Return a mask as what is added to the scores (`convert_boolean_attn_mask`)."""
    torch = sys.modules["torch"]
    if mask is None or mask.dtype is not torch.bool:
        return mask
    return torch.where(mask, 0.0, torch.full((), -math.inf, dtype=dtype, device=mask.device))


def _expanded(bias: Any, query: Any, key: Any) -> Any:
    """Return a bias with a row of aligned length for each query (`preprocess_mask`)."""
    if bias is None:
        return None
    length = bias.shape[-1]
    aligned = _padded(bias, _BIAS_STEP)[..., :length] if length % _BIAS_STEP else bias
    return aligned.expand(*query.shape[:2], query.shape[-2], key.shape[-2])


def _padded(tensor: Any, step: int) -> Any:
    missing = -tensor.shape[-1] % step
    return sys.modules["torch"].nn.functional.pad(tensor, (0, missing)) if missing else tensor
