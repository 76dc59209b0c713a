"""The catalogue: which MCP servers exist for this program, read from our file and from one of the operator's.

The shipped entries are in `catalog.toml` beside this file. An operator may add servers, or change a shipped one, with a
file of the same form (setting `mcp_catalog`); a skill can only name ids. Everything a person writes is checked here, so
that an `ServerEntry` can be trusted: an argv is a list that no shell reads, an address is one that may be connected to, and no
variable that makes a program load foreign code reaches a child. Nothing is started or opened here.
"""

import re
import shutil
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from pitboss.core.errors import UserError
from pitboss.tools.mcp.address import check_url
from pitboss.tools.mcp.server_entry import CONCURRENCY, TIMEOUT_S, ServerEntry, ToolPolicy, Transport
from pitboss.tools.mcp.tool_names import name_of

FILE = "catalog.toml"
PYTHON = "{python}"
"""Stands for the Python that runs this program, as the first word of an argv."""
LONGEST_FILE = 1_000_000
SEARCHED = "/usr/local/bin:/usr/bin:/bin"
"""Where a bare program name is looked for. Never the PATH of whoever started us."""

ID = re.compile(r"[a-z0-9][a-z0-9-]{0,30}")
_PROGRAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
_SHELLS = frozenset("sh ash bash busybox csh dash fish ksh mksh pwsh powershell tcsh zsh cmd".split())  # noqa: SIM905
_FOREIGN = re.compile(
    r"(LD_|DYLD_|PYTHON|NODE_|NPM_CONFIG_|PERL5|PERLLIB|RUBY|GEM_|BUNDLE_|GIT_|BASH|MALLOC_|PITBOSS_).*"
    r"|ENV|SHELLOPTS|PS4|IFS|PROMPT_COMMAND|JAVA_TOOL_OPTIONS|JDK_JAVA_OPTIONS|_JAVA_OPTIONS|CLASSPATH|TMPDIR"
    r"|GCONV_PATH|GLIBC_TUNABLES|LOCPATH|NLSPATH|HOSTALIASES|RES_OPTIONS|LOCALDOMAIN|OPENSSL_CONF|SSLKEYLOGFILE"
)
"""Variables that make a program load code, look elsewhere or write secrets down; and our own, with the master key."""


_TAKEN_HEADER = re.compile(
    r"(accept|content|mcp|proxy|sec)-.*|accept|authorization|connection|cookie|expect|host|keep-alive|last-event-id"
    r"|te|trailer|transfer-encoding|upgrade|user-agent",
    re.IGNORECASE,
)
"""Headers that the protocol itself needs: a key in one of them would change what a request is."""


class Catalog(Mapping[str, ServerEntry]):
    """Every server there may be, by id. `own` are the operator's; those of them that `changed` stand for a shipped one."""

    def __init__(self, entries: Mapping[str, ServerEntry], own: Iterable[str] = ()) -> None:
        self._entries = dict(sorted(entries.items()))
        self.own = frozenset(own)
        self.changed = self.own & shipped().keys()

    def __getitem__(self, server: str) -> ServerEntry:
        return self._entries[server]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, server: str) -> ServerEntry:
        """The entry of an id; another id is refused with the nearest that exists."""
        if server in self._entries:
            return self._entries[server]
        raise UserError(f"no MCP server {_short(server)} in the catalogue", _nearest(server, self._entries))

    def origin(self, server: str) -> str:
        """Where an entry comes from, in words."""
        if server in self.changed:
            return "shipped, changed by the operator"
        return "the operator" if server in self.own else "shipped"


def load_catalog(
    path: Path | str | None = None,
    *,
    python: str = sys.executable,
    searched: str = SEARCHED,
    reserved: Iterable[str] = (),
) -> Catalog:
    """The shipped entries and those of the operator's file over them, their programs found on this machine.

    `reserved` are names of keys that belong to somebody else (a model's provider) and may not be handed to a server.
    """
    own = _own(Path(path), frozenset(reserved)) if path else {}
    entries = {**shipped(), **own}
    return Catalog({server: located(entry, python, searched) for server, entry in entries.items()}, own)


@cache
def shipped() -> Mapping[str, ServerEntry]:
    """The entries of our own file, as they are written there."""
    return {server: _entry(server, table, FILE) for server, table in _shipped_tables().items()}


def located(entry: ServerEntry, python: str, searched: str = SEARCHED) -> ServerEntry:
    """The entry with the program of its argv as a whole path; one that is not found stays as it is (`missing` says so).

    Only absolute folders are searched, and only these: what the words after the program say is never looked at.
    """
    program, *rest = entry.argv or ("",)
    if program == PYTHON:
        return replace(entry, argv=(python, *rest))
    if not program or program.startswith("/"):
        return entry
    folders = ":".join(folder for folder in searched.split(":") if folder.startswith("/"))
    found = shutil.which(program, path=folders) if folders else None
    return replace(entry, argv=(found, *rest)) if found else entry


def missing(entry: ServerEntry) -> str:
    """What keeps an entry from being used, in words that say what to do; empty if nothing."""
    own = "in a catalogue of your own (setting mcp_catalog)"
    if entry.transport != "stdio" and not entry.url:
        return f"{entry.id} has no address: set url {own}"
    if entry.transport == "stdio" and not entry.argv:
        return f"{entry.id} has no command: set argv {own}"
    if entry.transport == "stdio" and not entry.argv[0].startswith("/"):
        return f"{entry.id}: the program {entry.argv[0]} is not in the folders that are searched: give its whole path"
    return "" if entry.tools else f"{entry.id} allows no tool: name those it may offer under tools {own}"


# What a person may write.


def _argv(words: list[str]) -> list[str]:
    program = words[0] if words else ""
    for word in words:
        if "\0" in word:
            raise ValueError("a NUL character in an argument")
        if re.search(r"\{[^}]*\}", word) and (word != PYTHON or word is not program):
            raise ValueError(f"only {PYTHON} may stand in braces, alone and in front")
    if not words or program == PYTHON:
        return words
    if program.startswith("/"):
        if ".." in PurePosixPath(program).parts or program.endswith("/"):
            raise ValueError("the program is not a plain absolute path")
    elif not _PROGRAM.fullmatch(program):
        raise ValueError("the program has to be an absolute path, a bare name, or {python}")
    if PurePosixPath(program).name.lower().removesuffix(".exe") in _SHELLS:
        raise ValueError("a shell would read the rest as a script; name the program itself")
    return words


def _variable(name: str) -> str:
    if _FOREIGN.fullmatch(name):
        raise ValueError(f"{name} is never handed to a server")
    return name


def _header(name: str) -> str:
    if _TAKEN_HEADER.fullmatch(name):
        raise ValueError(f"{name} is not a header for a key; leave it out to send Authorization: Bearer")
    return name


def _printable(text: str) -> str:
    if any(not c.isprintable() and c != "\n" for c in text):
        raise ValueError("characters that cannot be seen")
    return text


Word = Annotated[str, StringConstraints(min_length=1, max_length=4_096)]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]{0,63}$"), AfterValidator(_variable)]
ToolName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class _ClosedDocument(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _PolicyDocument(_ClosedDocument):
    as_of_safe: bool = False


class _Server(_ClosedDocument):
    title: Annotated[str, StringConstraints(min_length=1, max_length=100), AfterValidator(_printable)]
    note: Annotated[str, StringConstraints(max_length=4_000), AfterValidator(_printable)] = ""
    transport: Literal["stdio", "sse", "http"]
    argv: Annotated[list[Word], Field(max_length=64), AfterValidator(_argv)] = []
    url: Annotated[str, StringConstraints(max_length=2_048)] = ""
    env: Annotated[list[Variable], Field(max_length=32)] = []
    secret: Annotated[str, StringConstraints(pattern=r"^([A-Z][A-Z0-9_]{1,63})?$")] = ""
    secret_header: Annotated[
        str, StringConstraints(pattern=r"^([A-Za-z][A-Za-z0-9-]{0,63})?$"), AfterValidator(_header)
    ] = ""
    tools: Annotated[dict[ToolName, _PolicyDocument], Field(max_length=100)] = {}
    timeout_s: Annotated[float, Field(gt=0, le=120, strict=False)] = TIMEOUT_S
    concurrency: Annotated[int, Field(ge=1, le=64)] = CONCURRENCY
    loopback: bool = False
    pins: dict[ToolName, Digest] = {}


_ELSEWHERE: Mapping[Transport, tuple[str, ...]] = {
    "stdio": ("url", "secret", "secret_header", "loopback"),
    "sse": ("argv", "env"),
    "http": ("argv", "env"),
}
"""Keys that mean nothing for a transport: whoever writes one expects something that would not happen."""


def _entry(server: str, table: Mapping[str, Any], where: str, reserved: frozenset[str] = frozenset()) -> ServerEntry:
    place = f"{where}: servers.{server}"
    if not ID.fullmatch(server):
        raise UserError(
            f"{where}: {_short(server)} cannot be an id",
            "small letters, digits and dashes, at most 31, such as my-server",
        )
    try:
        found = _Server.model_validate(dict(table))
    except ValidationError as error:
        raise _refusal(place, error) from None
    for key in _ELSEWHERE[found.transport]:
        if getattr(found, key):
            raise UserError(f"{place}.{key}: means nothing for transport {found.transport}", "leave it out")
    if found.url:
        try:
            check_url(found.url, found.loopback)
        except UserError as error:
            raise UserError(f"{place}.url: {error.message}", error.hint) from None
    if found.secret_header and not found.secret:
        raise UserError(f"{place}.secret_header: there is no secret to send in it", "name the key under secret")
    taken = sorted({*found.env, found.secret} & reserved)
    if taken:
        raise UserError(
            f"{place}: {taken[0]} belongs to a model's provider", "keep the server's own key under another name"
        )
    try:
        for tool in found.tools:
            name_of(server, tool)
    except ValueError as error:
        raise UserError(f"{place}.tools: {error}", "a shorter id leaves more room") from None
    unknown = sorted(set(found.pins) - set(found.tools))
    if unknown:
        raise UserError(f"{place}.pins.{unknown[0]}: not among the tools", "name it under tools, or remove the pin")
    return ServerEntry(
        id=server,
        title=found.title,
        note=found.note,
        transport=found.transport,
        argv=tuple(found.argv),
        url=found.url,
        env=tuple(dict.fromkeys(found.env)),
        secret=found.secret,
        secret_header=found.secret_header,
        tools={name: ToolPolicy(policy.as_of_safe) for name, policy in sorted(found.tools.items())},
        timeout_s=found.timeout_s,
        concurrency=found.concurrency,
        loopback=found.loopback,
        pins=dict(sorted(found.pins.items())),
    )


def _own(path: Path, reserved: frozenset[str]) -> dict[str, ServerEntry]:
    where, base = str(path), _shipped_tables()
    return {
        server: _entry(server, _over(base.get(server, {}), table), where, reserved)
        for server, table in _servers(_text(path), where).items()
    }


def _over(base: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, Any]:
    """An operator's table over the shipped one, key by key. What was approved of one program says nothing of another."""
    kept = dict(base)
    if {"transport", "argv", "url"} & table.keys():
        kept.pop("pins", None)
    if table.get("secret") == "":
        kept.pop("secret_header", None)
    if table.get("transport", kept.get("transport")) != kept.get("transport"):
        kept = {key: kept[key] for key in ("title", "note", "tools") if key in kept}
    return {**kept, **table}


def _servers(text: str, where: str) -> dict[str, Any]:
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of five thousand digits is a plain ValueError
        raise UserError(f"{where}: not TOML: {error}", "see docs/mcp.md for the form of a catalogue") from None
    extra = sorted(set(document) - {"format", "servers"})
    if extra:
        raise UserError(f"{where}: unknown key {_short(extra[0])}", _nearest(extra[0], ("format", "servers")))
    if document.get("format", 1) != 1:
        raise UserError(f"{where}: format {_short(str(document['format']))} is not known", "write format = 1")
    servers = document.get("servers", {})
    if not isinstance(servers, dict) or not all(isinstance(table, dict) for table in servers.values()):
        raise UserError(f"{where}: servers are not tables", "write [servers.my-server]")
    return servers


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(LONGEST_FILE + 1)
        if len(data) > LONGEST_FILE:
            raise UserError(f"{path}: longer than {LONGEST_FILE} bytes", "a catalogue is a short file")
        return data.decode("utf-8")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        why = (error.strerror or "").lower() if isinstance(error, OSError) else error
        raise UserError(f"{path}: cannot be read: {why}", "set mcp_catalog to a TOML file, or leave it empty") from None


@cache
def _shipped_tables() -> Mapping[str, Any]:
    return _servers(resources.files(__package__ or "").joinpath(FILE).read_text("utf-8"), FILE)


def _refusal(place: str, error: ValidationError) -> UserError:
    found = error.errors(include_url=False)
    # A misspelt key is also a missing one, and the misspelling is what can be put right.
    first = next((one for one in found if one["type"] == "extra_forbidden"), found[0])
    path = [str(part) for part in first["loc"] if part != "[key]"]
    at = ".".join([place, *(_short(part) for part in path)])
    if first["type"] == "extra_forbidden":
        keys = _PolicyDocument.model_fields if len(path) > 1 else _Server.model_fields
        return UserError(f"{at}: no such key", _nearest(path[-1], keys))
    if first["type"] == "missing":
        return UserError(f"{at}: is missing", "see docs/mcp.md for the form of an entry")
    own, general = str(first.get("ctx", {}).get("error", "")), first["msg"]
    return UserError(f"{at}: {own or general[:1].lower() + general[1:]}", "see docs/mcp.md for the form of an entry")


def _nearest(word: str, choices: Iterable[str]) -> str:
    known = sorted(choices)
    close = get_close_matches(word[:64], known, 1, cutoff=0.5)
    return f"did you mean {close[0]}?" if close else f"one of {', '.join(known)}"


def _short(text: str) -> str:
    clean = ascii(text)[1:-1] if not (text.isascii() and text.isprintable()) else text
    return clean if 0 < len(clean) <= 60 else f"{clean[:57]}…" if clean else "(empty)"
