"""The public conformance suite against our servers, over HTTP, as separate processes.

Every scenario of the suite is accounted for: it is run, or it is said why it does not apply to servers that offer tools
alone and answer in text. The tools that some scenarios ask for by name are those of `conformance_server.py`, which is made
and started like ours.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tools.mcp.node import CONFORMANCE, NODE, installed

EVERY_SERVER = (
    "server-initialize",
    "ping",
    "tools-list",
    "dns-rebinding-protection",
    "server-sse-multiple-streams",
    "resources-list",  # the library answers these two with empty lists
    "prompts-list",
)
WITH_ITS_TOOLS = ("tools-call-simple-text", "tools-call-error", "tools-call-with-progress", "json-schema-2020-12")
NOT_OFFERED: Mapping[str, str] = {
    "logging-set-level": "no log is sent to clients; it stays on this machine",
    "tools-call-with-logging": "no log is sent to clients; it stays on this machine",
    "completion-complete": "there are no prompts or resources to complete",
    "tools-call-image": "our tools answer in text",
    "tools-call-audio": "our tools answer in text",
    "tools-call-embedded-resource": "our tools answer in text",
    "tools-call-mixed-content": "our tools answer in text",
    "tools-call-sampling": "our servers ask their client for nothing",
    "tools-call-elicitation": "our servers ask their client for nothing",
    "elicitation-sep1034-defaults": "our servers ask their client for nothing",
    "elicitation-sep1330-enums": "our servers ask their client for nothing",
    "server-sse-polling": "streams are not kept to be taken up again; a run is, by its id",
    "resources-read-text": "there are no resources",
    "resources-read-binary": "there are no resources",
    "resources-templates-read": "there are no resources",
    "resources-subscribe": "there are no resources",
    "resources-unsubscribe": "there are no resources",
    "prompts-get-simple": "there are no prompts",
    "prompts-get-with-args": "there are no prompts",
    "prompts-get-embedded-resource": "there are no prompts",
    "prompts-get-with-image": "there are no prompts",
}
SERVERS = {
    "pitboss": ("-m", "pitboss", "mcp", "serve", "--http", "127.0.0.1:0"),
    "hyperliquid-info": ("-m", "pitboss.server.hyperliquid_info", "--transport", "http", "--port", "0"),
    "the suite's tools": (str(Path(__file__).with_name("conformance_server.py")), "127.0.0.1:0"),
}
QUICK = {
    "pitboss": EVERY_SERVER,
    "hyperliquid-info": ("tools-list",),
    "the suite's tools": WITH_ITS_TOOLS,
}
"""Each scenario once, as all three are made and started alike, and the other program's own part; `make proof` has all."""
PATIENCE_S = 120
AT_ONCE = 4


@pytest.fixture(scope="module")
def suite() -> tuple[str, ...]:
    modules = installed(CONFORMANCE, NODE)
    return str(modules / ".bin" / "node"), str(modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js")


@contextmanager
def served(words: Iterable[str], folder: Path) -> Iterator[str]:
    """A server of its own in a folder, and its address."""
    process = subprocess.Popen([sys.executable, *words], cwd=folder, stderr=subprocess.PIPE, text=True, env=os.environ)
    try:
        assert process.stderr is not None
        said = process.stderr.readline()
        found = re.search(r"http://\S+", said)
        assert found, said + process.stderr.read()
        yield found[0]
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)


def failures(suite: tuple[str, ...], url: str, scenarios: Iterable[str], folder: Path) -> dict[str, str]:
    """What the suite says of the scenarios that do not pass; a few of them run at the same time."""
    waiting, wrong = list(scenarios), {}
    while waiting:
        some, waiting = waiting[:AT_ONCE], waiting[AT_ONCE:]
        running = {
            scenario: subprocess.Popen(
                [*suite, "server", "--url", url, "--scenario", scenario],
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for scenario in some
        }
        for scenario, process in running.items():
            said, _ = process.communicate(timeout=PATIENCE_S)
            if process.returncode or not re.search(r"Passed: ([1-9]\d*)/\1, 0 failed, 0 warnings", said):
                wrong[scenario] = said
    return wrong


@pytest.mark.parametrize(("server", "scenarios"), QUICK.items(), ids=QUICK)
def test_our_servers_pass_each_scenario_that_applies(
    server: str, scenarios: tuple[str, ...], suite: tuple[str, ...], tmp_path: Path
) -> None:
    with served(SERVERS[server], tmp_path) as url:
        assert failures(suite, url, scenarios, tmp_path) == {}


@pytest.mark.proof
@pytest.mark.parametrize("server", SERVERS)
def test_each_of_our_servers_passes_every_scenario(server: str, suite: tuple[str, ...], tmp_path: Path) -> None:
    scenarios = (*EVERY_SERVER, *WITH_ITS_TOOLS) if server == "the suite's tools" else EVERY_SERVER
    with served(SERVERS[server], tmp_path) as url:
        assert failures(suite, url, scenarios, tmp_path) == {}


def test_every_scenario_of_the_suite_is_run_or_has_a_reason_not_to_be(suite: tuple[str, ...]) -> None:
    listed = subprocess.run([*suite, "list"], capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout
    of_servers = listed.partition("Client scenarios")[0]
    assert set(re.findall(r"(?m)^\s+- (\S+)", of_servers)) == {*EVERY_SERVER, *WITH_ITS_TOOLS, *NOT_OFFERED}
