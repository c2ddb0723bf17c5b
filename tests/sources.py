"""What stands in a file of source code."""

import ast
from collections.abc import Iterator
from pathlib import Path


def texts(path: Path) -> Iterator[str]:
    """The texts in a file, without docstrings."""
    tree = ast.parse(path.read_text())
    reported = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in reported:
            yield node.value
