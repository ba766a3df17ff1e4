"""What the source says that Python forgets: the texts that stand under attributes."""

from __future__ import annotations

import ast
import inspect
import textwrap
from itertools import pairwise
from types import ModuleType


def attribute_texts(cls: type, *, in_init: bool = False) -> dict[str, str]:
    """The text under each attribute of a class: in its body, and on request where `__init__` sets it."""
    tree = _tree(cls)
    texts = _texts_in(tree.body)
    for part in tree.body:
        if in_init and isinstance(part, ast.FunctionDef) and part.name == "__init__":
            texts |= _texts_in(part.body)
    return texts


def attribute_types(cls: type) -> dict[str, str]:
    """The annotations of a class body, as they are written; those of the class itself left out."""
    types = {
        part.target.id: ast.unparse(part.annotation)
        for part in _tree(cls).body
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
    }
    return {name: kind for name, kind in types.items() if not kind.startswith("ClassVar")}


def alias_of(name: str, module: ModuleType) -> tuple[str, str]:
    """What a type alias stands for, as it is written, and the text under it."""
    body = ast.parse(inspect.getsource(module)).body
    [value] = [
        part.value
        for part in body
        if isinstance(part, ast.AnnAssign) and part.value and ast.unparse(part.target) == name
    ]
    return ast.unparse(value), _texts_in(body)[name]


def _tree(cls: type) -> ast.ClassDef:
    [tree] = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(tree, ast.ClassDef)
    return tree


def _texts_in(body: list[ast.stmt]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for part, after in pairwise(body):
        match part, after:
            case (
                ast.AnnAssign(target=ast.Name(id=name) | ast.Attribute(attr=name))
                | ast.Assign(targets=[ast.Attribute(attr=name)]),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                texts[name] = " ".join(text.split())
    return texts
