"""What a harness is made of, found in its source: where the model is asked, read and obeyed.

Nothing here knows a seed by name. A function that mentions the chat completions path asks the
model; what its replies are handed to reads them; the `subprocess` call runs them; the function
that holds all of this together solves the task. A part that is not found is None, or empty, and
operators that need it don't apply.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from milo.core.harness import Harness

PACKAGE = "techniques"
Function = ast.FunctionDef


@dataclass(frozen=True, kw_only=True, slots=True)
class Module:
    """One parsed source file of the harness."""

    path: str
    text: str
    tree: ast.Module

    @property
    def functions(self) -> tuple[Function, ...]:
        """The functions at the top of the module, in order."""
        return tuple(node for node in self.tree.body if isinstance(node, Function))


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A function of the harness and the module that it stands in."""

    module: Module
    function: Function


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A node of the harness's source; `within` is the function around it."""

    module: Module
    node: ast.expr
    within: Function


@dataclass(frozen=True, kw_only=True, slots=True)
class Constant:
    """A value that a module gives a name: a prompt, or a number.

    `opens` says of a prompt that it is the system's words at the start of a conversation.
    """

    module: Module
    name: str
    node: ast.Constant
    opens: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Anatomy:
    """The parts of one harness."""

    modules: tuple[Module, ...]
    ask: Part | None
    extract: Part | None
    solve: Part | None
    act_calls: tuple[Place, ...]
    side_calls: tuple[Place, ...]
    runs: tuple[Place, ...]
    payloads: tuple[tuple[Module, ast.Dict], ...]
    act_prompts: tuple[Constant, ...]
    step_limits: tuple[Constant, ...]
    loops: bool


def study(harness: Harness) -> Anatomy:
    """Find the parts of a harness; files that do not parse, or may not be edited, are left out."""
    modules = tuple(_modules(harness))
    ask = next((part for part in _parts(modules) if _asks(part)), None)
    calls = _calls_of(modules, ask)
    extract = _reader(modules, calls, ask)
    acts = tuple(c for c in calls if extract is None or _is_read(c, extract.function.name))
    sides = tuple(call for call in calls if call not in acts)
    return Anatomy(
        modules=modules,
        ask=ask,
        extract=extract,
        solve=_solver(modules, acts),
        act_calls=acts,
        side_calls=sides,
        runs=tuple(_runs(modules, ask)),
        payloads=tuple(_payloads(modules)),
        act_prompts=tuple(_prompts(modules, acts, sides)),
        step_limits=tuple(_step_limits(modules, acts)),
        loops=any(_in_loop(call) for call in acts),
    )


def names_in(node: ast.AST) -> set[str]:
    """Every plain name used in a node."""
    return {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}


def called_name(node: ast.AST) -> str:
    """The last part of the name that a call calls; "" for what is no such call."""
    if not isinstance(node, ast.Call):
        return ""
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def imported_techniques(module: Module) -> tuple[str, ...]:
    """Names that a module imports from the techniques package."""
    return tuple(
        alias.name
        for node in module.tree.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == PACKAGE
        for alias in node.names
    )


def _modules(harness: Harness) -> Iterator[Module]:
    for path in harness.tree:
        ours = path.split("/")[0] == PACKAGE
        if not path.endswith(".py") or ours or not harness.may_edit(path):
            continue
        text = harness.tree.text(path)
        try:
            yield Module(path=path, text=text, tree=ast.parse(text))
        except SyntaxError:
            continue


def _parts(modules: tuple[Module, ...]) -> Iterator[Part]:
    for module in modules:
        for function in module.functions:
            yield Part(module=module, function=function)


def _strings(node: ast.AST) -> Iterator[str]:
    for child in ast.walk(node):
        if isinstance(child, ast.Constant) and isinstance(child.value, str):
            yield child.value


def _named_constants(module: Module) -> Iterator[tuple[str, ast.Constant]]:
    for node in module.tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant() as value):
                yield name, value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant() as value):
                yield name, value


def _asks(part: Part) -> bool:
    addresses = {
        name
        for name, node in _named_constants(part.module)
        if isinstance(node.value, str) and "chat/completions" in node.value
    }
    inside = any("chat/completions" in text for text in _strings(part.function))
    return bool(part.function.args.args) and (inside or bool(addresses & names_in(part.function)))


def _calls_of(modules: tuple[Module, ...], part: Part | None) -> tuple[Place, ...]:
    if part is None:
        return ()
    return tuple(
        Place(module=owner.module, node=node, within=owner.function)
        for owner in _parts(modules)
        if owner.function.name != part.function.name
        for node in ast.walk(owner.function)
        if isinstance(node, ast.Call) and called_name(node) == part.function.name and node.args
    )


def _reply_names(call: Place) -> set[str]:
    """Variables that hold the reply of a call."""
    return {
        target.id
        for node in ast.walk(call.within)
        if isinstance(node, ast.Assign) and node.value is call.node
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _readers_of(call: Place) -> Iterator[str]:
    """Names of the functions that the reply of a call is handed to."""
    replies = _reply_names(call)
    for node in ast.walk(call.within):
        if isinstance(node, ast.Call) and node.args:
            first = node.args[0]
            if first is call.node or (isinstance(first, ast.Name) and first.id in replies):
                yield called_name(node)


def _is_read(call: Place, reader: str) -> bool:
    return reader in _readers_of(call)


def _reader(modules: tuple[Module, ...], calls: tuple[Place, ...], ask: Part | None) -> Part | None:
    wanted = {name for call in calls for name in _readers_of(call)}
    found = [
        part
        for part in _parts(modules)
        if part.function.name in wanted
        and part.function is not (ask.function if ask else None)
        and len(part.function.args.args) == 1
        and not any(_is_run(node) for node in ast.walk(part.function))
    ]
    fenced = [part for part in found if any("`" in text for text in _strings(part.function))]
    return next(iter([*fenced, *found]), None)


def _solver(modules: tuple[Module, ...], acts: tuple[Place, ...]) -> Part | None:
    for part in _parts(modules):
        holds = any(call.within is part.function for call in acts)
        if holds and not any("--smoke" in text for text in _strings(part.function)):
            return part
    return None


def _is_run(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="subprocess"), attr="run")):
            return True
        case _:
            return called_name(node) == "recorded_run"


def _runs(modules: tuple[Module, ...], ask: Part | None) -> Iterator[Place]:
    for part in _parts(modules):
        for node in ast.walk(part.function):
            asks = ask is not None and part.function is ask.function
            if isinstance(node, ast.Call) and _is_run(node) and not asks:
                yield Place(module=part.module, node=node, within=part.function)


def _payloads(modules: tuple[Module, ...]) -> Iterator[tuple[Module, ast.Dict]]:
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Dict):
                keys = {key.value for key in node.keys if isinstance(key, ast.Constant)}
                if {"model", "messages"} <= keys:
                    yield module, node


def _prompts(
    modules: tuple[Module, ...], acts: tuple[Place, ...], sides: tuple[Place, ...]
) -> Iterator[Constant]:
    aside = set().union(*(names_in(call.node) for call in sides))
    used = set().union(*(names_in(call.within) for call in acts)) - aside
    opening = {name for module in modules for name in _system_words(module)}
    for module in modules:
        for name, node in _named_constants(module):
            if name in used and isinstance(node.value, str) and " " in node.value:
                yield Constant(module=module, name=name, node=node, opens=name in opening)


def _system_words(module: Module) -> Iterator[str]:
    """Names that stand as the content of a system message."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Dict):
            entries = {
                key.value: value
                for key, value in zip(node.keys, node.values, strict=True)
                if isinstance(key, ast.Constant)
            }
            role, content = entries.get("role"), entries.get("content")
            if isinstance(role, ast.Constant) and role.value == "system" and content is not None:
                yield from names_in(content)


def _in_loop(call: Place) -> bool:
    return any(
        isinstance(node, ast.For | ast.While) and any(call.node is n for n in ast.walk(node))
        for node in ast.walk(call.within)
    )


def _step_limits(modules: tuple[Module, ...], acts: tuple[Place, ...]) -> Iterator[Constant]:
    bounds = {
        name
        for call in acts
        for node in ast.walk(call.within)
        if isinstance(node, ast.For) and called_name(node.iter) == "range"
        for name in names_in(node.iter) - {"range"}
    }
    for module in modules:
        for name, constant in _named_constants(module):
            if name in bounds and type(constant.value) is int:
                yield Constant(module=module, name=name, node=constant)
