"""A folder imports only from those above it, and only `store/url.py` names concrete stores."""

import ast
from pathlib import Path
from typing import Final

import ropeway

PACKAGE: Final = Path(ropeway.__file__).parent

# From the top down. `testing` drives what applications call, and is imported by nothing.
LAYERS: Final = [
    *("lazy", "logger", "showing", "errors", "job", "store", "stores", "webhooks", "client", "worker"),
    *("metrics", "doctor", "server", "cli", "contrib", "testing"),
]
# The two that stand outside: what users import, and what `python -m ropeway` runs.
FILES: Final = sorted(set(PACKAGE.rglob("*.py")) - {PACKAGE / "__init__.py", PACKAGE / "__main__.py"})


def imports_of(path: Path) -> set[str]:
    """The modules of this package that a file imports, wherever in it, by their full names."""
    here = ("ropeway", *path.relative_to(PACKAGE).with_suffix("").parts)
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            found.update(f"{module}.{alias.name}" for alias in node.names)
    return {name for name in found if name.split(".")[0] == "ropeway"}


def layer(parts: tuple[str, ...]) -> str:
    return Path(parts[0]).stem


# One test for all files: hundreds of them would each cost more to collect than to run.
def test_a_file_imports_only_from_layers_above_its_own() -> None:
    for path, parts in ((path, path.relative_to(PACKAGE).parts) for path in FILES):
        for name in imports_of(path):
            imported = tuple(name.split(".")[1:])
            assert imported, f"{path} imports the whole package"
            if imported[0] in LAYERS:
                assert LAYERS.index(imported[0]) <= LAYERS.index(layer(parts)), f"{path} imports {name}"
            if layer(parts) == imported[0] == "stores" and len(parts) > 2:
                assert imported[1] == parts[1], f"{path} imports {name}, of another store"


def test_only_the_url_names_concrete_stores() -> None:
    for path, parts in ((path, path.relative_to(PACKAGE).parts) for path in FILES):
        if layer(parts) == "stores":
            continue
        assert not [name for name in imports_of(path) if name.startswith("ropeway.stores")], path
        if parts != ("store", "url.py"):
            assert "ropeway.stores." not in path.read_text(), path


def test_every_folder_has_its_layer() -> None:
    folders = {path.relative_to(PACKAGE).parts[0] for path in FILES}

    assert {Path(folder).stem for folder in folders} <= set(LAYERS)
