"""Call a candidate's function in a confined process and print what came back.

Reads one JSON request from standard input (`nonce`, `source`, `module`, `function`, `calls`),
prints one JSON line. Two layers keep the module from doing anything but computing: it is read
first and refused if it uses more than plain computing needs, and the kernel is asked to deny this
process files, new processes and signals. It never knows an expected result.
"""

from __future__ import annotations

import ast
import copy
import ctypes
import json
import os
import resource
import sys
from typing import Any

MODULES = frozenset(
    {
        "__future__", "bisect", "cmath", "collections", "collections.abc", "datetime", "decimal",
        "fractions", "functools", "heapq", "itertools", "math", "re", "statistics", "string",
        "typing", "unicodedata",
    }
)  # fmt: skip
NAMES = frozenset(
    {
        "__import__", "__builtins__", "__loader__", "__spec__", "breakpoint", "compile", "delattr",
        "eval", "exec", "exit", "getattr", "globals", "help", "input", "locals", "memoryview",
        "open", "quit", "setattr", "vars"
    }
)  # fmt: skip
# Among them what reads attributes by a name in a string (`wraps`) or evaluates string annotations
# (`singledispatch`): a string is nothing that reading the syntax tree would find.
ATTRIBUTES = frozenset(
    {
        "attrgetter", "methodcaller", "get_type_hints", "ForwardRef", "Formatter", "get_field",
        "vformat", "builtins", "codecs", "contextlib", "copyreg", "cr_frame", "ag_frame", "enum",
        "f_back", "f_builtins", "f_globals", "f_locals", "functools", "gi_frame", "io", "importlib",
        "inspect", "locale", "modules", "operator", "os", "posix", "random", "singledispatch",
        "singledispatchmethod", "sre_compile", "sys", "system", "tb_frame", "types",
        "update_wrapper", "warnings", "wraps"
    }
)  # fmt: skip
LANDLOCK_READ_FILE, LANDLOCK_EXECUTE, LANDLOCK_READ_DIR = 1 << 2, 1 << 0, 1 << 3
ALL_ACCESS_V1 = (1 << 13) - 1


def refusal(tree: ast.AST) -> str:
    """Why the module may not run; "" if it may."""
    return next((words for node in ast.walk(tree) if (words := fault(node))), "")


def fault(node: ast.AST) -> str:
    """What is wrong with one node of the module's syntax tree; "" if nothing."""
    used: list[str] = []
    match node:
        case ast.Import():
            used = [alias.name for alias in node.names if alias.name not in MODULES]
        case ast.ImportFrom():
            used = [] if node.module in MODULES else [node.module or "."]
            used += [alias.name for alias in node.names if is_private(alias.name)]
        case ast.Attribute():
            used = [node.attr] if is_private(node.attr) else []
        case ast.Name():
            private = node.id in NAMES or (node.id.startswith("__") and node.id != "__name__")
            used = [node.id] if private else []
        case ast.MatchClass():
            used = ["a class pattern"]
    return f"the module uses {used[0][:60]}, which is not allowed here" if used else ""


def is_private(name: str) -> bool:
    """Whether an attribute leads away from plain computing."""
    return name.startswith("_") or name in ATTRIBUTES


def confine() -> None:
    """No files, no new processes, no signals to others, 4 CPU seconds, 1 GiB."""
    limits = {"FSIZE": 0, "NPROC": 0, "CPU": 4, "AS": 1 << 30, "CORE": 0}
    for name, value in limits.items():
        hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[1]
        top = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (top, top))
    libc = ctypes.CDLL(None)
    libc.prctl(38, 1, 0, 0, 0)  # no new privileges
    landlock(libc)


def landlock(libc: ctypes.CDLL) -> None:
    """Deny files but the interpreter's own library, and signals; a kernel without it goes on."""
    version = libc.syscall(444, None, 0, 1)
    if version < 1:
        return
    scope = 3 if version >= 6 else 0  # abstract sockets and signals
    attributes = (ctypes.c_uint64 * 3)(ALL_ACCESS_V1, 0, scope)
    size = 24 if version >= 6 else 8
    rules = libc.syscall(444, ctypes.byref(attributes), size, 0)
    if rules < 0:
        return
    read = LANDLOCK_READ_FILE | LANDLOCK_READ_DIR | LANDLOCK_EXECUTE
    for path in {os.path.dirname(os.__file__), sys.base_exec_prefix + "/lib", "/usr/lib"}:
        allow(libc, rules, path, read)
    libc.syscall(446, rules, 0)
    os.close(rules)


def allow(libc: ctypes.CDLL, rules: int, path: str, access: int) -> None:
    """Add one folder to a Landlock rule set."""

    class Beneath(ctypes.Structure):
        _pack_ = 1
        _fields_ = (("access", ctypes.c_uint64), ("folder", ctypes.c_int32))

    if not os.path.isdir(path):
        return
    folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    libc.syscall(445, rules, 1, ctypes.byref(Beneath(access, folder)), 0)
    os.close(folder)


def plain(value: object, depth: int = 0) -> object:
    """A JSON-ready copy of built-in values; tuples become lists. Raises TypeError on others."""
    if depth > 20:
        raise TypeError
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) in (list, tuple):
        return [plain(item, depth + 1) for item in value]  # type: ignore[attr-defined]
    if isinstance(value, dict):
        return {str(key): plain(item, depth + 1) for key, item in dict.items(value)}
    raise TypeError


def answer(function: object, args: list[Any]) -> dict[str, Any]:
    """The value of one call, or the name of the exception."""
    try:
        value = function(*copy.deepcopy(args))  # type: ignore[operator]
    except BaseException as error:
        return {"error": type(error).__name__[:40]}
    try:
        return {"value": plain(value)}
    except TypeError:
        return {"error": "TypeError"}


def run(request: dict[str, Any]) -> dict[str, Any]:
    """All answers, or the problem that kept the function from being called."""
    try:
        tree = ast.parse(request["source"], request["module"])
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        return {
            "problem": f"{request['module']} is not valid Python" + f": line {line}" * bool(line)
        }
    problem = refusal(tree)
    if problem:
        return {"problem": problem}
    space: dict[str, Any] = {"__name__": "candidate"}
    try:
        exec(compile(tree, request["module"], "exec"), space)
    except BaseException as error:
        return {"problem": f"importing the module raised {type(error).__name__[:40]}"}
    function = space.get(request["function"])
    if not callable(function):
        return {"problem": f"the module has no function {request['function']}"}
    return {"answers": [answer(function, args) for args in request["calls"]]}


def main() -> None:
    """Answer over the original standard output; the module's own prints go nowhere."""
    request = json.loads(sys.stdin.buffer.read())
    nonce = request.pop("nonce")
    pipe = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    confine()
    reply = json.dumps(run(request) | {"nonce": nonce}).encode()
    while reply:
        reply = reply[os.write(pipe, reply) :]
    os._exit(0)


if __name__ == "__main__":
    main()
