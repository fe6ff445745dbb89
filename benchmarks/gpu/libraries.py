"""Twenty networks that people run, of the usual libraries: is a simulated GPU given what the real one is?

    probe dump benchmarks/gpu/libraries.py --target h100 -- llama vit_training

They were named before anything was compared. Widths and lengths are small, but of the kind that is run: heads
of 64, lengths beside multiples of eight, batches of a few. Weights are random, and each network runs once:
forward, and backward where its name says training. transformers, torchvision and torch_geometric are asked
for when a network needs them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch  # noqa: TID253 - a torch program
import triton  # noqa: TID253 - as above
import triton.language as tl  # noqa: TID253 - as above
from torch import nn  # noqa: TID253 - as above
from torch.nn import functional as F  # noqa: TID253, N812 - as above; its usual name

NETWORKS: dict[str, Callable[[], object]] = {}
CUDA = "cuda"
HALF, SHORT = torch.float16, torch.bfloat16


def network(function: Callable[[], object]) -> Callable[[], object]:
    """Add a function, which compiles a network and runs it, to the list under its name."""
    NETWORKS[function.__name__] = function
    return function


def of_transformers(kind: str, head: str, dtype: torch.dtype = torch.float32, **sizes: Any) -> Any:
    """Return a network of transformers: `LlamaForCausalLM` for `Llama` and `ForCausalLM`."""
    library = import_module("transformers")
    config = getattr(library, f"{kind}Config")(**sizes)
    return getattr(library, kind + head)(config).to(CUDA, dtype)


def words(batch: int, length: int, count: int = 1000) -> torch.Tensor:
    """Return numbers of words, or of nodes: always the same, as sizes of graphs follow from them."""
    return torch.randint(0, count, (batch, length), generator=torch.Generator().manual_seed(0)).to(CUDA)


LAYERS: dict[str, Any] = {"num_hidden_layers": 2, "hidden_size": 512, "num_attention_heads": 8}


@network
def llama() -> object:
    """A Llama in bfloat16, inference: grouped heads, causal."""
    model = of_transformers(
        *("Llama", "ForCausalLM", SHORT),
        **LAYERS, vocab_size=1000, intermediate_size=1376, num_key_value_heads=2, max_position_embeddings=512,
    ).eval()  # fmt: skip
    with torch.no_grad():
        return torch.compile(model)(words(2, 320), use_cache=False).logits


@network
def gemma2_training() -> object:
    """Gemma 2 in bfloat16, a step: scores with a cap, every second layer with a window."""
    model = of_transformers(
        *("Gemma2", "ForCausalLM", SHORT),
        **LAYERS, vocab_size=1000, intermediate_size=1024, num_key_value_heads=4, head_dim=64,
        sliding_window=64, max_position_embeddings=512,
    ).train()  # fmt: skip
    tokens = words(2, 200)
    return torch.compile(model)(tokens, labels=tokens, use_cache=False).loss.backward()


@network
def vit_training() -> object:
    """A vision transformer, a step under autocast to bfloat16."""
    model = of_transformers(
        *("ViT", "ForImageClassification"),
        hidden_size=192, num_hidden_layers=2, num_attention_heads=3, intermediate_size=768, image_size=96,
        num_labels=10,
    ).train()  # fmt: skip
    images, labels = torch.rand(8, 3, 96, 96, device=CUDA), words(1, 8, 10)[0]
    with torch.autocast(CUDA, SHORT):
        loss = torch.compile(model)(images, labels=labels).loss
    return loss.backward()


@network
def qwen3_moe() -> object:
    """Qwen 3 with experts in bfloat16, inference."""
    model = of_transformers(
        *("Qwen3Moe", "ForCausalLM", SHORT),
        **LAYERS, vocab_size=1000, intermediate_size=1024, moe_intermediate_size=256, num_experts=8,
        num_experts_per_tok=2, num_key_value_heads=2, head_dim=64, max_position_embeddings=512,
    ).eval()  # fmt: skip
    with torch.no_grad():
        return torch.compile(model)(words(2, 160), use_cache=False).logits


@network
def whisper() -> object:
    """Whisper in float16, inference: encoder, decoder, and attention from one to the other."""
    sizes: dict[str, Any] = {
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 6,
        "decoder_attention_heads": 6,
    }
    model = of_transformers(
        *("Whisper", "ForConditionalGeneration", HALF),
        **sizes, d_model=384, encoder_ffn_dim=1536, decoder_ffn_dim=1536, vocab_size=1000, pad_token_id=0,
        bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, max_source_positions=300,
    ).eval()  # fmt: skip
    sound = torch.randn(1, 80, 600, device=CUDA, dtype=HALF)
    with torch.no_grad():
        return torch.compile(model)(sound, decoder_input_ids=words(1, 33), use_cache=False).logits


@network
def resnet18_training() -> object:
    """ResNet-18, a step with its optimiser, SGD with momentum, compiled as well."""
    model = import_module("torchvision").models.resnet18(num_classes=100).to(CUDA).train()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    images, labels = torch.rand(4, 3, 128, 128, device=CUDA), words(1, 4, 100)[0]
    F.cross_entropy(torch.compile(model)(images), labels).backward()
    return torch.compile(optimiser.step)()


@network
def swin() -> object:
    """A Swin transformer in float16, inference: windows that are shifted and masked."""
    models = import_module("torchvision").models
    model = models.SwinTransformer(
        patch_size=[4, 4], embed_dim=96, depths=[2, 2], num_heads=[3, 6], window_size=[7, 7], num_classes=100
    )
    with torch.no_grad():
        return torch.compile(model.to(CUDA, HALF).eval())(torch.rand(2, 3, 112, 112, device=CUDA, dtype=HALF))


@network
def preprocessing() -> object:
    """What a loader does to images of uint8: resized with antialias, cropped, mirrored, normalised."""
    functional = import_module("torchvision.transforms.v2.functional")

    def prepared(images: torch.Tensor) -> torch.Tensor:
        sized = functional.resize(images, [256, 256], antialias=True)
        mirrored = functional.horizontal_flip(functional.center_crop(sized, [224, 224]))
        scaled = functional.to_dtype(mirrored, torch.float32, scale=True)
        return functional.normalize(scaled, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225])

    images = torch.randint(0, 256, (4, 3, 345, 456), dtype=torch.uint8, device=CUDA)
    return torch.compile(prepared)(images)


class SageGat(nn.Module):
    """A layer of neighbours' means, and one of attention over neighbours."""

    def __init__(self) -> None:
        super().__init__()
        layers = import_module("torch_geometric.nn")
        self.sage, self.gat = layers.SAGEConv(64, 128), layers.GATConv(128, 16, heads=4)

    def forward(self, nodes: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        """Return a row for each node."""
        return self.gat(F.relu(self.sage(nodes, edges)), edges)


@network
def sage_gat_training() -> object:
    """Layers of a graph network, a step."""
    nodes, edges = torch.randn(3000, 64, device=CUDA), words(2, 20000, 3000)
    return torch.compile(SageGat().to(CUDA))(nodes, edges).square().mean().backward()


@network
def fp8_linear() -> object:
    """A linear layer in float8 with a scale for each row, between two norms."""
    weight = torch.randn(1024, 512, device=CUDA).to(torch.float8_e4m3fn)
    scales = torch.rand(1, 1024, device=CUDA) / 100

    def linear(x: torch.Tensor) -> torch.Tensor:
        normal = F.layer_norm(x, x.shape[-1:])
        scale = normal.abs().amax(-1, keepdim=True).float().clamp(min=1e-12) / 448
        short = (normal / scale).to(torch.float8_e4m3fn)
        product = torch._scaled_mm(short, weight.t(), scale_a=scale, scale_b=scales, out_dtype=SHORT)
        return F.layer_norm(F.gelu(product), product.shape[-1:])

    with torch.no_grad():
        return torch.compile(linear)(torch.randn(256, 512, device=CUDA, dtype=SHORT))


@triton.jit
def gated_sum(x_ptr, gate_ptr, before_ptr, out_ptr, count, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803, PLR0917 - a kernel is given all by position
    """Write `x * sigmoid(gate) + before`, as programs fuse by hand what stands between two products."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    is_inside = places < count
    x = tl.load(x_ptr + places, mask=is_inside)
    gate = tl.load(gate_ptr + places, mask=is_inside)
    before = tl.load(before_ptr + places, mask=is_inside)
    tl.store(out_ptr + places, x * tl.sigmoid(gate) + before, mask=is_inside)


@network
def kernel_of_the_user() -> object:
    """A Triton kernel of the program's own, among operators that inductor fuses."""

    def layer(x: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        inner, gate = (x @ weights).chunk(2, -1)
        parts = [part.contiguous() for part in (torch.relu(inner), gate, x.sin())]
        out = torch.empty_like(parts[0])
        gated_sum[(triton.cdiv(out.numel(), 256),)](*parts, out, out.numel(), BLOCK=256)
        return out.softmax(-1)

    with torch.no_grad():
        return torch.compile(layer)(torch.randn(300, 520, device=CUDA), torch.randn(520, 1040, device=CUDA))


@network
def rms_norm_rows_training() -> object:
    """RMS norm along rows of 3,072 in bfloat16 with a gate, a step."""
    norm = nn.RMSNorm(3072, eps=1e-6, device=CUDA, dtype=SHORT)
    rows = torch.randn(1024, 3072, device=CUDA, dtype=SHORT, requires_grad=True)
    gated = torch.compile(lambda x: F.silu(norm(x)) * x)
    return gated(rows).float().square().mean().backward()


@network
def bert_training() -> object:
    """BERT, a step under autocast to float16, with words that are padding."""
    model = of_transformers(
        "Bert", "ForSequenceClassification", **LAYERS, vocab_size=1000, intermediate_size=2048
    ).train()
    is_word = torch.arange(128, device=CUDA)[None] < torch.tensor([[128], [70], [99], [31]], device=CUDA)
    with torch.autocast(CUDA, HALF):
        loss = torch.compile(model)(
            words(4, 128), attention_mask=is_word.long(), labels=words(1, 4, 2)[0]
        ).loss
    return loss.backward()


@network
def gpt2_training() -> object:
    """GPT-2 in float32, a step with its optimiser, AdamW, compiled as well."""
    model = of_transformers("GPT2", "LMHeadModel", n_layer=2, n_embd=384, n_head=6, vocab_size=1000).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tokens = words(2, 256)
    torch.compile(model)(tokens, labels=tokens, use_cache=False).loss.backward()
    return torch.compile(optimiser.step)()


@network
def t5_training() -> object:
    """T5 in float32, a step: scores with a bias by distance, encoder and decoder."""
    model = of_transformers(
        *("T5", "ForConditionalGeneration"),
        vocab_size=1000, d_model=256, d_kv=64, d_ff=1024, num_layers=2, num_heads=4, decoder_start_token_id=0,
    ).train()  # fmt: skip
    return torch.compile(model)(input_ids=words(2, 100), labels=words(2, 60)).loss.backward()


@network
def clip() -> object:
    """CLIP in float16, inference: images and texts side by side."""
    tower = {"hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 1024}
    text = {**tower, "vocab_size": 1000, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    model = of_transformers(
        *("CLIP", "Model", HALF),
        text_config=text,
        vision_config={**tower, "image_size": 112, "patch_size": 16},
    ).eval()
    images = torch.rand(2, 3, 112, 112, device=CUDA, dtype=HALF)
    with torch.no_grad():
        return torch.compile(model)(input_ids=words(3, 20), pixel_values=images).logits_per_image


@network
def convnext_training() -> object:
    """ConvNeXt, channels-last, a step under autocast to bfloat16."""
    models = import_module("torchvision.models.convnext")
    block = models.CNBlockConfig
    settings = [block(64, 128, 2), block(128, 256, 2), block(256, None, 2)]
    model = models.ConvNeXt(settings, num_classes=100).to(CUDA, memory_format=torch.channels_last)
    images = torch.rand(4, 3, 128, 128, device=CUDA).contiguous(memory_format=torch.channels_last)
    with torch.autocast(CUDA, SHORT):
        result = torch.compile(model)(images)
    return result.float().square().mean().backward()


@network
def mobilenet() -> object:
    """MobileNet V3 in float16, channels-last, inference."""
    model = import_module("torchvision").models.mobilenet_v3_small(num_classes=100).eval()
    model = model.to(CUDA, HALF, memory_format=torch.channels_last)
    images = torch.rand(2, 3, 160, 160, device=CUDA, dtype=HALF).contiguous(memory_format=torch.channels_last)
    with torch.no_grad():
        return torch.compile(model)(images)


@network
def wav2vec2() -> object:
    """Wav2Vec 2 in float32, inference: convolutions along a sound, then a transformer."""
    model = of_transformers(
        *("Wav2Vec2", "Model"),
        **LAYERS, intermediate_size=1024, num_feat_extract_layers=4, conv_dim=[128] * 4,
        conv_stride=[5, 4, 4, 2], conv_kernel=[10, 8, 4, 2],
    ).eval()  # fmt: skip
    with torch.no_grad():
        return torch.compile(model)(torch.randn(2, 16000, device=CUDA)).last_hidden_state


@network
def gcn_training() -> object:
    """A graph network with weights of edges in float32, a step."""
    layers = import_module("torch_geometric.nn")
    model = layers.GCN(in_channels=64, hidden_channels=128, num_layers=2, out_channels=16).to(CUDA).train()
    nodes, edges = torch.randn(3000, 64, device=CUDA), words(2, 20000, 3000)
    return torch.compile(model)(nodes, edges).square().mean().backward()


if __name__ == "__main__":
    for name in sys.argv[1:] or NETWORKS:
        torch._dynamo.reset()
        torch.manual_seed(0)
        NETWORKS[name]()
        print(name, flush=True)
