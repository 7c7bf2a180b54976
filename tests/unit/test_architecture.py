"""The house rules of the code, read from its syntax trees.

What may import what, how long things may be, and where a broad `except` may stand. A failure here
names the file and the rule; the rooms are described in CONTRIBUTING.md.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "milo"

ROOMS: dict[str, set[str]] = {
    "core": set(),
    "search": {"core"},
    "agents": {"core"},
    "rollout": {"core"},
    "gateway": {"core"},
    "suites": {"core"},
    "store": {"core"},
    "runtime": {"core", "search"},
    "protocols": {"core", "store"},
    "views": {"core", "store"},
    "testing": {"core"},
    "seeds": set(),
}
"""The rooms of milo that each room may import beside itself; `app` may import all but testing."""

ONLY_IN: dict[str, set[str]] = {
    "ray": {"milo/runtime/"},
    "hydra": {"milo/app/"},
    "omegaconf": {"milo/app/"},
    "litellm": {"milo/gateway/"},
    "pymoo": {"milo/core/hypervolume.py"},
    "moocore": {"milo/core/hypervolume.py"},
    "docker": {"milo/rollout/", "milo/app/doctor.py"},
    "pyarrow": {"milo/store/"},
    "wandb": {"milo/views/", "milo/testing/wandb_log.py"},
    "xllamacpp": {"milo/gateway/"},
    "rich": {"milo/views/", "milo/app/"},
    "matplotlib": {"milo/views/figures/"},
}
"""Packages that only these files or folders may import."""

PURE = {"core": {"numpy", "pymoo", "moocore"}, "search": {"numpy"}}
"""Packages from outside that the pure rooms may import beside the standard library."""

BROAD_EXCEPT_ALLOWED: set[tuple[str, str]] = {
    ("milo/app/cli.py", "main"),
    ("milo/app/multirun.py", "_attempt"),
    ("milo/gateway/blame.py", "_guarded"),
    ("milo/gateway/session.py", "_call"),
    ("milo/rollout/runner.py", "run"),
    ("milo/runtime/dispatch.py", "_run"),
}
"""Process boundaries: (file, function) where `except Exception` records the fault, or hands it to
whoever waits for the result. A handler that ends in `raise` swallows nothing and needs no entry."""

ENVIRONMENT_ALLOWED: set[tuple[str, str]] = {
    # litellm reads its price list's place from the environment while it is imported.
    ("milo/gateway/litellm_upstream.py", "_load"),
    ("milo/gateway/tokens.py", "_encoding"),
    # Entries of programs that run in a sandbox, with numpy and packages of ours beside them.
    ("milo/suites/arena/harness/main.py", "main"),
    ("milo/suites/arena/verifier/check.py", "main"),
}
"""Functions outside `app` that may touch the environment. Passing all of it on to a child process
(`{**os.environ, …}`) reads nothing and needs no entry."""

RUNS_IN_A_SANDBOX = (
    "milo/seeds/",
    "milo/suites/arena/harness/reviser/",
    "milo/suites/deskwork/verifier/",
    "milo/agents/operators/techniques/",
    "milo/agents/tools/milo_",
    "milo/agents/cli/start.py",
    "milo/rollout/launcher.py",
)
"""Programs that MILO puts into a sandbox, where milo itself is not and the environment is how the
runner speaks to them. They use the standard library and each other only."""

BRING_PACKAGES = ("milo/seeds/expert/",)
"""Of these, harnesses whose manifest names packages: they import those too."""

MAX_FUNCTION, MAX_FILE, MAX_PARAMETERS = 50, 400, 8

FILES = sorted(p for p in PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def module_of(path: Path) -> str:
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree_of(path)))


def imports_of(path: Path, *, at_import_time: bool = False) -> Iterator[str]:
    """Dotted names that a file imports; those under TYPE_CHECKING or in functions too, unless
    only what runs when the file is imported is asked for."""
    for node in _eager(tree_of(path)) if at_import_time else nodes_of(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = path.relative_to(ROOT).parts[: -node.level] if node.level else ()
            base = ".".join([*package, *([node.module] if node.module else [])])
            for alias in node.names:
                yield f"{base}.{alias.name}"


def _eager(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        yield child
        yield from _eager(child)


def functions_of(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in nodes_of(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def runs_in_a_sandbox(path: Path) -> bool:
    return name_of(path).startswith(RUNS_IN_A_SANDBOX)


def brings_packages(path: Path) -> bool:
    manifest = path.with_name("harness.toml")
    expert = name_of(path).startswith(BRING_PACKAGES)
    return expert and "[packages]" in manifest.read_text(encoding="utf-8")


def length_without_docstring(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    first = node.body[0]
    match first:
        case ast.Expr(value=ast.Constant(value=str())):
            lines -= (first.end_lineno or first.lineno) - first.lineno + 1
    return lines


def parameters_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    args = node.args
    named = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    return len([a for a in named if a.arg not in ("self", "cls")])


def allowed_rooms(room: str) -> set[str]:
    if room == "app":
        return {*ROOMS, "app"} - {"testing"}
    return ROOMS.get(room, set()) | {room}


def test_every_room_has_a_rule() -> None:
    rooms = {p.name for p in PACKAGE.iterdir() if p.is_dir() and any(p.rglob("*.py"))}
    assert rooms <= {*ROOMS, "app"}


def test_rooms_import_only_the_rooms_that_the_table_allows() -> None:
    wrong = []
    for path in FILES:
        room = room_of(module_of(path))
        for imported in imports_of(path):
            parts = imported.split(".")
            if parts[0] != "milo" or len(parts) < 2 or not (PACKAGE / parts[1]).is_dir():
                continue
            if room and parts[1] not in allowed_rooms(room):
                wrong.append(f"{name_of(path)} imports {imported}")
    assert not wrong, "\n".join(wrong)


def test_packages_stay_in_the_rooms_that_own_them() -> None:
    wrong = []
    for path in FILES:
        for imported in imports_of(path):
            owners = ONLY_IN.get(imported.split(".")[0])
            if owners and not any(name_of(path).startswith(owner) for owner in owners):
                wrong.append(f"{name_of(path)} imports {imported}")
    assert not wrong, "\n".join(wrong)


def test_pure_rooms_import_the_standard_library_and_little_else() -> None:
    wrong = [
        f"{name_of(path)} imports {imported}"
        for path in FILES
        if (extra := PURE.get(room_of(module_of(path)))) is not None
        for imported in imports_of(path)
        if imported.split(".")[0] not in {*sys.stdlib_module_names, *extra, "milo"}
    ]
    assert not wrong, "\n".join(wrong)


def test_programs_for_the_sandbox_import_the_standard_library_and_each_other() -> None:
    wrong = []
    for path in FILES:
        if not runs_in_a_sandbox(path) or brings_packages(path):
            continue
        beside = {p.stem for p in path.parent.glob("*.py")}
        package = f"{module_of(path.parent / '__init__.py')}."
        for imported in imports_of(path):
            near = imported.split(".")[0] in beside or imported.startswith(package)
            if imported.split(".")[0] not in sys.stdlib_module_names and not near:
                wrong.append(f"{name_of(path)} imports {imported}")
    assert not wrong, "\n".join(wrong)


def test_programs_that_drive_peers_do_not_import_milo() -> None:
    drivers = [path for path in FILES if name_of(path).startswith("milo/agents/peers/")]
    assert drivers and not [i for p in drivers for i in imports_of(p) if i.startswith("milo.")]


def test_imports_are_absolute() -> None:
    wrong = [
        f"{name_of(path)}:{node.lineno}"
        for path in FILES
        if not runs_in_a_sandbox(path)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert not wrong, "\n".join(wrong)


def test_modules_import_each_other_without_a_cycle() -> None:
    modules = {module_of(path): path for path in FILES}
    graph = {
        name: {m for i in imports_of(path, at_import_time=True) if (m := _module(i, modules))}
        - {name}
        for name, path in modules.items()
    }
    cycle = _find_cycle(graph)
    assert not cycle, " -> ".join(cycle)


def _module(imported: str, modules: dict[str, Path]) -> str | None:
    if imported in modules:
        return imported
    parent = imported.rpartition(".")[0]
    return parent if parent in modules else None


def _find_cycle(graph: dict[str, set[str]]) -> list[str]:
    done: set[str] = set()
    for start, targets in graph.items():
        stack: list[tuple[str, Iterator[str]]] = [(start, iter(sorted(targets)))]
        path = [start]
        while stack:
            following = next(stack[-1][1], None)
            if following is None:
                done.add(stack.pop()[0])
                path.pop()
            elif following in path:
                return [*path[path.index(following) :], following]
            elif following not in done:
                stack.append((following, iter(sorted(graph[following]))))
                path.append(following)
    return []


def test_a_cycle_between_modules_would_be_found() -> None:
    assert _find_cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert _find_cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_functions_are_at_most_fifty_lines_long() -> None:
    wrong = [
        f"{name_of(path)}:{node.lineno} {node.name}: {length_without_docstring(node)} lines"
        for path in FILES
        for node in functions_of(path)
        if length_without_docstring(node) > MAX_FUNCTION
    ]
    assert not wrong, "\n".join(wrong)


def test_files_are_at_most_four_hundred_lines_long() -> None:
    files = [*FILES, *sorted((ROOT / "tests").rglob("*.py"))]
    counts = {name_of(p): len(p.read_text(encoding="utf-8").splitlines()) for p in files}
    wrong = [f"{name}: {lines} lines" for name, lines in counts.items() if lines > MAX_FILE]
    assert not wrong, "\n".join(wrong)


def test_no_two_test_files_have_one_name() -> None:
    """pytest imports them by it."""
    names = [p.name for p in (ROOT / "tests").rglob("test_*.py") if "fixtures" not in p.parts]
    assert sorted(names) == sorted(set(names))


def test_functions_take_at_most_eight_parameters() -> None:
    wrong = [
        f"{name_of(path)}:{node.lineno} {node.name}: {parameters_of(node)} parameters"
        for path in FILES
        for node in functions_of(path)
        if parameters_of(node) > MAX_PARAMETERS
    ]
    assert not wrong, "\n".join(wrong)


def test_broad_excepts_stand_only_at_process_boundaries() -> None:
    found = {
        (name_of(path), function)
        for path in FILES
        if not runs_in_a_sandbox(path)
        for function in _broad_excepts(tree_of(path), "")
    }
    wrong = sorted(found - BROAD_EXCEPT_ALLOWED)
    assert not wrong, f"except Exception outside the allow-list: {wrong}"


def _broad_excepts(node: ast.AST, function: str) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        inside = function
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            inside = child.name
        if isinstance(child, ast.ExceptHandler) and _swallows(child):
            yield inside
        yield from _broad_excepts(child, inside)


def _swallows(handler: ast.ExceptHandler) -> bool:
    return _is_broad(handler.type) and not isinstance(handler.body[-1], ast.Raise)


def _is_broad(caught: ast.expr | None) -> bool:
    if caught is None:
        return True
    names = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(isinstance(n, ast.Name) and n.id in ("Exception", "BaseException") for n in names)


def test_every_module_says_what_it_is_for() -> None:
    wrong = [name_of(path) for path in FILES if not ast.get_docstring(tree_of(path))]
    assert not wrong, "\n".join(wrong)


def test_nothing_but_tests_imports_the_fakes() -> None:
    sources = [*FILES, *sorted((ROOT / "experiments").rglob("*.py"))]
    wrong = [
        f"{name_of(path)} imports {imported}"
        for path in sources
        if room_of(module_of(path)) != "testing"
        for imported in imports_of(path)
        if imported.startswith("milo.testing")
    ]
    assert not wrong, "\n".join(wrong)


def test_the_environment_is_read_in_app_only() -> None:
    found = {
        (name_of(path), function)
        for path in FILES
        if room_of(module_of(path)) != "app" and not runs_in_a_sandbox(path)
        for function in _environment_reads(tree_of(path), "")
    }
    assert not sorted(found - ENVIRONMENT_ALLOWED)


def _environment_reads(node: ast.AST, function: str) -> Iterator[str]:
    passed_on = set()
    if isinstance(node, ast.Dict):
        passed_on = {v for k, v in zip(node.keys, node.values, strict=True) if k is None}
    for child in ast.iter_child_nodes(node):
        inside = function
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            inside = child.name
        if _is_environment(child) and child not in passed_on:
            yield inside
        yield from _environment_reads(child, inside)


def _is_environment(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr in ("environ", "environb", "getenv")
        and isinstance(node.value, ast.Name)
        and node.value.id == "os"
    )
