"""What the techniques do inside a harness, one at a time, in a folder of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from milo.agents.operators.techniques import runs, workspace
from milo.agents.operators.techniques.blocks import best_block, blocks_in
from milo.agents.operators.techniques.context import description, with_files
from milo.agents.operators.techniques.direct import plain_answers
from milo.agents.operators.techniques.examples import with_examples
from milo.agents.operators.techniques.history import with_recent
from milo.agents.operators.techniques.planning import with_plan
from milo.agents.operators.techniques.printing import saved_output
from milo.agents.operators.techniques.programs import python_programs, with_imports
from milo.agents.operators.techniques.rewriting import redefined_code
from milo.agents.operators.techniques.stopping import stop_when_done
from milo.agents.operators.techniques.tries import retry_errors, verified
from milo.agents.operators.techniques.voting import majority


@pytest.fixture(autouse=True)
def fresh_runs() -> Iterator[None]:
    yield
    runs.runs.clear()
    runs.trial[0] = 0


def plain(reply: str) -> str:
    return reply


def run(script: str) -> None:
    runs.recorded_run(["bash", "-c", script], text=True, capture_output=True)


def test_an_unclosed_fence_and_shell_prompts_are_read() -> None:
    assert best_block(plain)("Sure:\n```bash\n$ ls\n$ pwd\n") == "ls\npwd\n"


def test_the_longest_shell_block_is_preferred_and_prose_is_left_to_the_harness() -> None:
    reply = "```bash\nls\n```\n```json\n{}\n```\n```sh\nls -l | wc -l\n```"
    assert best_block(plain)(reply) == "ls -l | wc -l\n"
    assert best_block(plain)("just ls") == "just ls"
    assert [block.language for block in blocks_in(reply)] == ["bash", "json", "sh"]


def test_a_python_block_runs_as_a_program_and_a_shell_block_as_before() -> None:
    script = python_programs(plain)("```python\nprint(6 * 7)\n```")
    out = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert out.stdout == "42\n"
    assert python_programs(lambda reply: "shell")("```bash\nls\n```") == "shell"
    assert python_programs(lambda reply: "shell")("DONE") == "shell"


def test_plain_json_goes_to_the_one_missing_file(folder: Path) -> None:
    (folder / "in.txt").write_text("1")
    run(plain_answers(plain)('Here:\n```json\n{"a": 1}\n```'))
    assert (folder / "out.txt").read_text() == '{"a": 1}\n'
    assert plain_answers(plain)("```bash\nls\n```") == "```bash\nls\n```"


def test_a_redefined_function_replaces_the_old_one_in_its_file(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "task.md").write_text("`lib.py` is wrong: double() must double.")
    (folder / "lib.py").write_text(
        "X = 1\n\n\ndef double(n):\n    return n\n\n\ndef other():\n    pass\n"
    )
    run(redefined_code(plain)("```python\nimport math\ndef double(n):\n    return 2 * n\n```"))
    text = (folder / "lib.py").read_text()
    assert "return 2 * n" in text and "def other" in text and text.startswith("import math")
    assert redefined_code(plain)("```python\ndef new():\n    pass\n```").startswith("```")


def test_a_failed_run_is_tried_again_from_the_first_state_with_the_error(folder: Path) -> None:
    tasks = []

    @retry_errors(tries=1)
    def solve(task: str) -> str:
        tasks.append(task)
        run("echo 3 > out.txt" if len(tasks) > 1 else "touch junk; nonsense")
        return f"try {len(tasks)}"

    assert solve("Do it.") == "try 2"
    assert tasks[0] == "Do it." and "nonsense: command not found" in tasks[1]
    assert sorted(path.name for path in folder.iterdir()) == ["out.txt"]


def test_the_better_of_two_tries_is_kept(folder: Path) -> None:
    (folder / "in.txt").write_text("1")
    calls = []

    @verified(tries=1)
    def solve() -> None:
        calls.append(workspace.task_text())
        if len(calls) == 1:
            (folder / "notes.json").write_text("{")

    solve()
    assert len(calls) == 2 and "out.txt was not written" in calls[1]
    assert "does not parse" in calls[1]


def test_verification_stops_when_nothing_is_wrong(folder: Path) -> None:
    (folder / "in.txt").write_text("1")
    calls = []

    @verified(tries=3)
    def solve(task: str) -> None:
        calls.append(task)
        (folder / "out.txt").write_text("1")

    solve("x")
    assert len(calls) == 1


def test_no_further_try_starts_without_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILO_DEADLINE", "5")
    calls = []
    verified(tries=3)(calls.append)("x")
    assert len(calls) == 1


def test_the_majority_of_effects_stays_and_agreement_saves_samples(folder: Path) -> None:
    (folder / "in.txt").write_text("1")
    values = iter("7889")

    def solve(task: str) -> None:
        (folder / "out.txt").write_text(next(values))

    majority(samples=3)(solve)("x")
    assert (folder / "out.txt").read_text() == "8"


def test_what_a_clean_run_printed_is_saved_if_one_file_is_missing(folder: Path) -> None:
    (folder / "in.txt").write_text("1")
    saved_output(lambda: run("echo 12"))()
    assert (folder / "out.txt").read_text() == "12\n"
    saved_output(lambda: run("echo 13"))()
    assert (folder / "out.txt").read_text() == "12\n"


def test_a_result_in_the_wrong_file_is_moved_and_the_input_restored(folder: Path) -> None:
    (folder / "in.txt").write_text("1")
    saved_output(lambda: run("echo 5 > in.txt"))()
    assert (folder / "in.txt").read_text() == "1"
    assert (folder / "out.txt").read_text() == "5\n"
    (folder / "out.txt").unlink()
    saved_output(lambda: run("echo 6 > other.txt"))()
    assert sorted(path.name for path in folder.iterdir()) == ["in.txt", "out.txt"]


def test_work_stops_after_a_clean_run_that_leaves_the_files(folder: Path) -> None:
    (folder / "in.txt").write_text("1")
    done = []

    @stop_when_done
    def solve() -> None:
        for script in ("ls", "echo 1 > out.txt", "rm out.txt"):
            run(script)
            done.append(script)

    solve()
    assert done == ["ls"] and (folder / "out.txt").exists()


def test_a_run_that_hangs_is_ended_and_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILO_DEADLINE", "0")
    assert runs.recorded_run([sys.executable, "-c", "while 1: pass"]).returncode == 124
    assert runs.last_fault() == ["stopped after 1 seconds"]


def test_the_folder_is_described_within_bounds_and_named_files_first(folder: Path) -> None:
    (folder / "a.txt").write_text("other\n" * 100)
    (folder / "in.txt").write_text("1\n2\n")
    (folder / "blob").write_bytes(b"\xff\xfe\0")
    text = description(60)
    assert text.index("in.txt:\n```\n1\n2") < text.index("a.txt:\n```")
    assert "blob" in text and len(text) < 300
    shown = with_files([{"role": "user", "content": "task"}], chars=60)
    assert shown[0]["content"].startswith("task\n\nFiles in the folder:")


def test_examples_come_before_the_task_in_messages_and_in_plain_text(folder: Path) -> None:
    (folder / "in.txt").write_text("1")
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "task"}]
    shown = with_examples(messages, language="python", count=2)
    assert [m["role"] for m in shown] == ["system", *("user", "assistant") * 2, "user"]
    assert "```python" in shown[2]["content"] and len(messages) == 2
    assert with_examples("task", language="bash", count=1).endswith("Task: task\nReply:")


@pytest.mark.parametrize(
    ("task", "word"),
    [
        (
            "Tom has 3 bags of 4 nuts and eats 5. Say in `left.txt` how many are left.",
            "stamps = 48",
        ),
        ("Put name and age from `in.txt` in `me.json`.", "json.dump"),
        ("Give all files in this folder another name.", "os.rename"),
        ("How many lines of `in.txt` start with x? To `out.txt`.", "count += 1"),
    ],
)
def test_the_nearest_example_is_shown(task: str, word: str, folder: Path, tmp_path: Path) -> None:
    (folder / "in.txt").write_text("1")
    (tmp_path / "task.md").write_text(task)
    assert word in with_examples(task, language="python", count=1)


def test_a_task_of_another_shape_gets_no_example(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "task.md").write_text("Mend `x.rs`.")
    assert with_examples("Mend `x.rs`.", language="python", count=2) == "Mend `x.rs`."


def test_long_histories_keep_their_start_and_latest_turns() -> None:
    messages = [{"role": "user", "content": str(n)} for n in range(10)]
    assert [m["content"] for m in with_recent(messages, turns=1)] == ["0", "1", "8", "9"]
    assert with_recent("text", turns=1) == "text"


def test_a_plan_is_put_below_the_task() -> None:
    assert with_plan("task", ask=lambda text: "1. go").endswith("task\n\nPlan:\n1. go")


def test_file_names_are_found_without_numbers_or_hosts() -> None:
    text = "Use 3.5 of `a/b.csv`, ./notes.md and /workspace/x.json, e.g. from example.com."
    assert workspace.named_files(text) == ["a/b.csv", "notes.md", "x.json"]


def test_restoring_brings_back_deleted_files_and_removes_new_folders(folder: Path) -> None:
    (folder / "keep.txt").write_text("1")
    before = workspace.snapshot()
    (folder / "keep.txt").unlink()
    (folder / "new").mkdir()
    (folder / "new" / "x").write_text("2")
    workspace.restore(before)
    assert workspace.snapshot() == before and not (folder / "new").exists()


def test_what_was_achieved_stays_when_the_model_refuses_further_calls(folder: Path) -> None:
    def solver(good: str) -> Callable[[str], None]:
        calls = []

        def solve(task: str) -> None:
            calls.append(task)
            if len(calls) > 1:
                raise OSError("429")
            (folder / "half.txt").write_text(good)

        return solve

    verified(tries=2)(solver("1"))("x")
    assert (folder / "half.txt").read_text() == "1"
    majority(samples=3)(solver("2"))("x")
    assert (folder / "half.txt").read_text() == "2"


def test_forgotten_imports_of_known_modules_are_added() -> None:
    assert with_imports("print(math.pi)") == "import math\nprint(math.pi)"
    assert with_imports("import os\nos.getcwd()") == "import os\nos.getcwd()"
    assert with_imports("not python(") == "not python("
