"""Judge a folder by the files in it: run as `check.py TESTS LOGS WORKSPACE`, standard library only.

`expected.json` holds `goals`, none of which the untouched workspace meets, and `guards`, things
that must not be broken. The reward is the share of goals met, halved if a guard is broken. The
report says what is wrong and never what would be right.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from pathlib import Path
from typing import Any

MAX_BYTES = 1_000_000


class Wrong(Exception):
    """A check that failed, in public words."""


def read(workspace: Path, path: str) -> str:
    """The text of a regular file inside the workspace; symbolic links are refused."""
    target = workspace
    for part in Path(path).parts:
        target = target / part
        if target.is_symlink():
            raise Wrong(f"{path} is a symbolic link")
    try:
        status = os.lstat(target)
    except OSError:
        raise Wrong(f"{path} is missing") from None
    if not stat.S_ISREG(status.st_mode):
        raise Wrong(f"{path} is not a regular file")
    if status.st_size > MAX_BYTES:
        raise Wrong(f"{path} is too large")
    try:
        return target.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Wrong(f"{path} is not UTF-8 text") from None


def lines_of(text: str) -> list[str]:
    """Lines without trailing blanks; blank lines at the end do not count."""
    lines = [line.rstrip() for line in text.splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def check_lines(workspace: Path, check: dict[str, Any]) -> None:
    """The file's lines, in order unless `unordered`; `alternatives` are as good."""
    path = check["path"]
    found = lines_of(read(workspace, path))
    accepted = [lines_of(text) for text in [check["text"], *check.get("alternatives", [])]]
    if check.get("unordered"):
        found, accepted = sorted(found), [sorted(lines) for lines in accepted]
    if check.get("ignore_case"):
        found = [line.casefold().strip() for line in found]
        accepted = [[line.casefold().strip() for line in lines] for lines in accepted]
    if found in accepted:
        return
    if not found:
        raise Wrong(f"{path} is empty")
    if all(len(found) != len(lines) for lines in accepted):
        raise Wrong(f"{path}: wrong number of lines ({len(found)})")
    if any(sorted(found) == sorted(lines) for lines in accepted):
        raise Wrong(f"{path}: the lines are in the wrong order")
    raise Wrong(f"{path}: wrong content")


def check_absent(workspace: Path, check: dict[str, Any]) -> None:
    """Nothing stands at the path any more."""
    if os.path.lexists(workspace / check["path"]):
        raise Wrong(f"{check['path']} is still there")


def check_moved(workspace: Path, check: dict[str, Any]) -> None:
    """The file stands at `path` with its content, and no longer at `source`."""
    check_lines(workspace, check)
    if os.path.lexists(workspace / check["source"]):
        raise Wrong(f"{check['source']} is still there")


def check_number(workspace: Path, check: dict[str, Any]) -> None:
    """The file holds one number; units, thousands separators and 12 for 12.0 are fine."""
    path = check["path"]
    text = read(workspace, path)
    numbers = re.findall(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|[-+]?\.\d+", text)
    if not numbers:
        raise Wrong(f"{path} holds no number" if text.strip() else f"{path} is empty")
    if len(numbers) > 1:
        raise Wrong(f"{path} holds {len(numbers)} numbers instead of one")
    value = float(numbers[0].replace(",", ""))
    if abs(value - check["value"]) > check.get("tolerance", 1e-6):
        raise Wrong(f"{path}: wrong number")


def plain(text: str) -> str:
    """A word or phrase without case, outer quotes, trailing stop and doubled blanks."""
    return " ".join(text.split()).strip("\"'`").rstrip(".").casefold()


def check_word(workspace: Path, check: dict[str, Any]) -> None:
    """The file holds one word or phrase out of `accepted`."""
    path = check["path"]
    text = read(workspace, path)
    if not text.strip():
        raise Wrong(f"{path} is empty")
    if plain(text) not in {plain(word) for word in check["accepted"]}:
        many = len(lines_of(text)) > 1
        raise Wrong(f"{path}: several lines instead of one" if many else f"{path}: wrong answer")


def load_object(workspace: Path, path: str) -> dict[str, Any]:
    """The file's JSON object."""
    text = read(workspace, path)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        where = f": line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise Wrong(f"{path} is not valid JSON{where}") from None
    if not isinstance(value, dict):
        raise Wrong(f"{path} is not a JSON object")
    return value


def kind_of(value: object) -> str:
    """The JSON type, in words."""
    names = {bool: "a boolean", str: "a string", list: "a list", dict: "an object"}
    if value is None:
        return "null"
    return names.get(type(value), "a number")


def same(found: object, wanted: object) -> bool:
    """Equal as a person would read it: 12 and 12.0, case and outer blanks do not matter."""
    if kind_of(found) != kind_of(wanted):
        return False
    if isinstance(wanted, str):
        return plain(str(found)) == plain(wanted)
    if isinstance(wanted, list) and isinstance(found, list):
        return len(found) == len(wanted) and all(map(same, found, wanted))
    if isinstance(wanted, int | float) and not isinstance(wanted, bool):
        return abs(found - wanted) <= 1e-6  # type: ignore[operator]
    return found == wanted


def check_key(workspace: Path, check: dict[str, Any]) -> None:
    """One key of a JSON object has one of the `accepted` values."""
    path, key, accepted = check["path"], check["key"], check["accepted"]
    value = load_object(workspace, path)
    if key not in value:
        raise Wrong(f"{path}: key {key} is missing")
    if any(same(value[key], wanted) for wanted in accepted):
        return
    wanted_kind, found_kind = kind_of(accepted[0]), kind_of(value[key])
    if wanted_kind != found_kind:
        raise Wrong(f"{path}: key {key}: expected {wanted_kind}, found {found_kind}")
    raise Wrong(f"{path}: key {key}: wrong value")


CHECKS = {
    "lines": check_lines,
    "absent": check_absent,
    "moved": check_moved,
    "number": check_number,
    "word": check_word,
    "key": check_key,
}


def problems(workspace: Path, checks: list[dict[str, Any]]) -> list[str]:
    """Public words for every check that failed."""
    found = []
    for check in checks:
        try:
            CHECKS[check["kind"]](workspace, check)
        except Wrong as wrong:
            found.append(str(wrong))
    return found


def judge(expected: dict[str, Any], workspace: Path) -> tuple[float, str]:
    """The reward and the report."""
    goals = expected["goals"]
    missed = problems(workspace, goals)
    broken = problems(workspace, expected.get("guards", []))
    reward = (len(goals) - len(missed)) / len(goals)
    if broken:
        reward /= 2
    lines = [f"{len(goals) - len(missed)} of {len(goals)} checks passed"]
    lines += dict.fromkeys(missed)
    lines += [f"changed by mistake: {words}" for words in dict.fromkeys(broken)]
    return reward, "\n".join(lines) + "\n"


def main(tests: str, logs: str, workspace: str) -> None:
    """Write reward.json and report.txt into `logs`."""
    expected = json.loads((Path(tests) / "expected.json").read_text())
    reward, report = judge(expected, Path(workspace))
    (Path(logs) / "report.txt").write_text(report)
    (Path(logs) / "reward.json").write_text(json.dumps({"reward": reward}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
