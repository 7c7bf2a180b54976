"""What the drivers of peers do with source before any package of a peer sees it."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from milo.agents.cli.description import PEERS as FOLDER
from milo.agents.cli.description import built_in, load
from milo.agents.peer import PEERS
from milo.agents.peers.milo_peer import bundled, unbundled, worst
from milo.agents.peers.prompt_texts import prompts_of, with_prompts
from milo.app.agents import needs

SOURCE = '''"""A harness."""

NAME = "x"
PROMPT = (
    "Reply with a short script "
    "and nothing else."
)  # the prompt
LIMIT = 3
ÜBER = "ä few wörds möre here"; LAST = "and one more of them"


def main() -> None:
    text = "not at the top level of it"
'''
FILES = {
    "main.py": SOURCE,
    "prompt.md": "Be brief.\n",
    "a.toml": 'PROMPT = "four words are here"\n',
}


def test_prompts_are_files_of_prose_and_constants_of_several_words() -> None:
    assert prompts_of(FILES) == {
        "prompt.md": "Be brief.\n",
        "main.py:PROMPT": "Reply with a short script and nothing else.",
        "main.py:ÜBER": "ä few wörds möre here",
        "main.py:LAST": "and one more of them",
    }


def test_unchanged_prompts_leave_the_source_as_it_is() -> None:
    assert with_prompts(FILES, prompts_of(FILES)) == FILES


@given(st.dictionaries(st.sampled_from(["PROMPT", "ÜBER", "LAST"]), st.text()))
def test_changed_prompts_stand_in_their_constants_and_nothing_else_changes(
    texts: dict[str, str],
) -> None:
    wanted = {f"main.py:{name}": text for name, text in texts.items()}
    made = with_prompts(FILES, wanted)
    namespace: dict[str, object] = {}
    exec(compile(ast.parse(made["main.py"]), "main.py", "exec"), namespace)
    for name, text in texts.items():
        assert namespace[name] == text
    assert (namespace["NAME"], namespace["LIMIT"]) == ("x", 3)
    assert "# the prompt" in made["main.py"] and made["a.toml"] == FILES["a.toml"]


def test_a_prompt_that_is_a_file_is_replaced_whole() -> None:
    assert with_prompts(FILES, {"prompt.md": "Take your time."})["prompt.md"] == "Take your time."


def test_one_file_is_a_program_as_it_is() -> None:
    assert bundled({"main.py": SOURCE}) == SOURCE
    assert unbundled("new", {"main.py": SOURCE}) == {"main.py": "new"}


names = st.lists(st.sampled_from(["a.py", "b/c.py", "d.md", "e.toml"]), min_size=2, unique=True)


lines = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=9))


@given(names, st.data())
def test_several_files_come_back_out_of_their_bundle(files: list[str], data: st.DataObject) -> None:
    made = {name: "".join(f"{line}\n" for line in data.draw(lines)) for name in files}
    assert unbundled(bundled(made), made) == made


@pytest.mark.parametrize(
    "text", ["no mark at all", "# ===== file: a.py =====\n", "# ===== file: z.py =====\nx\n"]
)
def test_a_bundle_that_lost_its_marks_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"the marks name the files"):
        unbundled(text, {"a.py": "", "b.py": ""})


def test_feedback_begins_with_the_worst_task() -> None:
    answer = {
        "refused": "",
        "scores": {"good": 1.0, "bad": 0.0},
        "feedback": {"good": "went well", "bad": "went wrong"},
    }
    assert worst(answer, 100) == "went wrong\n\nwent well"
    assert worst(answer, 4) == "went"
    assert "smoke" in worst({**answer, "refused": "the smoke test fails"}, 100)


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_is_described_and_installed_in_an_environment_of_its_own(name: str) -> None:
    about = load(name)
    assert about.name == name and about.tested in about.install.pip[0]
    assert about.command[1].startswith("/opt/milo-peers/drive_")
    assert (FOLDER / about.command[1].rpartition("/")[2]).is_file()
    assert needs(about, 0).pip == about.install.pip
    assert about.place == ("gepa" if name == "gepa_anything" else name)


def test_every_peer_has_a_description_and_no_other() -> None:
    assert built_in(FOLDER) == tuple(sorted(PEERS))
