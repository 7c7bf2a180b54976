"""Ways round the generality check that are closed, beside the honest edit that each resembles."""

from __future__ import annotations

import base64
import bz2
import codecs
import gzip
import hashlib
import json
import lzma
import zlib

import pytest

from milo.core.harness import Harness
from milo.core.task import Step, Task
from milo.core.tree import File, FileTree
from milo.search.generality import GeneralityIndex
from milo.search.preflight import check_child

INSTRUCTION = (
    "Count the lines of every log file below the folder inbox and write the total into total.txt, "
    "then move what is older than a week to the archive."
)
STOLEN = "count the lines of every log file below the folder inbox and write"
MANIFEST = 'name = "h"\nentry = "python3 main.py"\n'
PARENT = FileTree.of_texts({"harness.toml": MANIFEST, "main.py": "import json\nprint('hello')\n"})


def task(task_id: str, instruction: str, answer: str) -> Task:
    return Task(
        id=task_id,
        instruction=instruction,
        tests=FileTree.of_texts({"expected.json": json.dumps({"total": answer})}),
    )


TASKS = (
    task("log-count-001", INSTRUCTION, "a1b2c3d4e5f6a7"),
    *(
        task(f"sum-numbers-{n:03}", f"Add the numbers of file {n}.", f"{7000 + n}")
        for n in range(9)
    ),
    task(
        "held-out-044",
        "Name the seven rivers that meet below the old mill of Aren.",
        "q8w7e6r5t4z3",
    ),
)
INDEX = GeneralityIndex(TASKS, held_out={"held-out-044"})
STARTS = (
    "count the lines of every log",
    "file below the folder inbox and",
    "write the total into total txt",
    "then move what is older than",
)


def edited(text: str, **files: File) -> FileTree:
    child = PARENT.with_texts({"main.py": f"import json\nprint('hello')\n{text}\n"})
    return FileTree({**child, **files})


def matched(text: str, **files: File) -> list[str]:
    return [f"{h.line}: {h.matched}" for h in INDEX.scan([PARENT], edited(text, **files))]


def spelled(text: str) -> str:
    return repr([ord(c) for c in text])


EVASIONS = {
    "added pieces": f"x = {STOLEN[:20]!r} + {STOLEN[20:40]!r} + ({STOLEN[40:]!r})",
    "a joined list": f"x = ' '.join({STOLEN.split()!r})",
    "joined over many lines": "x = ' '.join([\n" + ",\n".join(map(repr, STOLEN.split())) + "\n])",
    "backwards": f"x = {STOLEN[::-1]!r}[::-1]",
    "reversed": f"x = ''.join(reversed({STOLEN[::-1]!r}))",
    "numbers of characters": f"x = ''.join(map(chr, {spelled(STOLEN)}))",
    "numbers in a loop": f"x = ''.join(chr(c) for c in {spelled(STOLEN)})",
    "bytes of numbers": f"x = bytes({spelled(STOLEN)}).decode()",
    "a formatted text": f'x = f"{STOLEN[:30]}{{{STOLEN[30:]!r}}}"',
    "base64": f"x = {base64.b64encode(STOLEN.encode()).decode()!r}",
    "base64 for addresses": f"x = {base64.urlsafe_b64encode(STOLEN.encode()).decode()!r}",
    "base64 of base64": f"x = {base64.b64encode(base64.b64encode(STOLEN.encode())).decode()!r}",
    "hexadecimal": f"x = {STOLEN.encode().hex()!r}",
    "compressed": f"x = {base64.b64encode(zlib.compress(STOLEN.encode())).decode()!r}",
    "bzip2": f"x = {base64.b64encode(bz2.compress(STOLEN.encode())).decode()!r}",
    "an id in pieces": "x = 'log-' + 'count-' + '001'",
    "an id with other joiners": "x = 'LOG_COUNT_001'",
    "an id with an ending": "x = open('log-count-001.json')",
    "a hash of the instruction": f"x = {hashlib.sha256(INSTRUCTION.encode()).hexdigest()!r}",
    "the start of a hash": f"x = {hashlib.md5(INSTRUCTION.encode()).hexdigest()[:16]!r}",
    "a checksum": f"x = {zlib.crc32(INSTRUCTION.encode())}",
    "an answer in pieces": "x = 'a1b2c3d' + '4e5f6a7'",
    "a table of answers": "x = {1: 7001, 2: 7002, 5: 7005, 8: 7008}",
    "words between lines of the parent": "\nprint('hello')\n".join(f"# {s}" for s in STARTS),
}


@pytest.mark.parametrize("way", EVASIONS)
def test_a_way_round_the_check_is_found(way: str):
    assert matched(EVASIONS[way]) != []


@pytest.mark.parametrize(
    "pack", [gzip.compress, bz2.compress, lzma.compress, zlib.compress], ids=lambda p: p.__module__
)
def test_a_packed_file_is_looked_into(pack):
    found = matched("", **{"data.bin": File(pack(STOLEN.encode()))})
    assert any("count the lines" in hit for hit in found)


def test_data_that_nobody_can_read_is_refused():
    noise = hashlib.shake_256(b"seed").digest(600)
    assert matched("", **{"w.bin": File(noise)}) == ["1: data that nobody can read"]
    assert matched(f"x = {base64.b64encode(noise).decode()!r}") == [
        "3: encoded data that is no text"
    ]


def test_a_file_named_by_a_task_is_found():
    assert matched("", **{"log-count-001.txt": File(b"x\n")}) != []


HONEST = {
    "code": "def run(path):\n    return [line.strip() for line in open(path) if line.strip()]",
    "numbers": "LIMITS = [1024, 2048, 4096, 7001, 7002, 8080]\nSIZE = 65536",
    "a prompt": "SYSTEM = 'Read the task with care, list the files first, then write the result.'",
    "pieces": "HEAD = 'Reply with one ' + 'short command ' + 'and nothing else, please.'",
    "a pattern": "import re\nP = re.compile(r'[A-Za-z0-9_]{16,}|```(?:bash|sh)?\\\\n(.*?)```')",
    "long names": "the_longest_name_of_all_in_this_program = 'aGVsbG8gd29ybGQgYWdhaW4h'",
    "another alphabet": f"x = {codecs.encode('nothing of any task', 'rot13')!r} + 'ümläut — naïve'",
    "no python": "def broken(:\n    'count' + 'the'",
}


@pytest.mark.parametrize("edit", HONEST)
def test_an_honest_edit_is_left_alone(edit: str):
    assert matched(HONEST[edit]) == []


def test_what_stands_in_a_parent_is_not_new_however_it_is_made():
    parent = edited(EVASIONS["added pieces"])
    child = parent.with_texts({"lib.py": "print(1)\n"})
    assert INDEX.scan([parent], child) == ()


def test_steps_hide_their_answers_too():
    step = Step(name="one", instruction="i", tests=FileTree.of_texts({"e": "z9y8x7w6v5u4"}))
    index = GeneralityIndex([Task(id="in-steps-1", instruction="i", steps=(step,))])
    assert len(index.scan([PARENT], edited("x = 'z9y8x7w6v5u4'"))) == 1


def test_a_mutator_learns_neither_name_nor_words_of_a_task_that_is_held_out():
    child = edited("# the seven rivers that meet below the old mill of Aren\nx = 'held-out-044'")
    refusal = check_child([Harness.from_tree(PARENT)], child, INDEX)
    assert "held-out-044" in refusal.full and "seven rivers" in refusal.full
    assert "held-out-044" not in refusal.reason and "rivers" not in refusal.reason
    assert "main.py:3" in refusal.reason
    mixed = edited("x = [7001, 7002, 7003, 'held-out-044']")
    told = check_child([Harness.from_tree(PARENT)], mixed, INDEX).reason
    assert "held-out-044" not in told


def test_a_table_that_touches_the_held_out_tasks_shows_no_value():
    index = GeneralityIndex(TASKS, held_out={"sum-numbers-001"})
    (hit,) = index.scan([PARENT], edited("x = {1: 7001, 2: 7002, 5: 7005, 8: 7008}"))
    assert "7001" in str(hit) and "7001" not in hit.public
