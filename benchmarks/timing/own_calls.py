"""Whether the user's own call is timed as a loop of his own would: the ratios of eight programs.

    python -m benchmarks.timing.own_calls [NAME...] [--budget 6] [--libraries] [--device cuda] [--profile]

Each program is a script that is dumped, and whose call `probe` then times against eager
(`inductor_probe.api.own_call`). The plain loop is a script of its own: the same program, which calls both
with `time.perf_counter` around each, in turns of 0.2 s, and prints the ratio of the medians; the median of
three such processes counts. Target: 5 %.

An optimizer is at its second step in both: from some thousand steps on `beta ** step` is denormal, and takes
half as long again.

`--libraries` takes networks of transformers and torchvision, where they are installed. On a GPU a lap of the
plain loop is eight calls whose end is waited for once. `--profile` prints `probe profile` of each, too.

One thread: a team that shares its cores with other programs waits for its slowest member, and times of a
plain loop are 1.5 times off then.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HEAD = """
import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)
torch.set_num_threads(1)
torch.set_default_device({device!r})
"""
PROGRAMS = {
    "unet": """
class Block(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(8, o)
    def forward(self, x):
        return F.mish(self.norm(self.conv(x)))
class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = Block(3, 32), Block(32, 64), Block(96, 32)
        self.out = nn.Conv2d(32, 1, 1)
    def forward(self, x):
        a = self.a(x)
        b = F.interpolate(self.b(F.max_pool2d(a, 2)), scale_factor=2)
        return self.out(self.c(torch.cat([a, b], 1)))
eager = UNet().eval(); args = (torch.randn(1, 3, 64, 64),); grad = False
""",
    "gpt": """
class GPT(nn.Module):
    def __init__(self, d=256, h=8):
        super().__init__()
        self.h, self.n1, self.n2 = h, nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (z.view(b, t, self.h, -1).transpose(1, 2) for z in self.qkv(self.n1(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d)
        x = x + self.proj(y)
        return x + self.down(F.gelu(self.up(self.n2(x))))
eager = GPT().eval(); args = (torch.randn(1, 64, 256),); grad = False
""",
    "resnet18": """
class Basic(nn.Module):
    def __init__(self, i, o, s):
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o)
        self.c2, self.b2 = nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o)
        self.down = nn.Sequential(nn.Conv2d(i, o, 1, s, bias=False), nn.BatchNorm2d(o)) if s > 1 else None
    def forward(self, x):
        y = F.relu(self.b1(self.c1(x)))
        return F.relu(self.b2(self.c2(y)) + (x if self.down is None else self.down(x)))
def stage(i, o, s):
    return nn.Sequential(Basic(i, o, s), Basic(o, o, 1))
eager = nn.Sequential(
    nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
    stage(64, 64, 1), stage(64, 128, 2), stage(128, 256, 2), stage(256, 512, 2),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000)).eval()
args = (torch.randn(1, 3, 96, 96),); grad = False
""",
    "bert": """
eager = nn.TransformerEncoder(
    nn.TransformerEncoderLayer(256, 4, 1024, activation="gelu", batch_first=True), 3,
    enable_nested_tensor=False).eval()
torch.backends.mha.set_fastpath_enabled(False)
args = (torch.randn(2, 64, 256),); grad = False
""",
    "whisper": """
class Encoder(nn.Module):
    def __init__(self, d=192):
        super().__init__()
        self.c1, self.c2 = nn.Conv1d(80, d, 3, padding=1), nn.Conv1d(d, d, 3, 2, 1)
        layer = nn.TransformerEncoderLayer(d, 3, 4 * d, activation="gelu", batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.register_buffer("place", torch.randn(150, d))
    def forward(self, x):
        x = F.gelu(self.c2(F.gelu(self.c1(x)))).transpose(1, 2)
        return self.layers(x + self.place)
torch.backends.mha.set_fastpath_enabled(False)
eager = Encoder().eval(); args = (torch.randn(1, 80, 300),); grad = False
""",
    "optimizer": """
params = [nn.Parameter(torch.randn(64, 64)) for _ in range(12)]
for p in params: p.grad = torch.randn_like(p)
opt = torch.optim.AdamW(params, lr=1e-4)
opt.step()
def eager():
    opt.step()
def again():
    for p in params: opt.state[p]["step"].fill_(2.0)
args = (); grad = True
""",
    "training": """
net = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.LayerNorm(512), nn.Linear(512, 10))
def eager(x, y):
    return F.cross_entropy(net(x), y)
args = (torch.randn(64, 256), torch.randint(0, 10, (64,))); grad = True; backward = True
""",
    "preprocess": """
def eager(image):
    x = image.permute(0, 3, 1, 2).float() / 255
    x = (x - 0.45) / 0.225
    return x.flip(-1).clamp(-2, 2)
args = (torch.randint(0, 256, (1, 224, 224, 3), dtype=torch.uint8),); grad = False
""",
}
LIBRARIES = {
    "BERT of transformers": """
from transformers import BertConfig, BertModel
sizes = dict(hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024)
eager = BertModel(BertConfig(**sizes, vocab_size=1000)).eval()
args = (torch.randint(0, 1000, (2, 64)),); grad = False
""",
    "Whisper's encoder of transformers": """
from transformers import WhisperConfig
from transformers.models.whisper.modeling_whisper import WhisperEncoder
config = WhisperConfig(d_model=192, encoder_layers=2, encoder_attention_heads=3, encoder_ffn_dim=768,
                       max_source_positions=150)
eager = WhisperEncoder(config).eval(); args = (torch.randn(1, 80, 300),); grad = False
""",
    "ResNet-18 of torchvision": """
from torchvision.models import resnet18
eager = resnet18().eval(); args = (torch.randn(1, 3, 96, 96),); grad = False
""",
}
SCRIPT = """
compiled = torch.compile(eager)
with torch.set_grad_enabled(grad):
    for _ in range(3):
        out = compiled(*args)
        if "backward" in globals():
            out.backward(); net.zero_grad()
"""
LOOP = """
import gc, time, statistics
cuda = torch.get_default_device().type == "cuda"
compiled = torch.compile(eager)
def call(f):
    out = f(*args)
    if "backward" in globals():
        out.backward()
with torch.set_grad_enabled(grad):
    for f in (eager, compiled):
        for _ in range(20):
            call(f)
            if "backward" in globals(): net.zero_grad()
    ratios = []
    for turn in range(12):
        times = []
        for f in (eager, compiled) if turn % 2 else (compiled, eager):
            laps, begin = [], time.perf_counter()
            while time.perf_counter() - begin < 0.2:
                if cuda: torch.cuda.synchronize()
                a = time.perf_counter()
                for _ in range(8 if cuda else 1): call(f)
                if cuda: torch.cuda.synchronize()
                laps.append(time.perf_counter() - a)
                if "backward" in globals(): net.zero_grad()
                if "again" in globals(): again()
            times.append(statistics.median(laps))
        ratios.append((times[1] / times[0]) if turn % 2 else (times[0] / times[1]))
print("ratio", statistics.median(ratios))
"""


def main() -> None:
    """Measure the programs that are named, or all; print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--budget", type=float, default=6.0)
    parser.add_argument("--libraries", action="store_true")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    programs = LIBRARIES if options.libraries else PROGRAMS
    head = HEAD.format(device=options.device)
    import inductor_probe as ip  # noqa: PLC0415 - after the help
    from inductor_probe.api.own_call import own_calls  # noqa: PLC0415 - after the help
    from inductor_probe.harness.budget import OWN  # noqa: PLC0415 - after the help
    from inductor_probe.model.bench import BenchSettings  # noqa: PLC0415 - after the help

    print(f"load {os.getloadavg()[0]:.1f}")
    print(
        "| program | eager | compiled | ratio (interval) | plain loop | off by |\n|---|---|---|---|---|---|"
    )
    errors = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for number, name in enumerate(options.names or programs):
            script = Path(f"program_{number}.py")
            script.write_text(head + programs[name] + SCRIPT)
            Path(f"loop_{number}.py").write_text(head + programs[name] + LOOP)
            run = ip.dump(script)
            calls, why = own_calls(
                run.graphs, BenchSettings(budget=options.budget / OWN / len(run.graphs), margin=0.01)
            )
            loops = [_loop(f"loop_{number}.py") for _ in range(3)]
            loop = statistics.median(loops)
            if not calls:
                print(f"| {name} | {why} |")
                continue
            call = calls[0]
            ratio = call.comparison.ratio
            errors.append(abs(ratio / loop - 1))
            print(
                f"| {name} | {call.eager * 1e6:.1f} us | {call.compiled * 1e6:.1f} us | {ratio:.3f} "
                f"({call.comparison.low:.3f} to {call.comparison.high:.3f}) | {loop:.3f} "
                f"({min(loops):.3f} to {max(loops):.3f}) | {errors[-1]:.1%} |",
                flush=True,
            )
            if options.profile:
                profile = ["-m", "inductor_probe", "profile", "--budget", f"{options.budget}s"]
                subprocess.run([sys.executable, *profile], check=False)
    print(f"largest {max(errors):.1%}; load {os.getloadavg()[0]:.1f}")


def _loop(script: str) -> float:
    text = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout
    return float(text.split()[-1])


if __name__ == "__main__":
    main()
