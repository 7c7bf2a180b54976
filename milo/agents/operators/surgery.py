"""Careful edits of harness source: small splices that leave everything else as it was.

Each function takes a tree and returns a tree. Positions come from the syntax tree of the very
text that is edited; after each edit the harness is studied anew, so edits can be chained in any
order. Techniques (modules of the `techniques` package beside this file) travel along whole.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from importlib import resources

from milo.agents.operators.anatomy import (
    PACKAGE,
    Anatomy,
    Module,
    called_name,
    imported_techniques,
    study,
)
from milo.core.harness import Harness
from milo.core.tree import FileTree

HOMES = {
    "with_clipped": "history",
    "with_recent": "history",
    "with_plan": "planning",
    "with_files": "context",
    "with_examples": "examples",
    "plain_answers": "direct",
    "redefined_code": "rewriting",
    "python_programs": "programs",
    "best_block": "blocks",
    "majority": "voting",
    "verified": "tries",
    "retry_errors": "tries",
    "saved_output": "printing",
    "stop_when_done": "stopping",
    "recorded_run": "runs",
    "by_try": "runs",
}
"""Every technique and its module; decorators outermost first, wrappers of calls innermost first."""

RANK = {name: rank for rank, name in enumerate(HOMES)}


class CannotEdit(Exception):
    """The harness lacks the part that an edit needs; the operator does not apply."""


@lru_cache(maxsize=1)
def technique_sources() -> dict[str, str]:
    """The text of every technique module by its name."""
    folder = resources.files("milo.agents.operators").joinpath(PACKAGE)
    return {
        entry.name.removesuffix(".py"): entry.read_text(encoding="utf-8")
        for entry in folder.iterdir()
        if entry.name.endswith(".py")
    }


@lru_cache(maxsize=256)
def anatomy_of(tree: FileTree) -> Anatomy:
    """Study a tree as a harness; raises `HarnessError` where it is none."""
    return study(Harness.from_tree(tree))


def techniques_in(tree: FileTree) -> frozenset[str]:
    """Names of the techniques that the harness's own modules use."""
    return frozenset(
        name for module in anatomy_of(tree).modules for name in imported_techniques(module)
    ) & frozenset(HOMES)


def decorate(tree: FileTree, part: str, technique: str, arguments: str = "") -> FileTree:
    """Put a technique's decorator on the harness's ``extract`` or ``solve`` function."""
    anatomy = anatomy_of(tree)
    found = anatomy.extract if part == "extract" else anatomy.solve
    if found is None:
        raise CannotEdit(f"no {part} function")
    function, module = found.function, found.module
    line = f"@{technique}{arguments}\n"
    later = [
        node.lineno
        for node in function.decorator_list
        if RANK.get(_decorator_name(node), len(RANK)) > RANK[technique]
    ]
    where = _start_of_line(module.text, min(later, default=function.lineno))
    return _with_technique(tree, module, _splice(module.text, where, where, line), technique)


def wrap_calls(tree: FileTree, technique: str, arguments: str = "") -> FileTree:
    """Wrap what is sent to the model, wherever its reply is acted on, in a technique."""
    total = len(anatomy_of(tree).act_calls)
    if not total:
        raise CannotEdit("no call of the model")
    for index in range(total):
        anatomy = anatomy_of(tree)
        place = anatomy.act_calls[index]
        text, argument = place.module.text, _conversation(anatomy, place.node)
        chain, core = _wrappers(text, argument)
        chain = sorted([*chain, (technique, arguments)], key=lambda item: RANK[item[0]])
        new = core
        for name, extra in chain:
            new = f"{name}({new}{extra})"
        start, end = span(text, argument)
        tree = _with_technique(tree, place.module, _splice(text, start, end, new), technique)
    return tree


def record_runs(tree: FileTree) -> FileTree:
    """Send every run of the model's text through the recorder; harmless where it is already."""
    anatomy = anatomy_of(tree)
    if not anatomy.runs:
        raise CannotEdit("no subprocess.run of the model's text")
    for module in anatomy.modules:
        text = module.text
        calls = [
            p.node for p in anatomy.runs if p.module is module and isinstance(p.node, ast.Call)
        ]
        for call in sorted(calls, key=lambda node: (-node.lineno, -node.col_offset)):
            start, end = span(module.text, call.func)
            text = _splice(text, start, end, "recorded_run")
        if calls and text != module.text:
            tree = _with_technique(tree, module, text, "recorded_run")
    return tree


def run_here(tree: FileTree) -> FileTree:
    """Run the model's text in the folder that the harness was started in, wherever it says."""
    if not anatomy_of(tree).runs:
        raise CannotEdit("no subprocess.run of the model's text")
    for index in range(len(anatomy_of(tree).runs)):
        place = anatomy_of(tree).runs[index]
        keywords = place.node.keywords if isinstance(place.node, ast.Call) else []
        for keyword in keywords:
            if keyword.arg == "cwd":
                start, end = span(place.module.text, keyword.value)
                text = _splice(place.module.text, start, end, '"."')
                tree = _replaced(tree, place.module, text)
    return tree


def set_option(tree: FileTree, key: str, value: str) -> FileTree:
    """Set one field of every request body to a literal, or to a call of a technique."""
    payloads = anatomy_of(tree).payloads
    if not payloads:
        raise CannotEdit("no request body")
    for index in range(len(payloads)):
        module, node = anatomy_of(tree).payloads[index]
        for name, old in zip(node.keys, node.values, strict=True):
            if isinstance(name, ast.Constant) and name.value == key:
                start, end = span(module.text, old)
                new = value
                break
        else:
            start = end = span(module.text, node)[1] - 1
            comma = "" if module.text[:start].rstrip().endswith(",") else ", "
            new = f'{comma}"{key}": {value}'
        text = _splice(module.text, start, end, new)
        used = value.partition("(")[0]
        tree = (
            _with_technique(tree, module, text, used)
            if used in HOMES
            else _replaced(tree, module, text)
        )
    return tree


def option(tree: FileTree, key: str) -> str:
    """The source text of a request field, "" where it is not set."""
    for module, node in anatomy_of(tree).payloads:
        for name, value in zip(node.keys, node.values, strict=True):
            if isinstance(name, ast.Constant) and name.value == key:
                return ast.get_source_segment(module.text, value) or ""
    return ""


def set_constant(tree: FileTree, name: str, value: str | int) -> FileTree:
    """Give a named constant (a prompt or a step limit) another value."""
    anatomy = anatomy_of(tree)
    for constant in (*anatomy.act_prompts, *anatomy.step_limits):
        if constant.name == name:
            module = constant.module
            start, end = span(module.text, constant.node)
            literal = _literal(value, module.text[:start].rstrip().endswith("("))
            return _replaced(tree, module, _splice(module.text, start, end, literal))
    raise CannotEdit(f"no constant {name}")


def drop_side_calls(tree: FileTree) -> FileTree:
    """Leave out every call whose reply is not acted on; its variable holds an empty text."""
    for _ in anatomy_of(tree).side_calls:
        place = anatomy_of(tree).side_calls[0]
        start, end = span(place.module.text, place.node)
        tree = _replaced(tree, place.module, _splice(place.module.text, start, end, '""'))
    return tree


def drop_technique(tree: FileTree, technique: str) -> FileTree:
    """Take a decorator or wrapper out again, its import too; shared modules stay if still used."""
    for path in [module.path for module in anatomy_of(tree).modules]:
        module = next(m for m in anatomy_of(tree).modules if m.path == path)
        if technique in imported_techniques(module):
            tree = _replaced(tree, module, _without(module, technique))
    return prune(tree)


def set_arguments(tree: FileTree, technique: str, arguments: str) -> FileTree:
    """Change what a technique is called with, wherever it is used (text between its brackets)."""
    for module in anatomy_of(tree).modules:
        text = module.text
        for call in _uses(module, technique):
            if call.keywords:
                start, end = _keyword_span(text, call)
                text = _splice(text, start, end, arguments)
        if text != module.text:
            tree = _replaced(tree, module, text)
    return tree


def arguments_of(tree: FileTree, technique: str) -> str:
    """The keyword arguments of a technique's first use, as source text; "" for none."""
    for module in anatomy_of(tree).modules:
        for call in _uses(module, technique):
            if call.keywords:
                return module.text[slice(*_keyword_span(module.text, call))]
    return ""


def prune(tree: FileTree) -> FileTree:
    """Without the technique modules that nothing uses any more."""
    wanted = _closure({HOMES[name] for name in techniques_in(tree)})
    unused = [
        path
        for path in tree
        if path.startswith(f"{PACKAGE}/") and path.removesuffix(".py").split("/")[1] not in wanted
    ]
    return tree.without(*unused)


def span(text: str, node: ast.expr) -> tuple[int, int]:
    """Start and end of a node as offsets into the text."""
    end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
    return _offset(text, node.lineno, node.col_offset), _offset(text, end_line, end_column)


def _keyword_span(text: str, call: ast.Call) -> tuple[int, int]:
    """Start and end of a call's keyword arguments."""
    first, last = call.keywords[0], call.keywords[-1]
    end = span(text, last.value)[1]
    return _offset(text, first.lineno, first.col_offset), end


def _offset(text: str, line: int, column: int) -> int:
    """An offset from a line and a column in UTF-8 bytes, as `ast` counts."""
    start = _start_of_line(text, line)
    rest = text[start:].encode()[:column]
    return start + len(rest.decode(errors="ignore"))


def _start_of_line(text: str, line: int) -> int:
    return sum(len(part) for part in text.splitlines(keepends=True)[: line - 1])


def _splice(text: str, start: int, end: int, new: str) -> str:
    return text[:start] + new + text[end:]


def _replaced(tree: FileTree, module: Module, text: str) -> FileTree:
    return tree.with_texts({module.path: text})


def _with_technique(tree: FileTree, module: Module, text: str, technique: str) -> FileTree:
    """The tree with the edited module, the import that it needs and the technique's files."""
    home = HOMES[technique]
    if technique not in imported_techniques(module):
        text = _with_import(text, f"from {PACKAGE}.{home} import {technique}\n")
    sources = technique_sources()
    files = {f"{PACKAGE}/{name}.py": sources[name] for name in _closure({home})}
    return tree.with_texts({module.path: text, **files})


def _with_import(text: str, line: str) -> str:
    """The text with an import after the last one at the top of the module."""
    body = ast.parse(text).body
    imports = [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
    after = imports[-1] if imports else next(iter(body[:1]), None)
    where = _start_of_line(text, (after.end_lineno or 0) + 1) if after else 0
    ours = imports and isinstance(imports[-1], ast.ImportFrom) and imports[-1].module
    gap = "" if ours and str(ours).startswith(PACKAGE) else "\n"
    return _splice(text, where, where, gap + line)


def _closure(modules: set[str]) -> set[str]:
    """Technique modules and all those that they import, the package's own file included."""
    sources = technique_sources()
    wanted, frontier = {"__init__"}, list(modules)
    while frontier:
        name = frontier.pop()
        if name not in wanted:
            wanted.add(name)
            frontier += re.findall(r"^from \.(\w+) import", sources[name], re.M)
    return wanted


def _conversation(anatomy: Anatomy, node: ast.expr) -> ast.expr:
    """The argument of a model call that holds the conversation, or the user's text."""
    assert isinstance(node, ast.Call) and anatomy.ask is not None
    names = [argument.arg for argument in anatomy.ask.function.args.args]
    for position, name in enumerate(names[: len(node.args)]):
        if name in ("messages", "conversation", "history", "chat"):
            return node.args[position]
    for position, name in enumerate(names[: len(node.args)]):
        if name in ("user", "prompt", "text", "task", "question"):
            return node.args[position]
    return node.args[0]


def _wrappers(text: str, node: ast.expr) -> tuple[list[tuple[str, str]], str]:
    """The technique calls around an expression (with their further arguments), and its core."""
    chain: list[tuple[str, str]] = []
    while isinstance(node, ast.Call) and called_name(node) in HOMES and node.args:
        inner = node.args[0]
        chain.append((called_name(node), text[span(text, inner)[1] : span(text, node)[1] - 1]))
        node = inner
    start, end = span(text, node)
    return chain, text[start:end]


def _decorator_name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else called_name(node)


def _uses(module: Module, technique: str) -> list[ast.Call]:
    """Calls of a technique in a module, last first."""
    found = [
        node
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and called_name(node) == technique
    ]
    return sorted(found, key=lambda node: (-node.lineno, -node.col_offset))


def _without(module: Module, technique: str) -> str:
    """A module's text without a technique: its decorator lines, its wrappers and its import."""
    text = module.text
    for call in _uses(module, technique):
        decorates = any(call in f.decorator_list for f in module.functions)
        if call.args and not decorates:
            start, end = span(text, call)
            inner = text[slice(*span(text, call.args[0]))]
            text = _splice(text, start, end, inner)
    names = rf"^@{technique}\b.*\n|^from {PACKAGE}\.\w+ import {technique}\n"
    return re.sub(names, "", text, flags=re.M)


def _literal(value: str | int, bracketed: bool) -> str:
    """Source for a constant; long texts are split into pieces, in brackets if need be."""
    if isinstance(value, int):
        return str(value)
    plain = _quoted(value)
    if len(plain) <= 80:
        return plain
    pieces = re.findall(r".{1,70}(?:\s|$)|\S{71,}\s?|\n", value, re.DOTALL)
    pad = "\n" + " " * 4
    joined = pad.join(_quoted(piece) for piece in pieces) if "".join(pieces) == value else plain
    return joined if bracketed else f"({pad}{joined}\n)"


def _quoted(text: str) -> str:
    """A double-quoted Python literal."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
