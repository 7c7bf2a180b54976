"""`milo arena verify` and `export`: files in and out, to the last bit, and what is said of them."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from milo.app.arena import export_text, verify_text
from milo.app.cli import OK, USER_ERROR, build_parser, main
from milo.app.config import compose
from milo.core.errors import ConfigError, UserError
from milo.suites.arena.archive import Archive, Provenance
from milo.suites.arena.problems.catalogue import problems
from milo.suites.arena.problems.problem import Problem
from milo.suites.arena.tasks import published, start_of

pytestmark = pytest.mark.usefixtures("workdir")

OVERLAP, PACKING = "erdos-min-overlap", "circle-packing"
HAUGLAND, ALPHA, TTT = "erdos_haugland_51", "erdos_alphaevolve_95", "erdos_ttt_600"
BEST = 0.3808753232177187
"""The value of TTT."""


def made(task: str = "") -> Provenance:
    return Provenance(source="file", when=1.0, task=task)


# --- verify ------------------------------------------------------------------------------------


def written(name: str, problem: str = "") -> Path:
    file = Path(f"{name}.json")
    data = {"values": published(name).tolist(), **({"problem": problem} if problem else {})}
    file.write_text(json.dumps(data))
    return file


def test_a_file_is_judged_by_both_verifiers_and_compared() -> None:
    said = verify_text(written(TTT), OVERLAP, keep=False)
    assert f"{OVERLAP}: {BEST!r} (minimise)" in said
    assert "against MILO paper" in said
    assert "not enough" in said
    assert "proof" not in said
    assert verify_text(written(ALPHA, OVERLAP), "", keep=False).startswith(OVERLAP)


def test_a_file_that_beats_a_published_value_comes_with_its_proof(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    weaker = {OVERLAP: _weaker()}
    monkeypatch.setattr("milo.app.arena.problems", lambda: weaker)
    assert "proof that it is better: exact" in verify_text(written(ALPHA), OVERLAP, keep=False)


def _weaker() -> Problem:
    whole = problems()[OVERLAP]
    return replace(whole, published=whole.published[:1])


def test_a_value_within_the_rounding_of_the_printed_one_is_no_proof(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    weaker = {OVERLAP: _weaker()}
    monkeypatch.setattr("milo.app.arena.problems", lambda: weaker)
    # Haugland's own function lies 3e-12 above what he printed; the other way round is a margin.
    said = verify_text(written(HAUGLAND), OVERLAP, keep=False)
    assert "not enough" in said


def test_what_can_not_be_read_twice_is_verified_kept_and_exported(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Brought to half its sum twice, this construction would leave the range."""
    given = [0.616, 0.041, 0.422, 0.191, 0.27]
    Path("file.json").write_text(json.dumps({"problem": OVERLAP, "values": given}))
    assert main(["arena", "verify", "file.json", "--keep"]) == OK
    assert "entered" in capsys.readouterr().out
    assert json.loads(export_text(OVERLAP))["values"] == given


def test_keeping_enters_a_file_once() -> None:
    assert "entered" in verify_text(written(ALPHA), OVERLAP, keep=True)
    assert "not better" in verify_text(written(ALPHA), OVERLAP, keep=True)
    best = Archive(Path("arena")).best(OVERLAP)
    assert best is not None
    assert best.provenance.source == f"{ALPHA}.json"


def test_a_problem_that_nobody_names_is_an_error_and_so_is_an_unknown_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = written(TTT)
    with pytest.raises(ConfigError, match="--problem NAME, or a key 'problem'"):
        verify_text(file, "", keep=False)
    with pytest.raises(ConfigError, match="erdos-min-overlap"):
        verify_text(file, "erdos", keep=False)
    assert main(["arena", "verify", str(file)]) == USER_ERROR
    assert "--problem NAME" in capsys.readouterr().err
    assert main(["arena", "verify", str(file), "--problem", OVERLAP]) == OK


@pytest.mark.parametrize(
    "text, said",
    [
        ('{"values": [NaN]}', "one that is refused: it holds NaN; only finite numbers"),
        ('{"values": [0.5, 1e999]}', "the number at place 2 is inf"),
        ('{"values": [0.5, "1"]}', "a number at place 2, found str"),
        ("{", "not JSON"),
    ],
)
def test_why_a_file_is_refused_is_said_in_one_sentence(
    text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("bad.json").write_text(text)
    assert main(["arena", "verify", "bad.json", "--problem", OVERLAP]) == USER_ERROR
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "[1]", '{"values": [NaN]}', '{"values": [2.0]}', "\udcff"])
def test_what_the_arena_would_refuse_is_refused_with_the_file_named(text: str) -> None:
    file = Path("bad.json")
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UserError, match=r"bad\.json"):
        verify_text(file, OVERLAP, keep=False)
    with pytest.raises(UserError, match=r"missing\.json"):
        verify_text(Path("missing.json"), OVERLAP, keep=False)


# --- export ------------------------------------------------------------------------------------


def test_the_best_is_exported_as_the_arenas_json_to_the_last_bit() -> None:
    Archive(Path("arena")).add(OVERLAP, published(TTT), made())
    assert json.loads(export_text(OVERLAP))["values"] == published(TTT).tolist()
    said = export_text(OVERLAP, to=Path("out.json"))
    assert repr(BEST) in said
    assert "against MILO paper (0.3808568)" in said
    whole = {"problem": OVERLAP, "values": published(TTT).tolist()}
    assert json.loads(Path("out.json").read_text()) == whole


@pytest.mark.parametrize("name", problems())
def test_an_exported_file_is_verified_without_naming_its_problem(name: str) -> None:
    archive = Archive(Path("arena"))
    archive.add(name, start_of(problems()[name], 4).construction, made())
    export_text(name, to=Path("out.json"))
    best = archive.best(name)
    assert best is not None
    said = verify_text(Path("out.json"), "", keep=True)
    assert said.startswith(f"{name}: {best.value!r}")
    assert said.endswith("not better than the archive's")


def test_an_export_to_the_terminal_is_json_also_beside_a_plot() -> None:
    Archive(Path("arena")).add(OVERLAP, published(TTT), made())
    assert json.loads(export_text(OVERLAP, plot=Path("out.svg")))["problem"] == OVERLAP
    assert Path("out.svg").exists()


def test_a_problem_without_a_record_or_of_no_name_is_an_error() -> None:
    with pytest.raises(UserError, match=f"a record of {PACKING}"):
        export_text(PACKING)
    with pytest.raises(ConfigError, match="'nothing'"):
        export_text("nothing")


def drawn(name: str) -> list[ElementTree.Element]:
    file = Path("out.svg")
    export_text(name, to=Path("out.json"), plot=file)
    root = ElementTree.fromstring(file.read_text(encoding="utf-8"))
    return [one for one in root if one.tag.split("}")[1] in ("polyline", "circle")]


def test_the_plot_draws_the_record_over_the_construction_it_started_from() -> None:
    Archive(Path("arena")).add(OVERLAP, published(TTT), made(f"{OVERLAP}-000"))
    start, best = drawn(OVERLAP)
    assert len(start.attrib["points"].split()) == 2 * 51
    assert len(best.attrib["points"].split()) == 2 * 600
    assert start.attrib["stroke"] != best.attrib["stroke"]


def test_circles_are_drawn_as_circles_of_their_size_and_a_file_has_no_start() -> None:
    circles = start_of(problems()[PACKING], 1).construction
    Archive(Path("arena")).add(PACKING, circles, made())
    rings = drawn(PACKING)
    assert len(rings) == 26
    radii = np.array([float(ring.attrib["r"]) for ring in rings])
    assert np.allclose(radii / radii.max(), circles[:, 2] / circles[:, 2].max(), atol=1e-3)


@pytest.mark.parametrize("name", problems())
def test_every_problem_can_be_drawn_within_its_frame(name: str) -> None:
    problem = problems()[name]
    construction = start_of(problem, 4).construction
    Archive(Path("arena")).add(name, construction, made(f"{name}-003"))
    marks = drawn(name)
    assert len(marks) == 2 * (1 if construction.ndim == 1 else len(construction))
    for mark in marks:
        numbers = mark.attrib.get("points", "").replace(",", " ").split()
        numbers += [mark.attrib[key] for key in ("cx", "cy") if key in mark.attrib]
        assert all(0 <= float(number) <= 720 for number in numbers)


# --- the page about it -------------------------------------------------------------------------


def test_every_command_of_the_page_is_understood() -> None:
    page = (Path(__file__).parents[3] / "docs" / "arena.md").read_text(encoding="utf-8")
    commands = [line.split("  #")[0] for line in page.splitlines() if line.startswith("milo ")]
    assert {shlex.split(command)[1] for command in commands} == {"run", "arena"}
    for command in commands:
        words = shlex.split(command)[1:]
        if words[0] == "run":
            assert compose(words[1:], environ={}).suite.name == "arena"
        else:
            build_parser().parse_args(words)
