"""Each attack scores 0, the honest twin 1 on the very same task."""

from __future__ import annotations

import asyncio
import http.server
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from milo.core.attempt import Status
from milo.core.ports import AttemptResult
from milo.rollout.integrity import LEFT_LINK, WROTE_LOGS, WROTE_TESTS
from milo.testing.sorting import HONEST, sorting_task

Attempt = Callable[..., Awaitable[AttemptResult]]

EARLY_REWARD = """
import json, os
for name, text in (("reward.json", '{"reward": 1}'), ("reward.txt", "1")):
    with open(os.environ["MILO_LOGS"] + "/verifier/" + name, "w") as f: f.write(text)
"""
INFINITE_REWARD = EARLY_REWARD.replace('"1"', '"inf"').replace(": 1}", ": Infinity}")
PLANTED_TESTS = """
import os
for name in ("test.sh", "expected.json"):
    with open("/tests/" + name, "w") as f: f.write("[]")
open("answer.json", "w").write("[]")
"""
READS_TESTS = """
import os, shutil
for folder in ("/tests", "/proc/1/root/tests", os.environ["MILO_TESTS"]):
    try: shutil.copy(folder + "/expected.json", "answer.json")
    except OSError as error: print(error)
"""
BACKGROUND = """
import subprocess, time
edit = '''
import os, time, json
for _ in range(400):
    try:
        open("answer.json", "w").write(open("/tests/expected.json").read())
        open("/logs/verifier/reward.json", "w").write(json.dumps({"reward": 1}))
    except OSError: pass
    time.sleep(0.01)
'''
subprocess.Popen(["python3", "-c", edit], start_new_session=True)
"""
LINKS = {
    "absolute": "os.symlink('/tests/expected.json', 'answer.json')",
    "relative": "os.symlink('../tests/expected.json', 'answer.json')",
    "through_proc": "os.symlink('/proc/self/root/tests/expected.json', 'answer.json')",
    "through_a_folder": "os.symlink('/tests', 't'); os.symlink('t/expected.json', 'answer.json')",
    "through_a_climb": "os.makedirs('a/b'); os.symlink('../..', 'a/b/c');"
    "os.symlink('a/b/c/../tests/expected.json', 'answer.json')",
}
SHADOWS = """
fake = '''
import os
open(os.environ["MILO_LOGS"] + "/verifier/reward.json", "w").write('{"reward": 1}')
os._exit(0)
'''
import os
for name in ("sitecustomize.py", "usercustomize.py", "json.py", "os.py"):
    open(name, "w").write(fake)
site = os.path.expanduser("~/.local/lib/python3.11/site-packages")
os.makedirs(site)
open(site + "/usercustomize.py", "w").write(fake)
open(os.path.expanduser("~/.profile"), "w").write("echo 1 > /logs/verifier/reward.txt; exit 0")
"""
EDITS_ITSELF = """
import os
for path in (__file__, "/harness/main.py", "/harness/harness.toml"):
    try:
        os.chmod(path, 0o777)
    except OSError as error: print("chmod", error)
    try:
        with open(path, "a") as f: f.write("# changed")
        print("EDITED", path)
    except OSError as error: print("write", error)
    try:
        os.replace(path, "/workspace/gone")
        print("EDITED", path)
    except OSError as error: print("move", error)
"""
FETCHES = """
import socket, sys, urllib.request
for url in ("http://127.0.0.1:{port}/answer", "http://{host}:{port}/answer", "http://1.1.1.1/"):
    try:
        open("answer.json", "wb").write(urllib.request.urlopen(url, timeout=2).read())
        print("FETCHED", url)
    except OSError as error: print(error)
"""
FINDS_MILO = """
import os, sys
found = [p for r in ("/usr", "/opt", "/root", "/home", "/work") for p, _, names in os.walk(r)
         if os.path.basename(p) == "milo" and "__init__.py" in names]
try:
    import milo.suites
    found.append("importable")
except ImportError: pass
print(found)
"""
KILLS_THE_METER = """
import os, signal
open("answer.json", "w").write("[]")
for pid in [int(p) for p in os.listdir("/proc") if p.isdigit()]:
    if pid != os.getpid():
        try: os.kill(pid, signal.SIGKILL)
        except OSError as error: print(error)
"""
FIFO = "import os; os.mkfifo('answer.json')"


def scored_nothing(result: AttemptResult) -> bool:
    """0, and neither missing nor solved."""
    return result.outcome.reward == 0.0 and not result.outcome.resolved


async def test_the_honest_twin_scores_one(attempt: Attempt) -> None:
    result = await attempt(HONEST)
    assert result.outcome.reward == 1.0 and result.outcome.resolved
    assert result.outcome.flags == ()
    assert result.outcome.status is Status.COMPLETED


@pytest.mark.parametrize("main", [EARLY_REWARD, INFINITE_REWARD], ids=["one", "infinite"])
async def test_writing_reward_files_early_is_flagged(attempt: Attempt, main: str) -> None:
    result = await attempt(main)
    assert scored_nothing(result)
    assert result.outcome.flags == (WROTE_LOGS,)


async def test_a_right_answer_with_a_planted_reward_still_scores_nothing(attempt: Attempt) -> None:
    assert scored_nothing(await attempt(HONEST + EARLY_REWARD))


async def test_planting_tests_is_flagged(attempt: Attempt) -> None:
    result = await attempt(PLANTED_TESTS)
    assert scored_nothing(result)
    assert result.outcome.flags == (WROTE_TESTS,)


async def test_tests_are_not_there_to_be_read_in_the_agent_phase(attempt: Attempt) -> None:
    result = await attempt(READS_TESTS)
    assert scored_nothing(result)
    assert "No such file" in result.trace.stdout


async def test_a_background_process_does_not_live_into_the_verification(attempt: Attempt) -> None:
    assert scored_nothing(await attempt(BACKGROUND, sorting_task(delay_s=0.5)))


@pytest.mark.parametrize("link", LINKS)
async def test_links_to_the_expected_answer_are_cut_and_flagged(
    attempt: Attempt, link: str
) -> None:
    result = await attempt(f"import os\n{LINKS[link]}\n")
    assert scored_nothing(result)
    assert LEFT_LINK in result.outcome.flags


async def test_a_pipe_in_place_of_the_answer_does_not_hang_the_verifier(attempt: Attempt) -> None:
    result = await attempt(FIFO)
    assert scored_nothing(result)
    assert result.outcome.timings.verifier_s < 5


async def test_shadow_modules_do_not_reach_an_isolated_verifier(attempt: Attempt) -> None:
    assert scored_nothing(await attempt(SHADOWS))


async def test_a_harness_cannot_edit_its_own_snapshot(attempt: Attempt) -> None:
    result = await attempt(EDITS_ITSELF)
    assert "EDITED" not in result.trace.stdout
    assert scored_nothing(result)


async def test_the_network_is_out_of_reach(attempt: Attempt) -> None:
    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"[1, 2, 3]")

        def log_message(self, format: str, *arguments: object) -> None:
            return

    with http.server.ThreadingHTTPServer(("0.0.0.0", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        port, host = server.server_address[1], "10.0.0.1"
        result = await attempt(FETCHES.format(port=port, host=host))
        server.shutdown()
        thread.join()
    assert "FETCHED" not in result.trace.stdout
    assert scored_nothing(result)


async def test_another_attempts_workspace_is_out_of_reach(attempt: Attempt, scratch: Path) -> None:
    """The victim holds the right answer while the thief looks for it."""
    victim = HONEST + "import time; time.sleep(1.5)"
    steal = (
        "import glob, shutil\n"
        f"for p in glob.glob('{scratch}/*/workspace/answer.json') + glob.glob('/proc/*/cwd/a*'):\n"
        "    try: shutil.copy(p, 'answer.json'); print('STOLEN')\n"
        "    except (OSError, shutil.SameFileError): pass\n"
    )
    loot, honest = await asyncio.gather(
        attempt("import time; time.sleep(.5)\n" + steal), attempt(victim)
    )
    assert scored_nothing(loot)
    assert "STOLEN" not in loot.trace.stdout
    assert honest.outcome.reward == 1.0


async def test_the_tasks_and_their_generators_cannot_be_imported(attempt: Attempt) -> None:
    result = await attempt(FINDS_MILO)
    assert result.trace.stdout == "[]\n"


async def test_killing_the_meter_ends_the_attempt(attempt: Attempt) -> None:
    result = await attempt(KILLS_THE_METER)
    assert scored_nothing(result)
    assert result.outcome.status in (Status.AGENT_ERROR, Status.COMPLETED)


async def test_nothing_is_left_on_the_host(attempt: Attempt, scratch: Path) -> None:
    for main in (BACKGROUND, FIFO, SHADOWS):
        await attempt(main)
    assert list(scratch.iterdir()) == []
