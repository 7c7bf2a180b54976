"""Family `repair`: a small Python module with one bug, described by what it should do."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

from milo.core.task import Task
from milo.suites.deskwork.family import Draft, assemble, quoted, verifier_text
from milo.suites.deskwork.repair_case import Case
from milo.suites.deskwork.repair_lists import LIST_CASES
from milo.suites.deskwork.repair_numbers import NUMBER_CASES

NAME = "repair"
CASES = tuple(case for pair in zip(LIST_CASES, NUMBER_CASES, strict=True) for case in pair)
CALLS = 8


def make(index: int, rng: random.Random) -> Task:
    """The task with this index: cases alternate, and so do each case's bugs."""
    case = CASES[index % len(CASES)]
    turn, at = divmod(index // len(CASES), len(case.bugs))
    bug, name = case.bugs[at], case.names[(turn + at) % len(case.names)]
    names = {"NAME": name, **{k: rng.choice(v) for k, v in case.options.items()}}
    right, wrong = (_fill(case.source.replace(*pair), names) for pair in (("", ""), bug))
    module = f"{names['NAME']}.py"
    expected = {
        "module": module,
        "function": names["NAME"],
        "calls": _calls(case, names["NAME"], (right, wrong), rng),
    }
    draft = Draft(
        instruction=_instruction(case, names, module),
        files={module: wrong},
        goals=(),
        solution=f"cat > {module} {quoted(right)}",
    )
    scripts = {
        "check.py": verifier_text("check_code.py"),
        "runner.py": verifier_text("runner.py"),
    }
    return assemble(NAME, index, draft, scripts, expected)


def _instruction(case: Case, names: dict[str, str], module: str) -> str:
    signature = _fill(case.source, names).split("def ")[1].split(":\n")[0]
    return (
        f"`{module}` has a bug. Its function `{signature}` should do this: "
        f"{_fill(case.intent, names)} Correct the function in `{module}` and keep its name."
    )


def _fill(text: str, names: dict[str, str]) -> str:
    for key, value in names.items():
        text = text.replace(f"${key}", str(value))
    return text


def _calls(
    case: Case, name: str, sources: tuple[str, str], rng: random.Random
) -> list[dict[str, Any]]:
    """Calls with the right results; goals are those which the broken module gets wrong."""
    right, broken = (_function(source, name) for source in sources)
    groups: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for _ in range(200):
        args = case.inputs(rng)
        result = right(*copy.deepcopy(args))
        call = {"args": args, "result": result, "goal": result != _result(broken, args)}
        group = groups[bool(call["goal"])]
        if len(group) < CALLS // 2 and call not in group:
            group.append(call)
        if all(len(group) == CALLS // 2 for group in groups.values()):
            break
    if not groups[True]:
        raise AssertionError(f"the bug of {name} never shows")
    return groups[True] + groups[False]


def _function(source: str, name: str) -> Callable[..., Any]:
    """The function that our own source text (from the case modules) defines."""
    space: dict[str, Any] = {}
    exec(source, space)
    return space[name]  # type: ignore[no-any-return]


def _result(function: Callable[..., Any], args: list[Any]) -> Any:
    """What the broken function returns; a value like no other where it raises."""
    try:
        return function(*copy.deepcopy(args))
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
        return {"raised": type(error).__name__}
