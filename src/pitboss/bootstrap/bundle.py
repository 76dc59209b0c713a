"""A run with everything it rests on in one file, to hand to a stranger: `runs export RUN --bundle FILE`.

A bundle is a zip with five members. `records.jsonl` holds every record with the very bytes that its digest is taken over,
`state.json` what follows the last one, `skill.json` the skill as it ran, `answers.jsonl` the model's answers with the
places where they were used, `manifest.json` the run's row and the SHA-256 of the others. The same run gives the same
bytes. Market data is not inside (the run names its digest), and nothing of this machine: no keys, no paths.

Here: the format, and reading it without trusting it. `pack.py` writes one, `unpack.py` checks one and takes it in.
"""

import hashlib
import io
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

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

MOST_BYTES = 8 << 30
MOST_DOCUMENT = 64 << 20
"""Of one line, and of each member that is read whole."""
MOST_RATIO = 200
"""A bundle is a twentieth to a fortieth of what it holds, for half of it are digests; a bomb is far less."""
FREE_BYTES = 1 << 20

_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError)


Whole = Annotated[int, Field(ge=-(1 << 62), le=1 << 62)]
"""A number that every database can hold."""


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class Content(_Strict):
    """What a member must be."""

    sha256: str
    bytes: Whole


class Row(_Strict):
    """The run as it stood. What only makes sense where it was made (leases, where its report lies) is left out."""

    id: str
    status: Status
    model: str
    params: dict[str, Any]
    data_digest: str | None
    progress: float
    error_text: str | None
    metrics: dict[str, Any] | None
    baselines: dict[str, Any] | None
    digest: str | None
    cost_usd: str
    saved_usd: str
    wasted_usd: str
    wall_s: float
    ticks: Whole
    created_at: Whole
    started_at: Whole | None
    finished_at: Whole | None


class Named(_Strict):
    """The skill's name and digest."""

    name: str
    digest: str


class Manifest(_Strict):
    """The table of contents. `answers` says which are inside: those used, only those paid for, or none."""

    bundle: Whole
    version: str
    run: Row
    skill: Named
    answers: Literal["used", "paid", "none"]
    contents: dict[str, Content]
    seal: str


class RecordLine(_Strict):
    """One record."""

    seq: Whole
    kind: Literal["tick", "span", "close"]
    tick_at: Whole
    prev_digest: str
    digest: str
    covered: str
    extra: str

    def record(self) -> Record:
        """The same as it is worked with."""
        covered, extra = self.covered.encode("utf-8", "replace"), self.extra.encode("utf-8", "replace")
        return Record(self.seq, self.kind, self.tick_at, self.prev_digest, self.digest, covered, extra)


class AnswerLine(_Strict):
    """One answer, and the record and step of every place where it was used."""

    key: str
    model: str
    run_id: str
    cost_usd: str | None
    created_at: Whole
    reply: str
    used: list[tuple[Whole, Whole]]


def seal_of(manifest: dict[str, Any]) -> str:
    """SHA-256 of the canonical manifest without its seal."""
    return codec.digest({name: value for name, value in manifest.items() if name != "seal"})


class Bundle:
    """A bundle that was opened and is not trusted: what is not of its form is a `UserError`, in one line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._zip = self._open()
        try:
            self._check_members()
            self.manifest = self._manifest()
        except BaseException:
            self._zip.close()
            raise

    def __enter__(self) -> "Bundle":
        return self

    def __exit__(self, *error: object) -> None:
        self._zip.close()

    def differences(self) -> list[str]:
        """The members that are not what the manifest says, byte for byte."""
        problems: list[str] = []
        if seal_of(codec.loads(self.whole(MANIFEST))) != self.manifest.seal:
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
            yield self._read(RecordLine, line, f"{RECORDS} line {number}").record()

    def answers(self) -> Iterator[AnswerLine]:
        """Every answer, in the order of the file."""
        for number, line in self._lines(ANSWERS):
            yield self._read(AnswerLine, line, f"{ANSWERS} line {number}")

    def whole(self, name: str) -> bytes:
        """A small member, at once."""
        try:
            with self._zip.open(name) as member:
                data = member.read(MOST_DOCUMENT + 1)
        except _BROKEN as error:
            raise self._refusal(f"{name} is damaged") from error
        if len(data) > MOST_DOCUMENT:
            raise self._refusal(f"{name} is over {MOST_DOCUMENT >> 20} MB")
        return data

    def _open(self) -> zipfile.ZipFile:
        try:
            self._size = self.path.stat().st_size
            return zipfile.ZipFile(self.path)
        except FileNotFoundError:
            raise UserError(f"there is no file {self.path}", "name a file that `runs export --bundle` wrote") from None
        except _BROKEN as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else "it is not a whole zip file"
            raise self._refusal(why) from None

    def _check_members(self) -> None:
        """Exactly our members, plain, and none of them a bomb. Nothing is ever written under a member's name."""
        infos = self._zip.infolist()
        if sorted(info.filename for info in infos) != sorted((*MEMBERS, MANIFEST)):
            raise self._refusal(f"its members are not {', '.join((*MEMBERS, MANIFEST))}")
        if any(
            info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for info in infos
        ):
            raise self._refusal("its members are encrypted or packed in a way that bundles are not")
        held = sum(info.file_size for info in infos)
        if held > MOST_BYTES or held > self._size * MOST_RATIO + FREE_BYTES:
            raise self._refusal(f"{self._size} bytes claim to hold {held}")

    def _manifest(self) -> Manifest:
        manifest = self._read(Manifest, self.whole(MANIFEST), MANIFEST)
        if manifest.bundle != FORMAT:
            raise UserError(
                f"{self.path}: format {manifest.bundle} of bundles is not known here; this pitboss knows {FORMAT}",
                "upgrade pitboss",
            )
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

    def _read(self, kind: type[Any], data: bytes, where: str) -> Any:
        try:
            return kind.model_validate_json(data)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            place = ".".join(str(part)[:40] for part in first["loc"][:6])
            raise self._refusal(f"{where}: {place + ': ' if place else ''}{first['msg'][:200]}") from None

    def _refusal(self, why: str) -> UserError:
        return UserError(f"{self.path} is no bundle that can be read: {why}", "ask for it again, or export it again")
