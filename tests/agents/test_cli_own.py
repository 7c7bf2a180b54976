"""Coding agents that a user describes: programs of any kind, each with a fault of its own."""

from __future__ import annotations

import asyncio
import shutil
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from cli_scene import (
    PRICE,
    SCOPE,
    ScriptedEditor,
    Workshop,
    alive_with,
    brief_of,
    mutator,
    one_file,
    station,
)

from milo.agents.cli.ending import Ending
from milo.agents.cli_agent import AgentFailed, CliAgentMutator, Worked
from milo.app.packages import STAMP, programs_folder
from milo.core.harness import Harness
from milo.core.task import Network, Reach
from milo.core.tree import FileTree
from milo.testing.sandbox_cases import let_others_pass

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")

ASK = """
import json, sys, urllib.request
def ask():
    body = json.dumps({"messages": [{"role": "user", "content": "x"}]}).encode()
    head = {"Content-Type": "application/json", "Authorization": "Bearer " + sys.argv[2]}
    request = urllib.request.Request(sys.argv[1] + "/v1/chat/completions", body, head)
    return json.load(urllib.request.urlopen(request))
"""
APPEND = "open('harness/main.py', 'a').write('# more\\n')\n"


def work(source: str, upstream: ScriptedEditor | None = None, **bounds: object) -> Worked:
    subject = mutator(one_file(ASK + source), upstream or ScriptedEditor(), **bounds)
    return asyncio.run(subject.work(brief_of(), SCOPE))


def propose(source: str, workshop: Workshop | None = None, **bounds: object) -> object:
    subject = mutator(one_file(ASK + source), ScriptedEditor(), **bounds)
    return asyncio.run(subject.propose(brief_of(), workshop or Workshop()))


def test_a_program_of_a_few_lines_is_a_mutator() -> None:
    worked = work("ask()\n" + APPEND)
    assert worked.ended.ending is Ending.FINISHED
    assert worked.left.tree.text("main.py").endswith("# more\n")
    assert worked.run.report.usage.dollars == PRICE


def test_the_packages_of_a_harness_are_there_for_its_smoke_test(tmp_path: Path) -> None:
    """What breaks without it: a mutator is told that a sound child of an expert harness fails."""
    let_others_pass(tmp_path)
    tool = tmp_path / "own-packages" / "bin" / "tool"
    tool.parent.mkdir(parents=True)
    tool.write_text('#!/bin/sh\n[ -f "$1" ] && [ "$MILO_PACKAGES/bin/tool" = "$0" ]\n')
    tool.chmod(0o755)
    stamp = '{"pip": ["a==1"], "npm": [], "python": ""}'
    (tool.parents[1] / STAMP).write_text(stamp)
    manifest = 'name = "h"\nentry = "tool main.py"\nsmoke = "tool main.py"\n'
    texts = {"harness.toml": manifest + '[packages]\npip = ["a==1"]\n', "main.py": "x\n"}
    harness = Harness.from_tree(FileTree.of_texts(texts))
    source = "ask()\n" + APPEND + "import subprocess\nsys.exit(subprocess.call(['milo-smoke']))\n"
    subject = CliAgentMutator(one_file(ASK + source), "own:m", station(ScriptedEditor(), tmp_path))
    worked = asyncio.run(subject.work(brief_of(harness=harness), SCOPE))
    assert worked.run.exit.code == 0, worked.run.exit.stdout
    assert worked.left.tree.text("main.py") == "x\n# more\n"


def test_what_is_left_when_the_time_is_up_is_judged_by_its_smoke_test() -> None:
    source = "ask()\n" + APPEND + "import time\ntime.sleep(60)\n"
    proposal = propose(source, seconds=5)
    assert "unfinished: ran out of time" in proposal.change.title  # type: ignore[attr-defined]
    with pytest.raises(AgentFailed, match=r"ran out of time.*it does not load"):
        propose(source, Workshop(error="it does not load"), seconds=5)


def test_a_daemon_left_behind_dies_with_its_sandbox() -> None:
    mark = "milo-daemon-of-a-test"
    daemon = f"import time; '{mark}'; time.sleep(300)"
    source = (
        "import subprocess\n"
        f"subprocess.Popen([sys.executable, '-c', {daemon!r}], start_new_session=True)\n"
        "ask()\n" + APPEND
    )
    begun = time.monotonic()
    assert work(source).ended.ending is Ending.FINISHED
    assert time.monotonic() - begun < 15
    assert not alive_with(mark)


def test_a_crash_after_an_edit_still_leaves_a_child() -> None:
    proposal = propose("ask()\n" + APPEND + "raise SystemExit(3)\n")
    assert "unfinished: crashed" in proposal.change.title  # type: ignore[attr-defined]


def test_a_program_that_never_asks_its_model_is_told_apart() -> None:
    with pytest.raises(AgentFailed, match="could not reach its model: no config"):
        propose("sys.exit('no config')\n")


def test_a_program_that_is_not_there_is_told_apart() -> None:
    about = one_file("", command=["no-such-program"])
    with pytest.raises(AgentFailed, match="is not installed"):
        asyncio.run(mutator(about, ScriptedEditor()).propose(brief_of(), Workshop()))


def test_its_money_is_a_hard_limit() -> None:
    upstream = ScriptedEditor()
    source = "import time\nwhile True:\n    ask()\n    time.sleep(0.1)\n"
    worked = work(source, upstream, dollars=3 * PRICE, seconds=60)
    assert worked.ended.ending is Ending.CAPPED
    assert worked.run.exit.seconds < 10
    assert upstream.spent.calls < 12


def test_nothing_but_the_gateway_is_reached_and_nothing_secret_is_shown() -> None:
    source = (
        "import os, socket\n"
        "ask()\n"
        "for host in ('127.0.0.1', '10.0.0.1', '1.1.1.1'):\n"
        "    for port in (22, 53, 80):\n"
        "        try:\n"
        "            socket.create_connection((host, port), 0.3)\n"
        "            print('reached', host, port)\n"
        "        except OSError:\n"
        "            pass\n"
        "print('env', sorted(os.environ))\n"
        "print('root', os.listdir('/root') if os.path.isdir('/root') else 'hidden')\n"
    )
    out = work(source).run.exit.stdout
    assert "reached" not in out and "API_KEY" not in out and "root hidden" in out


class Registry(BaseHTTPRequestHandler):
    """A package registry, as far as an agent needs one."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"a package")

    def log_message(self, *words: object) -> None:
        return


def test_a_registry_is_reached_where_the_run_allows_it_and_no_other_host() -> None:
    server = HTTPServer(("127.0.0.1", 0), Registry)
    Thread(target=server.serve_forever, daemon=True).start()
    source = (
        "import os, urllib.error\n"
        "ask()\n"
        "for name in ('no_proxy', 'NO_PROXY'):\n"
        "    os.environ.pop(name, None)\n"
        f"for host in ('127.0.0.1:{server.server_port}', '10.0.0.1'):\n"
        "    try:\n"
        "        print(host, urllib.request.urlopen('http://' + host).read())\n"
        "    except (OSError, KeyError) as error:\n"
        "        print(host, 'refused', error)\n"
    )
    about = one_file(ASK + source)
    allowed = Reach(network=Network.ALLOWLIST, hosts=("127.0.0.1",))
    try:
        told = []
        for reach in (allowed, Reach()):
            subject = CliAgentMutator(about, "own:m", station(ScriptedEditor(), reach=reach))
            told.append(asyncio.run(subject.work(brief_of(), SCOPE)).run.exit.stdout)
    finally:
        server.shutdown()
        server.server_close()
    assert "b'a package'" in told[0] and "10.0.0.1 refused" in told[0]
    assert "a package" not in told[1]


def test_the_tools_of_the_workspace_run_inside() -> None:
    source = (
        "import subprocess\n"
        "ask()\n"
        "def run(*argv):\n"
        "    done = subprocess.run(argv, capture_output=True, text=True)\n"
        "    print(done.returncode, done.stdout, done.stderr)\n"
        "run('milo-smoke')\n"
        "run('milo-evidence', 'list', '--failing')\n"
        "open('harness/main.py', 'a').write('(')\n"
        "run('milo-smoke')\n"
    )
    out = work(source).run.exit.stdout
    assert out.startswith("0 The smoke test passes.")
    assert "c0:0 t1 completed" in out
    assert "1 the smoke command ended with code 1" in out


def test_a_half_written_program_list_is_not_shown(tmp_path: Path) -> None:
    """An agent's folder that does not exist is no mount, and no error of the sandbox's."""
    about = one_file(ASK + "ask()\n" + APPEND)
    subject = CliAgentMutator(about, "own:m", station(ScriptedEditor(), tmp_path / "none"))
    assert asyncio.run(subject.work(brief_of(), SCOPE)).ended.ending is Ending.FINISHED
    assert not (programs_folder() / "own").exists()
