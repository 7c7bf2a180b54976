"""The archive of records: append-only, verified on load, never worse."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from milo.core.errors import RecordError
from milo.suites.arena.archive import FILE, Archive, Provenance
from milo.suites.arena.problems.catalogue import candidate_of, problems
from milo.suites.arena.problems.packing import packed, unpacked
from milo.suites.arena.problems.problem import Rejected, verify
from milo.suites.arena.tasks import published

NAME = "erdos-min-overlap"
MADE = Provenance(source="run", when=12.5, candidate="i1.3", attempt="a/b", task=f"{NAME}-001")


def test_a_record_is_kept_with_its_provenance_to_the_last_bit(tmp_path: Path) -> None:
    Archive(tmp_path).add(NAME, published("erdos_haugland_51"), MADE)
    best = Archive(tmp_path).best(NAME)
    assert best is not None
    assert best.value == 0.38092685343308713
    assert np.array_equal(best.construction, published("erdos_haugland_51"))
    assert best.provenance == MADE


def test_a_worse_construction_is_never_entered(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    assert archive.add(NAME, published("erdos_alphaevolve_95"), MADE) is not None
    assert archive.add(NAME, published("erdos_haugland_51"), MADE) is None
    assert archive.add(NAME, published("erdos_alphaevolve_95"), MADE) is None
    assert archive.add(NAME, published("erdos_ttt_600"), MADE) is not None
    assert [len(one.construction) for one in Archive(tmp_path).records] == [95, 600]


def test_a_rejected_construction_leaves_the_archive_as_it_was(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    with pytest.raises(Rejected):
        archive.add(NAME, np.array([1.0, 0.0, 0.0, 0.0]), MADE)
    assert not archive.path.exists()


def test_two_writers_see_each_others_records(tmp_path: Path) -> None:
    first, second = Archive(tmp_path), Archive(tmp_path)
    first.add(NAME, published("erdos_ttt_600"), MADE)
    assert second.add(NAME, published("erdos_alphaevolve_95"), MADE) is None
    assert len(second.records) == 1


def test_a_line_that_was_changed_is_refused_with_its_number(tmp_path: Path) -> None:
    Archive(tmp_path).add(NAME, published("erdos_haugland_51"), MADE)
    file = tmp_path / FILE
    file.write_text(file.read_text().replace("0.38092685343308713", "0.38"))
    with pytest.raises(RecordError, match="line 1"):
        Archive(tmp_path)


def test_a_value_that_another_machine_rounded_otherwise_is_believed(tmp_path: Path) -> None:
    Archive(tmp_path).add(NAME, published("erdos_haugland_51"), MADE)
    file = tmp_path / FILE
    file.write_text(file.read_text().replace("0.38092685343308713", "0.38092685343308724"))
    best = Archive(tmp_path).best(NAME)
    assert best is not None
    assert best.value == 0.38092685343308724


def test_a_worse_record_after_a_better_one_is_refused(tmp_path: Path) -> None:
    lines = []
    for name in ("erdos_ttt_600", "erdos_alphaevolve_95"):
        archive = Archive(tmp_path / name)
        archive.add(NAME, published(name), MADE)
        lines.append(archive.path.read_text())
    (tmp_path / FILE).write_text("".join(lines))
    with pytest.raises(RecordError, match="line 2 can't be trusted: it is no better"):
        Archive(tmp_path)


def test_a_torn_last_line_is_ignored_said_and_cut_off_by_the_next_record(tmp_path: Path) -> None:
    Archive(tmp_path).add(NAME, published("erdos_haugland_51"), MADE)
    with (tmp_path / FILE).open("a") as file:
        file.write('{"construction": "constru')
    archive = Archive(tmp_path)
    assert "torn" in archive.warning
    archive.add(NAME, published("erdos_alphaevolve_95"), MADE)
    lines = (tmp_path / FILE).read_text().splitlines()
    assert [bool(json.loads(line)) for line in lines] == [True, True]


def test_what_can_not_be_read_twice_is_kept_as_it_was_given(tmp_path: Path) -> None:
    """Brought to half its sum, the largest value is 1; brought there once more, it is above."""
    given, problem = np.array([0.616, 0.041, 0.422, 0.191, 0.27]), problems()[NAME]
    found = verify(problem, candidate_of(problem, given))
    with pytest.raises(Rejected, match="leave"):
        verify(problem, candidate_of(problem, found.construction))
    Archive(tmp_path).enter(NAME, found, MADE)
    (kept,) = Archive(tmp_path).records
    assert kept.value == found.value
    assert np.array_equal(kept.construction, given)
    assert Archive(tmp_path).add(NAME, kept.construction, MADE) is None


def test_a_whole_last_line_without_its_end_is_kept_and_ended_by_the_next(tmp_path: Path) -> None:
    """Editors leave out the last newline; the record before it is nobody's to lose."""
    archive = Archive(tmp_path)
    archive.add(NAME, published("erdos_haugland_51"), MADE)
    archive.path.write_bytes(archive.path.read_bytes().rstrip(b"\n"))
    opened, beside = Archive(tmp_path), Archive(tmp_path)
    assert (len(opened.records), opened.warning) == (1, "")
    for one, name in ((opened, "erdos_alphaevolve_95"), (beside, "erdos_ttt_600")):
        assert one.add(NAME, published(name), MADE) is not None
    assert [len(one.construction) for one in beside.records] == [51, 95, 600]
    assert [len(one.construction) for one in Archive(tmp_path).records] == [51, 95, 600]
    assert archive.path.read_bytes().endswith(b"\n")


def test_blank_lines_hold_nothing_and_are_counted(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    archive.add(NAME, published("erdos_haugland_51"), MADE)
    line = archive.path.read_text()
    archive.path.write_text(f"\n{line}\r\n")
    assert len(Archive(tmp_path).records) == 1
    archive.path.write_text(f"\n{line}\n[]\n")
    with pytest.raises(RecordError, match="line 4"):
        Archive(tmp_path)


def _without(key: str) -> Callable[[str], bytes]:
    def damaged(line: str) -> bytes:
        data = json.loads(line)
        del data[key]
        return json.dumps(data).encode()

    return damaged


def _with(key: str, value: object) -> Callable[[str], bytes]:
    return lambda line: json.dumps({**json.loads(line), key: value}).encode()


DAMAGES: dict[str, tuple[Callable[[str], bytes], str]] = {
    "no source": (_without("source"), "'source'"),
    "no time": (_without("when"), "'when'"),
    "no construction": (_without("construction"), "'construction'"),
    "a time in words": (_with("when", "yesterday"), "'when'"),
    "no time at all": (_with("when", float("nan")), "'when'"),
    "a number for a task": (_with("task", 3), "'task'"),
    "an unknown problem": (_with("construction", packed("p", 1.0, np.ones(3))), "known problem"),
    "nothing packed": (_with("construction", "construction p 1.0 3 ~~"), "known problem"),
    "infinite signs": (
        _with("construction", packed("flat-polynomials", 1.0, np.full(70, np.inf))),
        "place 1 is inf",
    ),
    "a table of integers": (
        _with("construction", packed("difference-bases", 1.0, np.ones((2, 2)))),
        "found list",
    ),
    "no words": (lambda _: b"\xff\xfe", "utf-8"),
    "no JSON": (lambda line: line.encode()[5:], "no JSON"),
    "no object": (lambda _: b"[1]", "JSON object, found list"),
    "a deep nest": (lambda _: b"[" * 100_000, "nested"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_line_is_named_with_what_to_do(tmp_path: Path, name: str) -> None:
    damage, said = DAMAGES[name]
    archive = Archive(tmp_path)
    archive.add(NAME, published("erdos_haugland_51"), MADE)
    line = archive.path.read_text()
    archive.path.write_bytes(line.encode() + damage(line.rstrip("\n")) + b"\n")
    with pytest.raises(RecordError) as caught:
        Archive(tmp_path)
    words = str(caught.value)
    assert words.startswith(f"{archive.path} line 2 can't be trusted: ")
    assert said in words
    assert "Take that line out of the file" in words


def test_packed_lines_are_exact_and_foreign_lines_are_none() -> None:
    array = np.random.default_rng(0).random((7, 3)) * 1e-300
    held = unpacked(packed("p", 0.1, array))
    assert held is not None
    assert held.value == 0.1
    assert np.array_equal(held.construction, array)
    for line in ("", "construction p 0.1 3 !!", "construction p x 3 AA", "construction p 0.1 3 00"):
        assert unpacked(line) is None
