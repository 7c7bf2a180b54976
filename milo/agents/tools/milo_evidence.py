#!/usr/bin/env python3
"""Slices and compares the evidence that a mutator works from: attempts, candidates, edits."""

from __future__ import annotations

import argparse
import difflib
import json
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parent / "data"
Row = dict[str, Any]


def main(argv: list[str]) -> int:
    """Run one command; exit code 1 where nothing matches."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    args = parser().parse_args(argv)
    lines = list(args.run(args))
    print("\n".join(lines) if lines else "nothing matches")
    return 0 if lines else 1


def parser() -> argparse.ArgumentParser:
    """The grammar."""
    top = argparse.ArgumentParser(prog="milo-evidence", description=__doc__)
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    ls = commands.add_parser("list", help="attempts in one line each")
    selecting(ls)
    ls.set_defaults(run=list_attempts)
    show = commands.add_parser("show", help="one attempt after the other, in full or a part")
    selecting(show)
    parts = ("all", "calls", "last", "stdout", "stderr", "report", "changed", "instruction")
    show.add_argument("--part", choices=parts, default="all")
    show.add_argument("--calls", metavar="A:B", default=":", help="only these calls (from 0)")
    show.set_defaults(run=show_attempts)
    grep = commands.add_parser("grep", help="lines of attempts that match a regular expression")
    grep.add_argument("pattern")
    selecting(grep)
    grep.set_defaults(run=grep_attempts)
    diff = commands.add_parser("diff", help="two candidates (or two attempts) on one task")
    diff.add_argument("task")
    diff.add_argument("one", nargs="?", default="", help="candidate, or candidate:attempt")
    diff.add_argument("two", nargs="?", default="")
    diff.set_defaults(run=diff_on_task)
    tried = commands.add_parser("tried", help="edits so far, or those that touched a file")
    tried.add_argument("file", nargs="?", default="")
    tried.add_argument("--verdict", default="")
    tried.add_argument("--patch", action="store_true", help="with the patch, where it is known")
    tried.set_defaults(run=list_tried)
    return top


def selecting(command: argparse.ArgumentParser) -> None:
    """Options that choose attempts."""
    command.add_argument("--task", default="", help="only this task")
    command.add_argument("--candidate", default="")
    command.add_argument("--status", default="")
    command.add_argument("--attempt", type=int)
    chosen = command.add_mutually_exclusive_group()
    chosen.add_argument("--failing", action="store_true")
    chosen.add_argument("--passing", action="store_true")


def rows(name: str) -> Iterator[Row]:
    """The objects of a data file."""
    path = DATA / f"{name}.jsonl"
    if path.is_file():
        with path.open(encoding="utf-8") as lines:
            yield from (json.loads(line) for line in lines if line.strip())


def chosen(args: argparse.Namespace) -> Iterator[Row]:
    """The attempts that the options select."""
    for row in rows("attempts"):
        wanted = {"task": args.task, "candidate": args.candidate, "status": args.status}
        if any(value and row[key] != value for key, value in wanted.items()):
            continue
        if args.attempt is not None and row["attempt"] != args.attempt:
            continue
        if (args.failing and row["resolved"]) or (args.passing and not row["resolved"]):
            continue
        yield row


def head(row: Row) -> str:
    """An attempt in one line."""
    return (
        f"{row['candidate']}:{row['attempt']} {row['task']} {row['status']} "
        f"reward {row['reward']} exit {row['exit_code']} calls {len(row['calls'])} "
        f"tokens {row['tokens']} seconds {row['seconds']}"
    )


def list_attempts(args: argparse.Namespace) -> Iterator[str]:
    """One line for each."""
    return map(head, chosen(args))


def show_attempts(args: argparse.Namespace) -> Iterator[str]:
    """The parts that were asked for."""
    for row in chosen(args):
        yield f"=== {head(row)}"
        yield from texts(row, args.part, args.calls)


def texts(row: Row, part: str, span: str = ":") -> Iterator[str]:
    """An attempt's texts, part by part."""
    for name in ("instruction", "detail", "report", "stderr", "stdout"):
        if part in ("all", name) and row[name]:
            yield f"--- {name}\n{row[name]}"
    if part in ("all", "changed"):
        yield from (f"--- changed {name}\n{text}" for name, text in row["changed"].items())
    if part in ("all", "calls", "last"):
        low, _, high = span.partition(":")
        window = slice(int(low) if low else None, int(high) if high else None)
        numbered = list(enumerate(row["calls"]))[window]
        for number, call in numbered[-1:] if part == "last" else numbered:
            yield call_text(number, call)


def call_text(number: int, call: Row) -> str:
    """One call: request and reply."""
    said = [
        f"--- call {number}: HTTP {call['status']}, {call['seconds']} s, "
        f"{call['input_tokens']} in, {call['output_tokens']} out"
    ]
    for message in call["messages"] or ():
        said.append(f"[{message.get('role')}] {plain(message.get('content'))}")
        if message.get("tool_calls"):
            said.append(json.dumps(message["tool_calls"], ensure_ascii=False))
    reply = call["reply"]
    if isinstance(reply, list):
        for choice in reply:
            message = choice.get("message") or {}
            said.append(f"[reply, {choice.get('finish_reason')}] {plain(message.get('content'))}")
            if message.get("tool_calls"):
                said.append(json.dumps(message["tool_calls"], ensure_ascii=False))
    else:
        said.append(f"[reply] {json.dumps(reply, ensure_ascii=False)}")
    return "\n".join(said)


def plain(content: object) -> str:
    """A message's content as text."""
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def grep_attempts(args: argparse.Namespace) -> Iterator[str]:
    """Matching lines under their attempt."""
    wanted = re.compile(args.pattern)
    for row in chosen(args):
        lines = "\n".join(texts(row, "all")).splitlines()
        hits = [line for line in lines if wanted.search(line)]
        if hits:
            yield f"=== {head(row)}"
            yield from hits[:20]


def diff_on_task(args: argparse.Namespace) -> Iterator[str]:
    """Two candidates side by side on one task; by default a failing and a passing attempt."""
    known = [row for row in rows("attempts") if row["task"] == args.task]
    first, second = pick(known, args.one, False), pick(known, args.two or args.one, True)
    if first is None or second is None or first is second:
        yield from map(head, known)
        yield from flips(args.task, {args.one, args.two} - {""})
        return
    yield f"--- {head(first)}"
    yield f"+++ {head(second)}"
    for name in ("report", "stderr", "stdout"):
        yield from delta(name, first[name], second[name])
    for name in sorted({*first["changed"], *second["changed"]}):
        one, two = first["changed"].get(name, ""), second["changed"].get(name, "")
        yield from delta(f"changed {name}", one, two)
    yield from delta("calls", calls_text(first), calls_text(second))
    yield from flips(args.task, {first["candidate"], second["candidate"]})


def calls_text(row: Row) -> str:
    """All calls of an attempt."""
    return "\n".join(call_text(number, call) for number, call in enumerate(row["calls"]))


def pick(known: list[Row], name: str, resolved: bool) -> Row | None:
    """The attempt that a name means; of a candidate one that failed, or that passed."""
    candidate, _, number = name.partition(":")
    found = [row for row in known if not candidate or row["candidate"] == candidate]
    if number:
        return next((row for row in found if str(row["attempt"]) == number), None)
    ranked = sorted(found, key=lambda row: row["resolved"] is not resolved)
    return ranked[0] if ranked else None


def delta(name: str, one: str, two: str) -> Iterator[str]:
    """A unified diff of two texts, if they differ."""
    lines = list(difflib.unified_diff(one.splitlines(), two.splitlines(), lineterm="", n=2))[2:]
    if lines:
        yield f"@@ {name}"
        yield from lines[:200]


def flips(task: str, candidates: set[str]) -> Iterator[str]:
    """Edits that made a task pass or fail."""
    for edge in rows("edges"):
        if candidates and not candidates & {edge["parent"], edge["child"]}:
            continue
        for word, names in (("solved", edge["flipped_up"]), ("lost", edge["flipped_down"])):
            if task in names:
                yield f"{edge['parent']} -> {edge['child']} {word} it: {edge['title']}"


def list_tried(args: argparse.Namespace) -> Iterator[str]:
    """Edits in order; with a file, those that touched or name it."""
    for edge in rows("edges"):
        words = " ".join((edge["title"], edge["diagnosis"], edge["hypothesis"], edge["patch"]))
        if (args.file and args.file not in words) or (
            args.verdict and edge["verdict"] != args.verdict
        ):
            continue
        effect = ""
        if edge["before"] and edge["after"]:
            before, after = edge["before"]["accuracy"], edge["after"]["accuracy"]
            effect = f" (accuracy {before:.3f} -> {after:.3f})"
        yield f"{edge['parent']} -> {edge['child']} {edge['verdict']}: {edge['title']}{effect}"
        for name in ("diagnosis", "hypothesis", "reason"):
            if edge[name]:
                yield f"    {name}: {edge[name]}"
        if args.patch and edge["patch"]:
            yield edge["patch"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
