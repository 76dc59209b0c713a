"""The public conformance suite against our servers, over HTTP, as separate processes.

Every scenario of the suite is accounted for: it is run, or it is said why it does not apply to servers that offer tools
alone and answer in text. The tools that some scenarios ask for by name are those of `conformance_server.py`, which is made
and started like ours.
"""

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from forked_process import ForkedProcess
from tools.mcp.npm_packages import CONFORMANCE, NODE, node_modules_with

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
PATIENCE_S = 120


@pytest.fixture(scope="module")
def suite() -> tuple[str, ...]:
    modules = node_modules_with(CONFORMANCE, NODE)
    return str(modules / ".bin" / "node"), str(modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js")


@contextmanager
def running_server(words: Iterable[str], folder: Path) -> Iterator[str]:
    """A server of its own in a folder, and its address."""
    process = ForkedProcess(*words, cwd=folder)
    try:
        assert process.stderr is not None
        said = process.stderr.readline()
        found = re.search(r"http://\S+", said)
        assert found, said + process.stderr.read()
        yield found[0]
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)


def outcomes(suite: tuple[str, ...], url: str, folder: Path) -> dict[str, Counter[str]]:
    """How often each scenario of the suite had which result. One process runs all of them; to start it takes longest."""
    command = [*suite, "server", "--url", url, "--suite", "all", "--output-dir", str(folder)]
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, timeout=PATIENCE_S, check=False)
    return {
        re.sub(r"^server-|-\d{4}-\d\d-\d\dT.*$", "", file.parent.name): Counter(
            check["status"] for check in json.loads(file.read_text("utf-8"))
        )
        for file in folder.glob("*/checks.json")
    }


@pytest.mark.parametrize(
    "server", ["pitboss", pytest.param("hyperliquid-info", marks=pytest.mark.proof), "the suite's tools"]
)
def test_each_of_our_servers_passes_every_scenario_that_applies(
    server: str, suite: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "found").mkdir()
    with running_server(SERVERS[server], tmp_path) as url:
        found = outcomes(suite, url, tmp_path / "found")
    assert found.keys() == {*EVERY_SERVER, *WITH_ITS_TOOLS, *NOT_OFFERED}, "each is run or has a reason not to be"
    scenarios = (*EVERY_SERVER, *WITH_ITS_TOOLS) if server == "the suite's tools" else EVERY_SERVER
    assert [name for name in scenarios if not found[name]["SUCCESS"]] == []
    assert {name: found[name] for name in scenarios if found[name]["FAILURE"] or found[name]["WARNING"]} == {}
