"""What an edit touched: the file, and in Python source the definitions."""

from __future__ import annotations

from milo.core.touched import MOST, touched_between
from milo.core.tree import FileTree

MAIN = "import os\n\nPROMPT = (\n    'a'\n)\n\n@cache\ndef solve():\n    return 1\n\nprint(1)\n"


def edited(before: str, after: str, path: str = "main.py") -> tuple[str, ...]:
    assert before in MAIN
    parent = FileTree.of_texts({path: MAIN, "notes.md": "n"})
    return touched_between(parent, parent.with_texts({path: MAIN.replace(before, after)}))


def test_a_change_in_python_is_told_by_the_definition_that_it_stands_in() -> None:
    assert edited("return 1", "return 2") == ("main.py:solve",)
    assert edited("@cache", "@other") == ("main.py:solve",)
    assert edited("'a'", "'b'") == ("main.py:PROMPT",)
    assert edited("import os", "import os, re") == ("main.py:imports",)
    assert edited("print(1)", "print(2)") == ("main.py",)


def test_a_definition_that_is_new_or_gone_is_told_too() -> None:
    assert edited("print(1)\n", "def other():\n    pass\n\nprint(1)\n") == (
        "main.py:other",
        "main.py",
    )
    assert "main.py:solve" in edited("@cache\ndef solve():\n    return 1\n", "")


def test_other_files_and_source_that_does_not_parse_are_told_as_a_whole() -> None:
    assert edited("'a'", "'b'", path="main.sh") == ("main.sh",)
    assert edited("return 1", "return (") == ("main.py",)
    parent = FileTree.of_texts({"a.py": "x = 1\n"})
    assert touched_between(parent, parent.with_texts({"b.py": "y = 1\n"})) == ("b.py",)
    assert touched_between(parent, parent) == ()


def test_an_edit_of_very_many_parts_is_cut() -> None:
    parent = FileTree.of_texts({f"f{n:02d}.txt": "a" for n in range(MOST + 5)})
    child = FileTree.of_texts({f"f{n:02d}.txt": "b" for n in range(MOST + 5)})
    assert len(touched_between(parent, child)) == MOST
