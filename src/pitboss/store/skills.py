"""Skills and their versions, as runs used them. A stored version never changes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, and_, select

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.core.suggestion import suggestion
from pitboss.store import sealed_rows as rows
from pitboss.store.database import Database
from pitboss.store.schema import LOCAL, skill_texts, skill_versions, skills


@dataclass(frozen=True, slots=True)
class StoredSkill:
    """One version of a skill document."""

    id: str
    name: str
    version: int
    digest: str
    body: bytes
    created_at: Instant


@dataclass(frozen=True, slots=True)
class SkillLine:
    """A skill in a list."""

    id: str
    name: str
    latest_version: int


class Skills:
    """The skills in a database.

    With `owner` they are the skills of one owner: those of others do not exist for it. Without, those of all owners; of several
    with the same name the one of `LOCAL` is taken, which is also the owner of what is saved.
    """

    def __init__(
        self, database: Database, now: Callable[[], Instant], new_id: Callable[[], str], owner: str | None = None
    ) -> None:
        self._database = database
        self._now = now
        self._new_id = new_id
        self._owner = owner

    def owned_by(self, owner: str) -> "Skills":
        """The skills of one owner."""
        return Skills(self._database, self._now, self._new_id, owner)

    def save(self, name: str, digest: str, body: bytes, text: str | None = None) -> StoredSkill:
        """Store a document under its name, with the text that its author wrote. Content that is stored already keeps its version."""
        owner = self._owner or LOCAL
        with self._database.write() as connection:
            self._database.lock_name(connection, f"skill/{owner}/{name}")
            skill = rows.fetch(connection, skills, {"owner": owner, "name": name}, lock=True)
            if skill is None:
                number, skill = 1, {"id": self._new_id(), "name": name, "latest_version": 1, "owner": owner}
                rows.add(connection, skills, skill)
            else:
                same = rows.fetch(connection, skill_versions, {"skill_id": skill["id"], "digest": digest})
                if same is not None:
                    self._keep_text(connection, same, text)
                    return _stored(skill, same)
                number = skill["latest_version"] + 1
                rows.change(connection, skills, skill, {"latest_version": number})
            version = {
                "skill_id": skill["id"],
                "version": number,
                "digest": digest,
                "body": body,
                "created_at": self._now(),
            }
            rows.add(connection, skill_versions, version)
            self._keep_text(connection, version, text)
            return _stored(skill, version)

    def _keep_text(self, connection: Any, version: dict[str, Any], text: str | None) -> None:
        if text is None:
            return
        key = {"skill_id": version["skill_id"], "version": version["version"]}
        values = {"body": text.encode(), "saved_at": self._now()}
        row = rows.fetch(connection, skill_texts, key, lock=True)
        if row is None:
            rows.add(connection, skill_texts, {**key, **values})
        elif row["body"] != values["body"]:
            rows.change(connection, skill_texts, row, values)

    def text_of(self, stored: StoredSkill) -> str | None:
        """The text of a version as its author wrote it; None if only its content was stored, as by a run."""
        with self._database.read() as connection:
            row = rows.fetch(connection, skill_texts, {"skill_id": stored.id, "version": stored.version})
        if row is None:
            return None
        rows.require_intact(skill_texts, row)
        return bytes(row["body"]).decode()

    def versions(self, name: str) -> Sequence[StoredSkill]:
        """Every version of a skill, newest first."""
        latest = self.get(name)
        order = skill_versions.c.version.desc()
        with self._database.read() as connection:
            query = rows.raw(skill_versions).where(skill_versions.c.skill_id == latest.id).order_by(order)
            stored = rows.fetch_all(connection, query)
        return [_stored({"id": latest.id, "name": latest.name}, row) for row in stored]

    def get(self, name: str, version: int | None = None) -> StoredSkill:
        """A version of the skill of this name, by default the latest."""
        with self._database.read() as connection:
            skill = self._find(connection, name)
            if skill is None:
                listed = self._bounded(select(skills.c.name)).distinct().order_by(skills.c.name)
                names = connection.execute(listed).scalars().all()
                hint = suggestion(name, names, "stored are:") or "a skill is stored when it is first run"
                raise UserError(f"no skill {name!r} is stored", hint)
            return self._version(connection, skill, skill["latest_version"] if version is None else version)

    def get_by_id(self, skill_id: str, version: int) -> StoredSkill:
        """The version that a run refers to."""
        with self._database.read() as connection:
            key = {"id": skill_id} if self._owner is None else {"id": skill_id, "owner": self._owner}
            skill = rows.fetch(connection, skills, key)
            if skill is None:
                raise UserError(f"no skill with id {skill_id!r} is stored")
            return self._version(connection, skill, version)

    def list(self) -> Sequence[SkillLine]:
        """All skills by name."""
        with self._database.read() as connection:
            stored = rows.fetch_all(connection, self._bounded(rows.raw(skills)).order_by(skills.c.name, skills.c.owner))
        return [SkillLine(row["id"], row["name"], row["latest_version"]) for row in stored]

    def latest(self) -> Sequence[StoredSkill]:
        """The latest version of every skill, by name."""
        is_latest = and_(skill_versions.c.skill_id == skills.c.id, skill_versions.c.version == skills.c.latest_version)
        with self._database.read() as connection:
            named = rows.fetch_all(connection, self._bounded(rows.raw(skills)).order_by(skills.c.name, skills.c.owner))
            query = self._bounded(rows.raw(skill_versions).join(skills, is_latest))
            versions = {row["skill_id"]: row for row in rows.fetch_all(connection, query)}
        return [_stored(skill, versions[skill["id"]]) for skill in named]

    def _find(self, connection: Connection, name: str) -> dict[str, Any] | None:
        if self._owner is not None:
            return rows.fetch(connection, skills, {"owner": self._owner, "name": name})
        same_name = rows.fetch_all(connection, rows.raw(skills).where(skills.c.name == name).order_by(skills.c.owner))
        return next((skill for skill in same_name if skill["owner"] == LOCAL), same_name[0] if same_name else None)

    def _bounded(self, query: Any) -> Any:
        return query if self._owner is None else query.where(skills.c.owner == self._owner)

    def _version(self, connection: Any, skill: dict[str, Any], version: int) -> StoredSkill:
        row = rows.fetch(connection, skill_versions, {"skill_id": skill["id"], "version": version})
        if row is None:
            raise UserError(
                f"skill {skill['name']!r} has no version {version}", f"versions go from 1 to {skill['latest_version']}"
            )
        return _stored(skill, row)


def _stored(skill: dict[str, Any], version: dict[str, Any]) -> StoredSkill:
    return StoredSkill(
        skill["id"], skill["name"], version["version"], version["digest"], version["body"], version["created_at"]
    )
