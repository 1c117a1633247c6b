"""The size, the names and the habits of the house. Grows by itself with every new file."""

import ast
import re
from collections.abc import Iterator

from tests.support.shared import ROOT
from tests.support.source import Source, breaches, dotted, imported_names, sources

FILE_LINES = 450
FUNCTION_LINES = 80
PARAMETERS = 8
NESTING = 4
REFUSED_NAMES = re.compile(r"(^|_)(utils?|helpers?|common|misc|managers?|stuff)(_|\d|$)|_\d+$")
IGNORE_WITHOUT_CODE = re.compile(r"#\s*(type:\s*ignore(?!\[)|pyright:\s*ignore(?!\[)|noqa(?!:))")
RUN_AGAIN = re.compile(r"mark\.flaky|@flaky|reruns=")
BLOCKS = ast.For | ast.AsyncFor | ast.While | ast.If | ast.With | ast.AsyncWith | ast.Try
SCOPES = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef

# The last-resort renderer, and the wrapper around every task.
# The edge, the wrapper of background tasks, and the border to code of others (decision 012).
CATCH_ALL = {
    "gateway/server/serve.py",
    "gateway/lifecycle/inflight.py",
    "gateway/chain/border.py",
    "gateway/chain/plugin.py",
}
# These spell out what they refuse.
SPELLERS = {"tests/architecture/test_house.py", "tests/architecture/test_lint.py"}

PRODUCT = sources("gateway")
TESTS = sources("tests")


def test_a_file_is_read_in_one_sitting() -> None:
    long = {file.path: len(file.lines) for file in PRODUCT + TESTS if len(file.lines) > FILE_LINES}

    assert long == {}


def test_a_function_fits_on_a_screen() -> None:
    def long(file: Source) -> Iterator[str]:
        for function in file.functions():
            length = (function.end_lineno or function.lineno) - function.lineno + 1
            if length > FUNCTION_LINES:
                yield f"{function.name}: {length} lines"

    assert breaches(PRODUCT + TESTS, long) == {}


def test_a_function_takes_few_parameters() -> None:
    def many(file: Source) -> Iterator[str]:
        for function in file.functions():
            takes = function.args
            if len(takes.posonlyargs + takes.args + takes.kwonlyargs) > PARAMETERS:
                yield function.name

    assert breaches(PRODUCT, many) == {}


def test_nesting_is_shallow() -> None:
    def deep(file: Source) -> Iterator[str]:
        return (function.name for function in file.functions() if _depth(function) > NESTING)

    assert breaches(PRODUCT, deep) == {}


def test_a_module_is_named_after_its_concept() -> None:
    def vague(file: Source) -> Iterator[str]:
        parts = file.path.removesuffix(".py").split("/")
        return (part for part in parts if REFUSED_NAMES.search(part))

    assert breaches(PRODUCT + TESTS, vague) == {}


def test_a_module_says_what_it_owns() -> None:
    assert [file.path for file in PRODUCT if not ast.get_docstring(file.tree)] == []


def test_an_ignore_names_its_code() -> None:
    def bare(file: Source) -> Iterator[int]:
        return (n for n, line in enumerate(file.lines, 1) if IGNORE_WITHOUT_CODE.search(line))

    assert breaches(PRODUCT + TESTS, bare, but=SPELLERS) == {}


def test_nothing_rebinds_a_global() -> None:
    def rebinds(file: Source) -> Iterator[int]:
        return (node.lineno for node in file.walk() if isinstance(node, ast.Global))

    assert breaches(PRODUCT + TESTS, rebinds) == {}


def test_only_the_borders_catch_everything() -> None:
    """Elsewhere a handler names what it catches, or passes it on after cleaning up."""

    def catches(file: Source) -> Iterator[int]:
        for node in file.walk():
            if isinstance(node, ast.ExceptHandler) and _is_catch_all(node) and not _passes_on(node):
                yield node.lineno

    assert breaches(PRODUCT, catches, but=CATCH_ALL) == {}


def test_tests_do_not_patch_our_own_modules() -> None:
    """A fake stands at a port or on loopback; a patched module proves nothing."""

    def patches(file: Source) -> Iterator[int]:
        names = imported_names(file)
        for node in file.walk():
            if not isinstance(node, ast.Call) or not node.args:
                continue
            if (dotted(node.func) or "").rpartition(".")[2] in {"setattr", "delattr", "patch"}:
                target = node.args[0]
                literal = target.value if isinstance(target, ast.Constant) else None
                first = (dotted(target) or "").partition(".")[0]
                if str(literal or names.get(first, "")).partition(".")[0] == "gateway":
                    yield node.lineno

    assert breaches(TESTS, patches) == {}


def test_a_test_is_not_run_again_until_it_passes() -> None:
    again = [file.path for file in TESTS if RUN_AGAIN.search(file.text)]

    assert [path for path in again if path not in SPELLERS] == []


def test_the_rooms_are_packages() -> None:
    """A folder without `__init__.py` would be left out of the wheel."""
    folders = {path.parent for path in (ROOT / "gateway").rglob("*.py")}

    assert [str(folder) for folder in folders if not (folder / "__init__.py").is_file()] == []


def _depth(node: ast.AST) -> int:
    depth = 0
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, SCOPES | ast.expr):
            elif_ = (
                isinstance(node, ast.If) and isinstance(child, ast.If) and node.orelse == [child]
            )
            depth = max(depth, _depth(child) + (isinstance(child, BLOCKS) and not elif_))
    return depth


def _is_catch_all(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or dotted(kind) in {"Exception", "BaseException"} for kind in kinds)


def _passes_on(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None
