# ruff: noqa: N802 - libcst names the methods of a transformer
"""Copies of kernels and wrappers under other names, every mention of a name changed with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypeVar

import libcst as cst

Node = TypeVar("Node", bound=cst.CSTNode)


def renamed(node: Node, names: Mapping[str, str], words: Iterable[str] = ()) -> Node:
    """Return a copy of `node` with variables in `names` renamed.

    Those in `words` are renamed in strings and comments as well: a Triton kernel is named in its first
    argument, in its `def` line and in its metadata. Attributes, keywords, parameters and methods keep
    their names, whatever they are called.
    """
    return cst.ensure_type(node.visit(_Renamer(names, words)), type(node))


class _Renamer(cst.CSTTransformer):
    def __init__(self, names: Mapping[str, str], words: Iterable[str]) -> None:
        super().__init__()
        self.names = names
        longest_first = sorted(words, key=len, reverse=True)
        self.word = (
            re.compile(rf"\b(?:{'|'.join(map(re.escape, longest_first))})\b") if longest_first else None
        )
        self.in_class = 0

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self.in_class += 1

    def leave_ClassDef(self, original_node: cst.ClassDef, updated_node: cst.ClassDef) -> cst.ClassDef:
        self.in_class -= 1
        return updated_node

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef:
        return updated_node.with_changes(name=original_node.name) if self.in_class else updated_node

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        return updated_node.with_changes(value=self.names.get(original_node.value, original_node.value))

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)

    def leave_Param(self, original_node: cst.Param, updated_node: cst.Param) -> cst.Param:
        return updated_node.with_changes(name=original_node.name)

    def leave_SimpleString(
        self, original_node: cst.SimpleString, updated_node: cst.SimpleString
    ) -> cst.SimpleString:
        return updated_node.with_changes(value=self._in_text(updated_node.value))

    def leave_Comment(self, original_node: cst.Comment, updated_node: cst.Comment) -> cst.Comment:
        return updated_node.with_changes(value=self._in_text(updated_node.value))

    def _in_text(self, text: str) -> str:
        return self.word.sub(lambda match: self.names[match[0]], text) if self.word else text
