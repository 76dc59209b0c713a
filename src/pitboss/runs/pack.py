"""Write a run into a bundle. The same run always gives the same bytes; the format is defined in `bundle.py`."""

import hashlib
import os
import zipfile
from collections.abc import Iterable
from contextlib import AsyncExitStack, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pitboss import __version__
from pitboss.agent.request_policy import RequestPolicy, read_policy
from pitboss.bootstrap import mcp_tools
from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.errors import ReplayMismatch, UserError
from pitboss.core.money import text
from pitboss.core.past import NO_RECORDINGS
from pitboss.core.ports import ModelReply, ModelRequest
from pitboss.core.snapshot import Record
from pitboss.models.endpoint import ENDPOINT, read_endpoint
from pitboss.models.replayed import Replayed
from pitboss.models.request_key import request_key
from pitboss.runs.bundle import (
    ANSWERS,
    FORMAT,
    MANIFEST,
    MONEY,
    RECORDS,
    SKILL,
    STATE,
    AnswerLine,
    BundleRun,
    RecordLine,
    seal_of,
)
from pitboss.runs.fork import replay_until, without_model
from pitboss.runs.stored import journal_of, request_of
from pitboss.runs.venues import venue_of
from pitboss.sim.connections import NO_SERVER_TOOLS, Connections
from pitboss.store.answers import DUPLICATE_MARK, Answers, StoredReply, write_reply
from pitboss.store.lifecycle import ACTIVE
from pitboss.store.recordings import StoredRecordings
from pitboss.store.runs import Run

_EPOCH = (1980, 1, 1, 0, 0, 0)
_EARLIER = (RequestPolicy(repairs="beyond"), RequestPolicy("schema", "beyond"), RequestPolicy())
"""The policies of runs that were stored without one."""

Uses = dict[str, list[tuple[int, int]]]
"""The record and step of every use of a reply, by cache key."""


async def write_bundle(workspace: Workspace, run_id: str, path: Path) -> Path:
    """Write a finished run into one file."""
    run = workspace.runs.get(run_id)
    if run.status in ACTIVE:
        raise UserError(f"run {run.id} is {run.status}", "wait until it ends, or cancel it")
    if not path.name:
        raise UserError(f"{path} is a folder", "name a file with --bundle")
    part = path.with_name(f".{path.name}.part")
    kind, answers = await _answers(workspace, run)
    try:
        part.unlink(missing_ok=True)  # left by a crashed writer, or a symbolic link to another file
        with part.open("xb") as file, zipfile.ZipFile(file, "w") as bundle:
            _write(workspace, run, kind, answers, bundle)
        os.replace(part, path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}", "name another file with --bundle") from None
    finally:
        with suppress(OSError):
            part.unlink()
    return path


def _write(workspace: Workspace, run: Run, kind: str, answers: Iterable[AnswerLine], bundle: zipfile.ZipFile) -> None:
    skill = workspace.skills.get_by_id(run.skill_id, run.skill_version)
    journal = journal_of(workspace, run)
    state = journal.latest_state()
    records = (_line(_record_line(record).model_dump()) for record in journal.records())
    contents = {
        RECORDS: _member(bundle, RECORDS, records),
        STATE: _member(bundle, STATE, [codec.dumps(None if state is None else state[1])]),
        SKILL: _member(bundle, SKILL, [skill.body]),
        ANSWERS: _member(bundle, ANSWERS, (_line(answer.model_dump()) for answer in answers)),
    }
    values = {name: getattr(run, name) for name in BundleRun.model_fields}
    money = {name: text(values[name]) for name in MONEY}
    manifest: dict[str, Any] = {
        "bundle": FORMAT,
        "version": __version__,
        "run": {**values, **money},
        "skill": {"name": skill.name, "digest": skill.digest},
        "answers": kind,
        "contents": contents,
    }
    _member(bundle, MANIFEST, [codec.dumps({**manifest, "seal": seal_of(manifest)})])


def _line(value: dict[str, Any]) -> bytes:
    return codec.dumps(value) + b"\n"


def _member(bundle: zipfile.ZipFile, name: str, pieces: Iterable[bytes]) -> dict[str, Any]:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.compress_type, info.create_system, info.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
    digest, size = hashlib.sha256(), 0
    with bundle.open(info, "w", force_zip64=True) as out:
        for piece in pieces:
            digest.update(piece)
            size += len(piece)
            out.write(piece)
    return {"sha256": digest.hexdigest(), "bytes": size}


def _record_line(record: Record) -> RecordLine:
    return RecordLine(
        seq=record.seq,
        kind=record.kind,
        tick_at=record.tick_at,
        prev_digest=record.prev_digest,
        digest=record.digest,
        covered=record.covered.decode(),
        extra=record.extra.decode(),
    )


@dataclass(slots=True)
class _KeyCollector:
    """A model that replies from the records and collects which records and steps used each cache key."""

    inner: Replayed
    name: str
    repeat: int
    uses: Uses = field(default_factory=dict[str, list[tuple[int, int]]])

    async def complete(self, request: ModelRequest) -> ModelReply:
        reply = await self.inner.complete(request)
        source = self.inner.position(request)
        self.uses.setdefault(request_key(self.name, request, self.repeat), []).append((source.seq, source.step))
        return reply


async def _answers(workspace: Workspace, run: Run) -> tuple[str, list[AnswerLine]]:
    """The replies that a run used, found by rebuilding its requests while replaying its records.

    Where that is impossible (the data is gone, or another version builds different requests), the replies that it paid
    for.
    """
    with closing(Answers(workspace.database, workspace.now)) as answers:
        paid_replies = list(answers.of_run(run.id))
        endpoint = read_endpoint(run.params.get(ENDPOINT))
        names = [run.model if endpoint is None else endpoint.identity, *(reply.model for reply in paid_replies)]
        for model in dict.fromkeys(names):
            for uses in await _rebuilt_uses(workspace, run, model):
                lines = [
                    _answer_line(reply, used)
                    for key, used in sorted(uses.items())
                    if (reply := answers.get(key)) is not None
                ]
                if lines:
                    return "used", lines
    lines = [_answer_line(reply, []) for reply in paid_replies if DUPLICATE_MARK not in reply.key]
    return ("paid" if paid_replies else "none"), lines


async def _rebuilt_uses(workspace: Workspace, run: Run, model: str) -> list[Uses]:
    """The uses of replies in each request form that replays without a difference; none if the run cannot be replayed."""
    request = request_of(run)
    if request.is_program or request.source.startswith("standin/"):
        return []
    venue = venue_of(request.skill)
    try:
        lake = workspace.lake_of(run.params)
        prepared = venue.prepare(without_model(request), lake, workspace.settings)
    except UserError:
        return []
    if prepared.data_digest != run.data_digest:
        return []
    records = list(journal_of(workspace, run).records())
    rebuilt: list[Uses] = []
    with suppress(UserError):  # a server may no longer be in the catalogue
        async with AsyncExitStack() as stack:
            server_tools, recordings = NO_SERVER_TOOLS, NO_RECORDINGS
            if not request.blind:
                offered = mcp_tools.open_server_tools(workspace, prepared.skill, venue.tools(), simulated=True)
                server_tools = await stack.enter_async_context(offered)
                recordings = StoredRecordings(workspace.database)
            stored = run.params.get("manner")
            for policy in _EARLIER if stored is None else (read_policy(stored),):
                collector = _KeyCollector(Replayed(records), model, request.repeat)
                connections = Connections(collector, policy, server_tools=server_tools, recordings=recordings)
                with suppress(ReplayMismatch):
                    await replay_until(prepared, records, request.to_at, connections)
                    rebuilt.append(collector.uses)
    return rebuilt


def _answer_line(reply: StoredReply, used: list[tuple[int, int]]) -> AnswerLine:
    return AnswerLine(
        key=reply.key,
        model=reply.model,
        run_id=reply.run_id,
        cost_usd=None if reply.cost_usd is None else text(reply.cost_usd),
        created_at=reply.created_at,
        reply=write_reply(reply.reply).decode(),
        used=[list(use) for use in used],
    )
