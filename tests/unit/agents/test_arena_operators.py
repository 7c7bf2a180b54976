"""The mutator of optimizer programs: reads schedules, edits them, explains itself."""

from __future__ import annotations

import ast

import numpy as np

from milo.agents.arena_operators.edits import crossed, drop, insert, reshare, swap, tune
from milo.agents.arena_operators.program import Program, read_program
from milo.core.tree import FileTree

MOVES = '''
def climb(state, seconds: float, rate: float = 0.1, steps: int = 5) -> None:
    """Climb."""

def leap(state, seconds: float, size: float = 0.5) -> None:
    """Leap."""

def _hidden(state, seconds: float) -> None:
    pass

def helper(state) -> None:
    pass
'''
SCHEDULE = '"""About."""\n\nSCHEDULE = [{"move": "climb", "rate": 0.2}]\n\nAFTER = 1\n'


def program() -> Program:
    found = read_program(FileTree.of_texts({"moves.py": MOVES, "schedule.py": SCHEDULE}))
    assert found is not None
    return found


def test_a_program_is_read_from_its_source() -> None:
    found = program()
    assert found.moves == {"climb": {"rate": 0.1, "steps": 5}, "leap": {"size": 0.5}}
    assert found.schedule == ({"move": "climb", "rate": 0.2},)


def test_what_is_no_optimizer_program_is_none() -> None:
    assert read_program(FileTree.of_texts({"main.py": "print(1)"})) is None
    wrong = SCHEDULE.replace("climb", "fly")
    assert read_program(FileTree.of_texts({"m.py": MOVES, "s.py": wrong})) is None
    assert read_program(FileTree.of_texts({"m.py": MOVES, "s.py": "SCHEDULE = ["})) is None


def test_a_new_schedule_replaces_the_old_and_nothing_else() -> None:
    tree = program().with_schedule(({"move": "leap", "size": 0.25}, {"move": "climb"}))
    text = tree.text("schedule.py")
    assert text.startswith('"""About."""\n')
    assert text.endswith("AFTER = 1\n")
    again = read_program(tree)
    assert again is not None
    assert again.schedule == ({"move": "leap", "size": 0.25}, {"move": "climb"})
    ast.parse(text)


def test_every_edit_gives_a_schedule_that_can_be_read_again() -> None:
    rng = np.random.default_rng(0)
    schedule = program().schedule
    done = set()
    for k in range(300):
        edit = (tune, insert, reshare, swap, drop)[k % 5]
        edited = edit(program(), schedule, rng)
        if edited is None:
            continue
        done.add(edit.__name__)
        schedule = edited.schedule
        again = read_program(program().with_schedule(schedule))
        assert again is not None
        assert again.schedule == schedule
        assert edited.title
    assert done == {"tune", "reshare", "insert", "drop", "swap"}


def test_a_graft_joins_moves_of_both_parents() -> None:
    mine, other = ({"move": "climb"},), ({"move": "leap"},)
    assert crossed(mine, other, np.random.default_rng(0)).schedule == (*mine, *other)
