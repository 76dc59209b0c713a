"""The catalogue: what is shipped, what an operator may write, and how each mistake is answered."""

import sys
from pathlib import Path

import pytest

from pitboss.core.errors import UserError
from pitboss.tools.mcp.catalog import SEARCH_PATH, Catalog, load_catalog, missing_setup, shipped, with_program_path
from pitboss.tools.mcp.server_entry import ServerEntry, ToolPolicy

GOOD = """
format = 1
[servers.mine]
title = "Mine"
transport = "stdio"
argv = ["/usr/bin/env-free-tool", "--flag", "a b; c"]
env = ["MY_TOKEN", "MY_TOKEN"]
[servers.mine.tools]
look = { as_of_safe = true }
find = {}
"""


def load_text(folder: Path, text: str, **options: object) -> Catalog:
    path = folder / "own.toml"
    path.write_text(text, "utf-8")
    return load_catalog(path, **options)  # type: ignore[arg-type]


def load_error(folder: Path, text: str, **options: object) -> UserError:
    with pytest.raises(UserError) as caught:
        load_text(folder, text, **options)
    assert "\n" not in caught.value.message
    return caught.value


def server(*lines: str, name: str = "mine", head: str = 'title = "Mine"\ntransport = "stdio"') -> str:
    return "\n".join([f"[servers.{name}]", head, *lines])


def test_the_shipped_servers_are_these_and_only_ours_is_approved() -> None:
    found = load_catalog()
    assert list(found) == ["coingecko-mcp", "cryptopanic-mcp", "glassnode-mcp", "hyperliquid-info-mcp", "time-mcp"]
    assert [name for name, entry in found.items() if entry.pins] == ["hyperliquid-info-mcp"]
    assert set(found["hyperliquid-info-mcp"].pins) == set(found["hyperliquid-info-mcp"].tools)
    assert all(entry.note and entry.title for entry in found.values())
    assert {found.origin(name) for name in found} == {"shipped"}


def test_remote_servers_have_a_public_https_address_or_say_that_the_operator_must_give_one() -> None:
    for entry in shipped().values():
        if entry.transport == "http":
            assert entry.secret
            assert entry.url.startswith("https://") or "set url in a catalogue of your own" in missing_setup(entry)
    assert missing_setup(shipped()["cryptopanic-mcp"])


def test_no_shipped_tool_claims_to_be_as_of_safe() -> None:
    assert [(name, tool) for name, one in shipped().items() for tool, may in one.tools.items() if may.as_of_safe] == []


def test_our_python_stands_in_front_of_the_shipped_children() -> None:
    found = load_catalog()["time-mcp"]
    assert found.argv == (sys.executable, "-m", "mcp_server_time", "--local-timezone", "UTC")
    assert load_catalog(python="/opt/python")["time-mcp"].argv[0] == "/opt/python"


def test_an_operator_s_server_is_read_as_it_is_written(tmp_path: Path) -> None:
    found = load_text(tmp_path, GOOD)
    assert found["mine"] == ServerEntry(
        id="mine",
        title="Mine",
        argv=("/usr/bin/env-free-tool", "--flag", "a b; c"),
        env=("MY_TOKEN",),
        tools={"find": ToolPolicy(), "look": ToolPolicy(as_of_safe=True)},
    )
    assert found.origin("mine") == "the operator"
    assert len(found) == 6


def test_an_operator_may_complete_a_shipped_server_and_the_list_says_so(tmp_path: Path) -> None:
    found = load_text(tmp_path, '[servers.cryptopanic-mcp]\nurl = "https://news.example.com/mcp"')
    entry = found["cryptopanic-mcp"]
    assert (entry.url, missing_setup(entry), entry.secret) == (
        "https://news.example.com/mcp",
        "",
        "CRYPTOPANIC_API_KEY",
    )
    assert found.origin("cryptopanic-mcp") == "shipped, changed by the operator"


def test_another_program_under_a_shipped_id_loses_the_shipped_approval(tmp_path: Path) -> None:
    found = load_text(tmp_path, '[servers.hyperliquid-info-mcp]\nargv = ["/opt/other"]')
    assert found["hyperliquid-info-mcp"].pins == {}
    kept = load_text(tmp_path, "[servers.hyperliquid-info-mcp]\ntimeout_s = 5")
    assert kept["hyperliquid-info-mcp"].pins == shipped()["hyperliquid-info-mcp"].pins


def test_changing_how_a_server_is_reached_leaves_nothing_of_the_old_way(tmp_path: Path) -> None:
    found = load_text(tmp_path, '[servers.glassnode-mcp]\ntransport = "stdio"\nargv = ["/opt/glassnode"]')
    entry = found["glassnode-mcp"]
    assert (entry.url, entry.secret, entry.argv) == ("", "", ("/opt/glassnode",))


def test_a_bare_name_is_looked_for_in_the_given_folders_alone(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "my-tool"
    program.parent.mkdir()
    program.write_text("#!/bin/true\n")
    program.chmod(0o755)
    entry = ServerEntry("mine", "Mine", argv=("my-tool", "x"), tools={"look": ToolPolicy()})
    assert with_program_path(entry, "/py", f"{SEARCH_PATH}:{program.parent}").argv == (str(program), "x")
    for searched in (SEARCH_PATH, "", "bin", f"./bin:{tmp_path}"):
        assert with_program_path(entry, "/py", searched).argv == ("my-tool", "x")
    assert "give its whole path" in missing_setup(entry)


def test_an_unknown_id_is_answered_with_the_nearest() -> None:
    with pytest.raises(UserError) as caught:
        load_catalog().find("time-mpc")
    assert caught.value.hint == "did you mean time-mcp?"


ARGV = 'argv = ["/bin/x"]'
REMOTE = 'title = "M"\ntransport = "http"\nurl = "https://x.example.com/mcp"'


def test_a_vendor_s_own_header_for_its_key_is_kept_and_goes_with_the_key(tmp_path: Path) -> None:
    assert (load_catalog()["glassnode-mcp"].secret_header, load_catalog()["coingecko-mcp"].secret_header) == (
        "X-Api-Key",
        "",
    )
    found = load_text(
        tmp_path,
        server('secret = "K_KEY"', 'secret_header = "X-Own"', head=REMOTE)
        + '\n[servers.glassnode-mcp]\nurl = "https://proxy.example.com/"\n',
    )
    assert (found["mine"].secret_header, found["glassnode-mcp"].secret_header) == ("X-Own", "X-Api-Key")
    assert load_text(tmp_path, '[servers.glassnode-mcp]\nsecret = ""\n')["glassnode-mcp"].secret_header == ""


@pytest.mark.parametrize(
    ("text", "says", "hint"),
    [
        (server(ARGV, 'comand = "x"'), "servers.mine.comand: no such key", "argv"),
        (server(ARGV, head='titel = "M"\ntransport = "stdio"'), "titel: no such key", "did you mean title?"),
        (server(ARGV, "conccurency = 2"), "no such key", "did you mean concurrency?"),
        (server(ARGV, "[servers.mine.tools]", "x = { as_of_save = true }"), "no such key", "did you mean as_of_safe?"),
        (server('argv = "sh -c ls"'), "valid list", ""),
        (server('argv = ["sh", "-c", "ls"]'), "a shell would read", ""),
        (server('argv = ["/usr/bin/bash"]'), "a shell would read", ""),
        (server('argv = ["./run"]'), "absolute path", ""),
        (server('argv = ["bin/run"]'), "absolute path", ""),
        (server('argv = ["/opt/../bin/x"]'), "plain absolute path", ""),
        (server('argv = ["/bin/x", ""]'), "at least 1 character", ""),
        (server('argv = ["/bin/x", "a\\u0000b"]'), "NUL", ""),
        (server('argv = ["/bin/x", "{home}"]'), "braces", ""),
        (server('argv = ["/bin/x", "{python}"]'), "braces", ""),
        (server('argv = ["{python}3"]'), "braces", ""),
        (server("argv = [1]"), "valid string", ""),
        (server(ARGV, 'env = ["LD_PRELOAD"]'), "LD_PRELOAD is never passed", ""),
        (server(ARGV, 'env = ["PYTHONPATH"]'), "never passed", ""),
        (server(ARGV, 'env = ["NODE_OPTIONS"]'), "never passed", ""),
        (server(ARGV, 'env = ["DYLD_INSERT_LIBRARIES"]'), "never passed", ""),
        (server(ARGV, 'env = ["BASH_ENV"]'), "never passed", ""),
        (server(ARGV, 'env = ["PITBOSS_SECRET_KEY"]'), "never passed", ""),
        (server(ARGV, 'env = ["path"]'), "match pattern", ""),
        (server(ARGV, 'env = ["A=B"]'), "match pattern", ""),
        (server(ARGV, 'env = ["A\\n"]'), "match pattern", ""),
        (server(ARGV, 'url = "https://x.example.com/"'), "has no effect for transport stdio", ""),
        (server(ARGV, 'secret_header = "X-Api-Key"'), "has no effect for transport stdio", ""),
        (server('secret = "K_KEY"', 'secret_header = "X Api"', head=REMOTE), "match pattern", ""),
        (server('secret = "K_KEY"', 'secret_header = "X:y\\r\\nHost"', head=REMOTE), "match pattern", ""),
        (server('secret = "K_KEY"', 'secret_header = "Host"', head=REMOTE), "not a header for a key", ""),
        (server('secret = "K_KEY"', 'secret_header = "mcp-session-id"', head=REMOTE), "not a header for a key", ""),
        (server('secret_header = "X-Api-Key"', head=REMOTE), "no secret to send", "secret"),
        (server(ARGV, "timeout_s = 0"), "greater than 0", ""),
        (server(ARGV, "timeout_s = nan"), "", ""),
        (server(ARGV, "concurrency = 1000"), "less than or equal to 64", ""),
        (server(ARGV, "loopback = 1"), "valid boolean", ""),
        (server(ARGV, "[servers.mine.pins]", f'x = "{"0" * 64}"'), "not among the tools", ""),
        (server(ARGV, "[servers.mine.tools]", '"a b" = {}'), "match pattern", ""),
        (server(ARGV, "[servers.mine.tools]", f"{'x' * 64} = {{}}"), "64 in all", ""),
        (server(ARGV, head='title = "M"'), "transport: is missing", ""),
        (server(ARGV, head='title = "M\\u202e"\ntransport = "stdio"'), "cannot be seen", ""),
        (server(head='title = "M"\ntransport = "http"\nurl = "http://127.0.0.1/mcp"'), "this machine", ""),
        (server(head='title = "M"\ntransport = "http"\nurl = "http://mcp.example.com/"'), "only https", ""),
        (server(head='title = "M"\ntransport = "http"\nargv = ["/bin/x"]'), "has no effect for transport http", ""),
        (server(head='title = "M"\ntransport = "websocket"'), "'stdio', 'sse' or 'http'", ""),
        (server(ARGV, name='"Mine"'), "cannot be an id", ""),
        (server(ARGV, name='"../mine"'), "cannot be an id", ""),
        (server(ARGV, name='"mine\\n"'), "cannot be an id", ""),
        (server(ARGV, name='"tіme-mcp"'), "cannot be an id", ""),
        (server(ARGV, name="a" * 32), "cannot be an id", ""),
        (server(ARGV) + "\n" + server(ARGV), "not TOML", ""),
        ("servers = 3", "servers are not tables", ""),
        ("[servers]\nmine = 3", "servers are not tables", ""),
        ("server = {}", "unknown key server", "did you mean servers?"),
        ("format = 2", "format 2 is not known", ""),
        ("[servers.mine", "not TOML", ""),
        (server(f"concurrency = {'9' * 5_000}"), "not TOML", ""),
        (server(f"note = {'[' * 5_000}"), "not TOML", ""),
    ],
)
def test_a_mistake_is_refused_with_its_place(tmp_path: Path, text: str, says: str, hint: str) -> None:
    error = load_error(tmp_path, text)
    assert says in error.message
    assert hint in error.hint
    assert str(tmp_path) in error.message


def test_a_provider_s_key_is_never_handed_to_a_server(tmp_path: Path) -> None:
    remote = server(head='title = "M"\ntransport = "http"\nurl = "https://x.example.com/"\nsecret = "GROQ_API_KEY"')
    for text in (remote, server(ARGV, 'env = ["GROQ_API_KEY"]')):
        assert "belongs to a model's provider" in load_error(tmp_path, text, reserved=["GROQ_API_KEY"]).message


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        load_catalog(tmp_path / "absent.toml")
    (tmp_path / "own.toml").write_bytes(b"\xff")
    with pytest.raises(UserError, match="cannot be read"):
        load_catalog(tmp_path / "own.toml")
    assert "longer than" in load_error(tmp_path, "#" * 1_000_001).message


def test_reading_the_catalogue_loads_neither_the_protocol_nor_http() -> None:
    import subprocess

    code = (
        "import sys; from pitboss.tools.mcp.catalog import load_catalog; load_catalog();"
        "print([m for m in ('mcp', 'httpx2', 'anyio') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
