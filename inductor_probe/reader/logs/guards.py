"""The guards of a compile, as torch's trace log has them: `dynamo_cpp_guards_str` of torch/_dynamo/guards.py.

A tree of managers, which hold what is needed to get at a value, and of guards, which are leaves:

    | | +- EQUALS_MATCH: L['mode'] == 'relu'    # return x if mode == "relu" else -x  # net.py:11 in forward
    | | | +- TYPE_MATCH: ___check_type_id(L['self'].scale, 94080382167840), type=<class 'float'>  # ...

They are put in the user's words here: `mode == 'relu'` at net.py:11; `self.scale` is a `float`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from inductor_probe.model.compile_time import Guard

_LEAF = re.compile(r"(?:\| )*\+- (?P<kind>[A-Z_]+): (?P<text>.*)")
_LINE = re.compile(r"(?P<text>.*?)\s+# (?:(?P<code>.*?)\s+# )?\(?(?P<where>[^#]*?:\d+) in \S+.*")
_TENSOR = re.compile(
    r"check_tensor\((?P<value>.*?), \w+, DispatchKeySet\(.*?\), torch\.(?P<dtype>\w+), device=\w+, "
    r"requires_grad=(?P<grad>\w+), size=(?P<size>\[.*?\]), stride=(?P<stride>\[.*?\])\)"
)
_IDENTITY = re.compile(
    r"___check_(?P<what>obj|type)_id\((?P<value>.*), \d+\)(?:, type=<class '(?P<type>.*)'>)?"
)
_NAMED = re.compile(r"[LG]\['(\w+)'\]")
_OF_TORCH = re.compile(r"__import_(torch\w*?)(?=\b)")
_PARTS = re.compile(r"(?:\._|\.__dict__\['_)(?:modules|parameters|buffers)(?:'\])?\['(\w+)'\]")
_CONTAINS = re.compile(r"(not )?___dict_contains\('(\w+)', (.*?)\)")
_BUILTIN = re.compile(r"__builtins_dict__\w*\['(\w+)'\]")
_STATE = {
    "GLOBAL_STATE": "grad mode, autocast, threads, deterministic algorithms as they were",
    "TORCH_FUNCTION_MODE_STACK": "no other torch function modes",
}
_MARKS = "DIMENSION_DYNAMIC_MARKING_GUARD"
"""Five for each tensor: that no dimension was marked since."""


def guards_of(text: str) -> Iterator[Guard]:
    """Yield the guards in a tree, in the order in which they are checked."""
    for line in text.splitlines():
        if leaf := _LEAF.fullmatch(line.rstrip()):
            yield _guard(leaf["kind"], leaf["text"])


def _guard(kind: str, text: str) -> Guard:
    where, code = "", ""
    if match := _LINE.fullmatch(text):
        text, code, where = match["text"], match["code"] or "", match["where"]
    text = text.partition("  # ")[0].rstrip()
    if kind in _STATE:
        return Guard(kind, "", _STATE[kind], where, code)
    if tensor := _TENSOR.match(text):
        size = tensor["size"].replace("None", "*")
        grad = ", requires grad" if tensor["grad"] == "True" else ""
        strides = tensor["stride"].replace("None", "*")
        return Guard(
            kind,
            user_name(tensor["value"]),
            f"{tensor['dtype']} {size}, strides {strides}{grad}",
            where,
            code,
        )
    if same := _IDENTITY.fullmatch(text):
        what = f"of type {same['type']}" if same["what"] == "type" else "the same object"
        return Guard(kind, user_name(same["value"]), what, where, code)
    if kind == _MARKS:
        value = re.match(r"hasattr\((.*), '\w+'\)", text)
        return Guard(kind, user_name(value[1]) if value else "", "no dimension marked since", where, code)
    named = _NAMED.search(text)
    return Guard(kind, user_name(named[0]) if named else "", user_name(text), where, code)


def user_name(text: str) -> str:
    """`self.lin.bias` of `L['self']._modules['lin']._parameters['bias']`."""
    text = _PARTS.sub(r".\1", _NAMED.sub(r"\1", text))
    text = _CONTAINS.sub(r"'\2' \1in \3", text)
    text = _OF_TORCH.sub(lambda match: match[1].replace("_dot_", "."), text)
    return _BUILTIN.sub(r"\1", text)
