"""The bundle format: a run and everything it depends on in one file (`runs export RUN --bundle FILE`).

A bundle is a zip with five members. `records.jsonl` holds every record with the exact bytes that its digest covers,
`state.json` the state after the last record, `skill.json` the skill as it ran, `answers.jsonl` the model replies with
the records and steps that used them, `manifest.json` the run's row and the SHA-256 of the other members. The same run
always gives the same bytes. Market data is not included (the run records its digest), nor anything about this
machine: no keys, no paths.

This module defines the format and reads it as untrusted input. `pack.py` writes a bundle, `check_bundle.py` checks its
contents, `unpack.py` imports it.
"""

import hashlib
import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, FailFast, Field, ValidationError

from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.core.snapshot import Record
from pitboss.store.lifecycle import Status

FORMAT = 1
RECORDS, STATE, SKILL, ANSWERS, MANIFEST = (
    "records.jsonl",
    "state.json",
    "skill.json",
    "answers.jsonl",
    "manifest.json",
)
MEMBERS = (RECORDS, STATE, SKILL, ANSWERS)
MONEY = ("cost_usd", "saved_usd", "wasted_usd")
"""Fields of the run's row that are exact decimal texts."""

MOST_BYTES = 8 << 30
MOST_DOCUMENT = 64 << 20
"""Largest size in bytes of one line, and of each member that is read at once."""
MOST_RATIO = 200
"""Largest compression ratio. A real bundle shrinks 20 to 40 times, because half of it is digests."""
FREE_BYTES = 1 << 20
MOST_WEIGHT = 512 << 20
"""Most bytes that one parsed document may need; a few characters of JSON can take a hundred times their size."""
MOST_INDEX = 4_096
"""Largest central directory of the zip in bytes; the zip library reads all of it before it can be checked."""
MOST_FIELDS = 100

_ENDS = 22 + 20 + 56
"""Total size of the three records that can end a zip: the plain one and the two that precede it in files over 4 GB."""
_WRONG_MEMBERS = f"its members are not {', '.join((*MEMBERS, MANIFEST))}"
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    ValueError,
    NotImplementedError,
    RuntimeError,
    struct.error,
)


Count = Annotated[int, Field(ge=0, le=1 << 62)]
"""A count that fits into the integer column of every supported database."""
At = Annotated[int, Field(ge=0, le=253_402_300_799_999)]
"""An instant between 1970 and the end of the year 9999."""
Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Id = Annotated[str, Field(pattern=r"^[0-9A-Za-z_-]{4,64}$")]
ShortText = Annotated[str, Field(max_length=300, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
"""A short text without control characters, so that it is safe to print on a terminal."""


class _StrictPart(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class Content(_StrictPart):
    """Checksum and size of a member."""

    sha256: Hash
    bytes: Count


class BundleRun(_StrictPart):
    """The run's row. Fields that only make sense on the machine of origin (leases, report path) are left out."""

    id: Id
    status: Status
    model: ShortText
    params: dict[str, Any]
    data_digest: Hash | None
    progress: Annotated[float, Field(ge=0, le=1)]
    error_text: Annotated[str, Field(max_length=100_000)] | None
    metrics: dict[str, Any] | None
    baselines: dict[str, Any] | None
    digest: Hash | None
    cost_usd: ShortText
    saved_usd: ShortText
    wasted_usd: ShortText
    wall_s: Annotated[float, Field(ge=0, le=1e12)]
    ticks: Count
    created_at: At
    started_at: At | None
    finished_at: At | None


class BundleSkill(_StrictPart):
    """The skill's name and digest."""

    name: ShortText
    digest: Hash


class BundleManifest(_StrictPart):
    """The table of contents.

    `answers` says which replies are included: all that were used, only those paid for, or none.
    """

    bundle: Count
    version: ShortText
    run: BundleRun
    skill: BundleSkill
    answers: Literal["used", "paid", "none"]
    contents: dict[str, Content]
    seal: str


class RecordLine(_StrictPart):
    """One record."""

    seq: Count
    kind: Literal["tick", "span", "close"]
    tick_at: At
    prev_digest: Hash
    digest: Hash
    covered: str
    extra: str

    def record(self) -> Record:
        """Convert the line to a `Record`."""
        covered, extra = self.covered.encode("utf-8", "replace"), self.extra.encode("utf-8", "replace")
        return Record(self.seq, self.kind, self.tick_at, self.prev_digest, self.digest, covered, extra)


class AnswerLine(_StrictPart):
    """One model reply, with the record and step of every use."""

    key: Annotated[str, Field(pattern=r"^[0-9a-f]{64}(:[0-9A-Za-z_-]{1,64})?$")]
    model: ShortText
    run_id: Id
    cost_usd: ShortText | None
    created_at: At
    reply: str
    used: Annotated[list[Annotated[list[Count], Field(min_length=2, max_length=2)]], FailFast()]


def is_parsable(data: bytes) -> bool:
    """Whether a document can be parsed within the memory limit. Braces and commas inside strings are counted too."""
    return 250 * data.count(b"{") + 64 * (data.count(b"[") + data.count(b",")) <= MOST_WEIGHT


def _has_too_many_fields(plain: Any) -> bool:
    """Whether any object has more fields than the format allows. Free-form parts are skipped and measured later."""
    pending = [plain]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            if len(value) > MOST_FIELDS:
                return True
            pending += [item for name, item in value.items() if name not in ("params", "metrics", "baselines", "used")]
    return False


def seal_of(manifest: dict[str, Any]) -> str:
    """SHA-256 of the canonical manifest without its seal."""
    return codec.digest({name: value for name, value in manifest.items() if name != "seal"})


class Bundle:
    """An open bundle, read as untrusted input: anything that violates the format raises a one-line `UserError`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = self._open()
        try:
            self._zip = self._members()
            self.manifest = self._manifest()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> "Bundle":
        return self

    def __exit__(self, *error: object) -> None:
        self._zip.close()
        self._file.close()

    def differences(self) -> list[str]:
        """The members whose bytes do not match the manifest."""
        problems: list[str] = []
        if self._seal != self.manifest.seal:
            problems.append("the manifest was changed")
        for name in MEMBERS:
            content, digest, size = self.manifest.contents.get(name), hashlib.sha256(), 0
            try:
                with self._zip.open(name) as member:
                    while piece := member.read(1 << 20):
                        digest.update(piece)
                        size += len(piece)
            except _BROKEN:
                problems.append(f"{name} is damaged")
                continue
            if content is None or (digest.hexdigest(), size) != (content.sha256, content.bytes):
                problems.append(f"{name} was changed")
        return problems

    def records(self) -> Iterator[Record]:
        """Every record, in the order of the file."""
        for number, line in self._lines(RECORDS):
            label = f"{RECORDS} line {number}"
            yield self._validate(RecordLine, self._parse(line, label), label).record()

    def answers(self) -> Iterator[AnswerLine]:
        """Every answer, in the order of the file."""
        for number, line in self._lines(ANSWERS):
            label = f"{ANSWERS} line {number}"
            yield self._validate(AnswerLine, self._parse(line, label), label)

    def read(self, name: str) -> bytes:
        """Read a small member completely."""
        try:
            with self._zip.open(name) as member:
                data = member.read(MOST_DOCUMENT + 1)
        except _BROKEN as error:
            raise self._refusal(f"{name} is damaged") from error
        if len(data) > MOST_DOCUMENT:
            raise self._refusal(f"{name} is over {MOST_DOCUMENT >> 20} MB")
        return data

    def _open(self) -> IO[bytes]:
        try:
            status = self.path.stat()
            if not stat.S_ISREG(status.st_mode):  # reading a pipe would block, and a device may have no end
                raise self._refusal("it is not a file")
            self._size = status.st_size
            return self.path.open("rb")
        except FileNotFoundError:
            raise UserError(f"there is no file {self.path}", "name a file that `runs export --bundle` wrote") from None
        except (OSError, ValueError) as error:
            raise self._refusal(getattr(error, "strerror", None) or "no file can have that name") from None

    def _members(self) -> zipfile.ZipFile:
        """Open the zip and require exactly the five members, unencrypted and within the size limits.

        Nothing is ever written under a member's name.
        """
        try:
            self._check_index()
            opened = zipfile.ZipFile(self._file)
        except _BROKEN:
            raise self._refusal("it is not a complete zip file") from None
        infos = opened.infolist()
        if sorted(info.filename for info in infos) != sorted((*MEMBERS, MANIFEST)):
            raise self._refusal(_WRONG_MEMBERS)
        if any(
            info.flag_bits & 1
            or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
            or stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG)
            for info in infos
        ):
            raise self._refusal("a member is encrypted, a link, or compressed with an unsupported method")
        total = sum(info.file_size for info in infos)
        if total > MOST_BYTES or total > self._size * MOST_RATIO + FREE_BYTES:
            raise self._refusal(f"{self._size} bytes claim to contain {total}")
        return opened

    def _check_index(self) -> None:
        """Refuse a zip whose central directory is longer than a bundle's can be, before it is read."""
        self._file.seek(max(0, self._size - _ENDS))
        tail = self._file.read(_ENDS)
        plain, locator, large = tail[-22:], tail[-42:-22], tail[-_ENDS:-42]
        lists: list[tuple[int, int]] = []
        if plain[:4] == b"PK\5\6" and plain[-2:] == b"\0\0":
            lists.append(struct.unpack("<HL", plain[10:16]))
        if locator[:4] == b"PK\6\7":  # zip64: readers use this record instead of the plain one
            at = struct.unpack("<Q", locator[8:16])[0]
            if large[:4] != b"PK\6\6" or at != self._size - _ENDS:
                raise ValueError("two lists")
            lists.append(struct.unpack("<QQ", large[32:48]))
        if not lists:
            raise ValueError("no list")
        if any(count != len(MEMBERS) + 1 or size > MOST_INDEX for count, size in lists):
            raise self._refusal(_WRONG_MEMBERS)

    def _manifest(self) -> BundleManifest:
        plain = self._parse(self.read(MANIFEST), MANIFEST)
        format_ = plain.get("bundle") if isinstance(plain, dict) else None
        if type(format_) is int and format_ > FORMAT:  # checked first, because a later format may have other fields
            raise UserError(
                f"{self.path}: this pitboss reads bundles of format {FORMAT}, not of format {format_}",
                "upgrade pitboss",
            )
        manifest = self._validate(BundleManifest, plain, MANIFEST)
        if manifest.bundle != FORMAT:
            raise self._refusal(f"there is no format {manifest.bundle}")
        self._seal = seal_of(plain)
        return manifest

    def _lines(self, name: str) -> Iterator[tuple[int, bytes]]:
        try:
            with self._zip.open(name) as member, io.BufferedReader(member, 1 << 20) as lines:  # pyright: ignore[reportArgumentType]
                number = 0
                while line := lines.readline(MOST_DOCUMENT + 1):
                    number += 1
                    if len(line) > MOST_DOCUMENT:
                        raise self._refusal(f"{name} line {number} is over {MOST_DOCUMENT >> 20} MB")
                    yield number, line
        except _BROKEN as error:
            raise self._refusal(f"{name} is damaged") from error

    def _parse(self, data: bytes, label: str) -> Any:
        if not is_parsable(data):
            raise self._refusal(f"{label} holds too many values")
        try:
            return codec.loads(data)
        except ValueError:
            raise self._refusal(f"{label} is not JSON") from None

    def _validate(self, kind: type[Any], plain: Any, label: str) -> Any:
        if _has_too_many_fields(plain):  # otherwise every extra field would become a separate validation error
            raise self._refusal(f"{label} has too many fields")
        try:
            return kind.model_validate(plain)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            location = ".".join(str(part)[:40] for part in first["loc"][:6])
            raise self._refusal(f"{label}: {location + ': ' if location else ''}{first['msg'][:200]}") from None

    def _refusal(self, reason: str) -> UserError:
        clean = "".join(char if char.isprintable() else "?" for char in reason)
        return UserError(f"{self.path} is not a readable bundle: {clean}", "ask for it again, or export it again")
