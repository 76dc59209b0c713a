"""The catalogue of allowed MCP servers, read from the shipped file and from an optional file of the operator.

The shipped entries are in `catalog.toml` next to this file. An operator may add servers, or change a shipped one, with a
file of the same form (setting `mcp_catalog`); a skill can only name ids. Entries are validated here, so that a
`ServerEntry` can be trusted: its argv is never read by a shell, its address may be connected to, and no variable that
makes a program load other code reaches a child process. Nothing is started or connected to here.
"""

import re
import shutil
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from pitboss.core.errors import UserError
from pitboss.core.suggestion import suggestion
from pitboss.tools.mcp.address import check_url
from pitboss.tools.mcp.server_entry import CONCURRENCY, TIMEOUT_S, ServerEntry, ToolPolicy, Transport
from pitboss.tools.mcp.tool_names import name_of

FILE = "catalog.toml"
PYTHON = "{python}"
"""As the first element of an argv: the Python interpreter that runs pitboss."""
MAX_FILE_BYTES = 1_000_000
SEARCH_PATH = "/usr/local/bin:/usr/bin:/bin"
"""Folders in which a bare program name is looked up. The PATH of the environment is not used."""

ID = re.compile(r"[a-z0-9][a-z0-9-]{0,30}")
_PROGRAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
_SHELLS = frozenset("sh ash bash busybox csh dash fish ksh mksh pwsh powershell tcsh zsh cmd".split())  # noqa: SIM905
_FORBIDDEN_VARIABLE = re.compile(
    r"(LD_|DYLD_|PYTHON|NODE_|NPM_CONFIG_|PERL5|PERLLIB|RUBY|GEM_|BUNDLE_|GIT_|BASH|MALLOC_|PITBOSS_).*"
    r"|ENV|SHELLOPTS|PS4|IFS|PROMPT_COMMAND|JAVA_TOOL_OPTIONS|JDK_JAVA_OPTIONS|_JAVA_OPTIONS|CLASSPATH|TMPDIR"
    r"|GCONV_PATH|GLIBC_TUNABLES|LOCPATH|NLSPATH|HOSTALIASES|RES_OPTIONS|LOCALDOMAIN|OPENSSL_CONF|SSLKEYLOGFILE"
)
"""Variables that make a program load code, read from elsewhere or log secrets; and pitboss's own, with the master key."""

_RESERVED_HEADER = re.compile(
    r"(accept|content|mcp|proxy|sec)-.*|accept|authorization|connection|cookie|expect|host|keep-alive|last-event-id"
    r"|te|trailer|transfer-encoding|upgrade|user-agent",
    re.IGNORECASE,
)
"""Headers that the protocol itself uses: a key in one of them would change the meaning of a request."""


class Catalog(Mapping[str, ServerEntry]):
    """The allowed servers by id. `own` are the ids of the operator's file, `changed` those that replace a shipped entry."""

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
        """The entry of an id; an unknown id is a `UserError` that suggests the closest one."""
        if server in self._entries:
            return self._entries[server]
        raise UserError(f"no MCP server {_short(server)} in the catalogue", _nearest(server, self._entries))

    def origin(self, server: str) -> str:
        """Where an entry comes from, as text for the user."""
        if server in self.changed:
            return "shipped, changed by the operator"
        return "the operator" if server in self.own else "shipped"


def load_catalog(
    path: Path | str | None = None,
    *,
    python: str = sys.executable,
    searched: str = SEARCH_PATH,
    reserved: Iterable[str] = (),
) -> Catalog:
    """The shipped entries overlaid with those of the operator's file, with the paths of their programs on this machine.

    `reserved` are names of keys that must not be passed to a server (those of model providers).
    """
    own = _operator_entries(Path(path), frozenset(reserved)) if path else {}
    entries = {**shipped(), **own}
    return Catalog({server: with_program_path(entry, python, searched) for server, entry in entries.items()}, own)


@cache
def shipped() -> Mapping[str, ServerEntry]:
    """The entries of the shipped file, unchanged."""
    return {server: _entry(server, table, FILE) for server, table in _shipped_tables().items()}


def with_program_path(entry: ServerEntry, python: str, searched: str = SEARCH_PATH) -> ServerEntry:
    """The entry with the absolute path of its program; a program that is not found is kept (see `missing_setup`).

    Only the absolute folders of `searched` are used. The arguments after the program are not inspected.
    """
    program, *arguments = entry.argv or ("",)
    if program == PYTHON:
        return replace(entry, argv=(python, *arguments))
    if not program or program.startswith("/"):
        return entry
    folders = ":".join(folder for folder in searched.split(":") if folder.startswith("/"))
    path = shutil.which(program, path=folders) if folders else None
    return replace(entry, argv=(path, *arguments)) if path else entry


def missing_setup(entry: ServerEntry) -> str:
    """What an entry lacks to be usable and how to add it; empty if nothing."""
    own = "in a catalogue of your own (setting mcp_catalog)"
    if entry.transport != "stdio" and not entry.url:
        return f"{entry.id} has no address: set url {own}"
    if entry.transport == "stdio" and not entry.argv:
        return f"{entry.id} has no command: set argv {own}"
    if entry.transport == "stdio" and not entry.argv[0].startswith("/"):
        return f"{entry.id}: the program {entry.argv[0]} is not in the folders that are searched: give its whole path"
    return "" if entry.tools else f"{entry.id} allows no tool: name those it may offer under tools {own}"


# The schema of an entry in a catalogue file.


def _argv(argv: list[str]) -> list[str]:
    program = argv[0] if argv else ""
    for argument in argv:
        if "\0" in argument:
            raise ValueError("a NUL character in an argument")
        if re.search(r"\{[^}]*\}", argument) and (argument != PYTHON or argument is not program):
            raise ValueError(f"only {PYTHON} may stand in braces, alone and in front")
    if not argv or program == PYTHON:
        return argv
    if program.startswith("/"):
        if ".." in PurePosixPath(program).parts or program.endswith("/"):
            raise ValueError("the program is not a plain absolute path")
    elif not _PROGRAM.fullmatch(program):
        raise ValueError("the program has to be an absolute path, a bare name, or {python}")
    if PurePosixPath(program).name.lower().removesuffix(".exe") in _SHELLS:
        raise ValueError("a shell would read the rest as a script; name the program itself")
    return argv


def _variable(name: str) -> str:
    if _FORBIDDEN_VARIABLE.fullmatch(name):
        raise ValueError(f"{name} is never passed to a server")
    return name


def _header(name: str) -> str:
    if _RESERVED_HEADER.fullmatch(name):
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


_UNUSED_KEYS: Mapping[Transport, tuple[str, ...]] = {
    "stdio": ("url", "secret", "secret_header", "loopback"),
    "sse": ("argv", "env"),
    "http": ("argv", "env"),
}
"""Keys that have no effect for a transport; they are refused rather than ignored."""


def _entry(server: str, table: Mapping[str, Any], source: str, reserved: frozenset[str] = frozenset()) -> ServerEntry:
    location = f"{source}: servers.{server}"
    if not ID.fullmatch(server):
        raise UserError(
            f"{source}: {_short(server)} cannot be an id",
            "small letters, digits and dashes, at most 31, such as my-server",
        )
    try:
        document = _Server.model_validate(dict(table))
    except ValidationError as error:
        raise _validation_error(location, error) from None
    for key in _UNUSED_KEYS[document.transport]:
        if getattr(document, key):
            raise UserError(f"{location}.{key}: has no effect for transport {document.transport}", "remove it")
    if document.url:
        try:
            check_url(document.url, document.loopback)
        except UserError as error:
            raise UserError(f"{location}.url: {error.message}", error.hint) from None
    if document.secret_header and not document.secret:
        raise UserError(f"{location}.secret_header: there is no secret to send in it", "name the key under secret")
    reserved_names = sorted({*document.env, document.secret} & reserved)
    if reserved_names:
        raise UserError(
            f"{location}: {reserved_names[0]} belongs to a model's provider",
            "keep the server's own key under another name",
        )
    try:
        for tool in document.tools:
            name_of(server, tool)
    except ValueError as error:
        raise UserError(f"{location}.tools: {error}", "a shorter id leaves more room") from None
    unknown = sorted(set(document.pins) - set(document.tools))
    if unknown:
        raise UserError(f"{location}.pins.{unknown[0]}: not among the tools", "name it under tools, or remove the pin")
    return ServerEntry(
        id=server,
        title=document.title,
        note=document.note,
        transport=document.transport,
        argv=tuple(document.argv),
        url=document.url,
        env=tuple(dict.fromkeys(document.env)),
        secret=document.secret,
        secret_header=document.secret_header,
        tools={name: ToolPolicy(policy.as_of_safe) for name, policy in sorted(document.tools.items())},
        timeout_s=document.timeout_s,
        concurrency=document.concurrency,
        loopback=document.loopback,
        pins=dict(sorted(document.pins.items())),
    )


def _operator_entries(path: Path, reserved: frozenset[str]) -> dict[str, ServerEntry]:
    source, base = str(path), _shipped_tables()
    return {
        server: _entry(server, _merged(base.get(server, {}), table), source, reserved)
        for server, table in _servers(_text(path), source).items()
    }


def _merged(base: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, Any]:
    """An operator's table overlaid on the shipped one, key by key. A changed program or address drops the shipped pins."""
    inherited = dict(base)
    if {"transport", "argv", "url"} & table.keys():
        inherited.pop("pins", None)
    if table.get("secret") == "":
        inherited.pop("secret_header", None)
    if table.get("transport", inherited.get("transport")) != inherited.get("transport"):
        inherited = {key: inherited[key] for key in ("title", "note", "tools") if key in inherited}
    return {**inherited, **table}


def _servers(text: str, source: str) -> dict[str, Any]:
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of five thousand digits is a plain ValueError
        raise UserError(f"{source}: not TOML: {error}", "see docs/mcp.md for the form of a catalogue") from None
    extra = sorted(set(document) - {"format", "servers"})
    if extra:
        raise UserError(f"{source}: unknown key {_short(extra[0])}", _nearest(extra[0], ("format", "servers")))
    if document.get("format", 1) != 1:
        raise UserError(f"{source}: format {_short(str(document['format']))} is not known", "write format = 1")
    servers = document.get("servers", {})
    if not isinstance(servers, dict) or not all(isinstance(table, dict) for table in servers.values()):
        raise UserError(f"{source}: servers are not tables", "write [servers.my-server]")
    return servers


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise UserError(f"{path}: longer than {MAX_FILE_BYTES} bytes", "a catalogue is a short file")
        return data.decode("utf-8")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        why = (error.strerror or "").lower() if isinstance(error, OSError) else error
        raise UserError(f"{path}: cannot be read: {why}", "set mcp_catalog to a TOML file, or leave it empty") from None


@cache
def _shipped_tables() -> Mapping[str, Any]:
    return _servers(resources.files(__package__ or "").joinpath(FILE).read_text("utf-8"), FILE)


def _validation_error(location: str, error: ValidationError) -> UserError:
    details = error.errors(include_url=False)
    # A misspelt key is reported as missing and as unknown; the unknown key is the useful one.
    first = next((detail for detail in details if detail["type"] == "extra_forbidden"), details[0])
    path = [str(part) for part in first["loc"] if part != "[key]"]
    at = ".".join([location, *(_short(part) for part in path)])
    if first["type"] == "extra_forbidden":
        keys = _PolicyDocument.model_fields if len(path) > 1 else _Server.model_fields
        return UserError(f"{at}: no such key", _nearest(path[-1], keys))
    if first["type"] == "missing":
        return UserError(f"{at}: is missing", "see docs/mcp.md for the form of an entry")
    own, general = str(first.get("ctx", {}).get("error", "")), first["msg"]
    return UserError(f"{at}: {own or general[:1].lower() + general[1:]}", "see docs/mcp.md for the form of an entry")


def _nearest(name: str, choices: Iterable[str]) -> str:
    options = sorted(choices)
    return suggestion(name[:64], options)


def _short(text: str) -> str:
    clean = ascii(text)[1:-1] if not (text.isascii() and text.isprintable()) else text
    return clean if 0 < len(clean) <= 60 else f"{clean[:57]}…" if clean else "(empty)"
