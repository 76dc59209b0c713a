"""`/api/skills`: saved skills with their versions; check, preview and edit of documents."""

from contextlib import nullcontext
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.instant import parse_instant
from pitboss.runs import documents
from pitboss.runs.skill_editing import check_document, edit_text, value_of_text
from pitboss.runs.skill_listing import (
    example_rows,
    field_differences,
    find_version,
    skill_rows,
    version_document,
    version_rows,
)
from pitboss.runs.skill_preview import preview_document, preview_skill
from pitboss.runs.skill_reference import check_given
from pitboss.runs.venues import default_venue, installed, venue_named
from pitboss.server.access.caller import Author, OwnWorkspace, Viewer
from pitboss.server.api.skill_documents import (
    CheckDocument,
    EditBody,
    EditedText,
    GivenSkill,
    PreviewBody,
    PreviewDocument,
    SaveBody,
    SkillDifference,
    SkillList,
    SkillVersion,
    SkillWithVersions,
    StoredVersion,
)
from pitboss.server.api.tagged import NOT_MODIFIED, tagged_json
from pitboss.server.problem import Problem, responses
from pitboss.skill.document import json_schema
from pitboss.store.skills import StoredSkill

SCHEMA_EXAMPLE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/json": {"example": {"title": "pitboss skill", "type": "object", "properties": {}}}}}
}
router = APIRouter(prefix="/skills", tags=["skills"], responses=responses())

Name = Annotated[str, Path(max_length=200, examples=["trend-thesis"])]
Number = Annotated[int, Path(ge=1, le=1_000_000_000)]


@router.get("", response_model=SkillList, operation_id="list_skills", summary="List skills")
def list_skills(workspace: OwnWorkspace) -> dict[str, Any]:
    """The saved skills with their last runs, newest first, and the shipped examples of every venue."""
    return {"skills": skill_rows(workspace), "examples": example_rows()}


@router.get("/schema", responses=SCHEMA_EXAMPLE, operation_id="skill_schema", summary="JSON Schema of skills")
def schema(caller: Viewer, venue: Annotated[str, Query(max_length=64)] = "") -> dict[str, Any]:
    """The JSON Schema of skill documents of a venue, as `skill schema` prints it."""
    del caller
    if venue and venue not in installed():
        raise Problem(422, "user_error", f"there is no venue {venue!r}", f"installed: {', '.join(installed())}")
    return json_schema((venue_named(venue) if venue else default_venue()).skill_type())


@router.post("/check", response_model=CheckDocument, operation_id="check_skill", summary="Check a skill")
def check(body: GivenSkill, workspace: OwnWorkspace) -> dict[str, Any]:
    """Every error of a document, with its line and a hint. An invalid document is a successful response."""
    skill, text = documents.given_text(body.skill, body.text)
    result = check_given(workspace, skill, text, body.set)
    return check_document(result, text)


@router.post("/preview", response_model=PreviewDocument, operation_id="preview_skill", summary="Preview a prompt")
def preview(body: PreviewBody, workspace: OwnWorkspace) -> dict[str, Any]:
    """The exact prompt of one tick, its tools, their size and what a tick costs. No model is called."""
    plain = documents.read_given(workspace, body.skill, body.text, body.set)
    at = parse_instant(body.at) if body.at else None
    prompt = preview_skill(
        plain, workspace.lake, workspace.settings, lambda: nullcontext(workspace), at=at, data_venue=body.data_venue
    )
    return preview_document(prompt, plain, workspace.settings, body.model)


@router.post("/edit", response_model=EditedText, operation_id="edit_skill_text", summary="Change one field of a text")
def edit(body: EditBody, workspace: OwnWorkspace) -> dict[str, Any]:
    """The text with one field changed, comments kept, and its check. Nothing is stored."""
    value = body.value
    if body.value_text is not None:
        value = value_of_text(body.text, body.path, body.value_text)
    return edit_text(workspace.settings, body.text, body.path, value)


@router.get(
    "/{name:path}/versions/{number}",
    response_model=SkillVersion,
    responses={**responses(404), **NOT_MODIFIED},
    operation_id="show_skill_version",
    summary="Show a version of a skill",
)
def version(name: Name, number: Number, request: Request, workspace: OwnWorkspace) -> Response:
    """One version of a saved skill, with a tag of its content."""
    return tagged_json(request, version_document(workspace, _stored_skill(workspace, name, number)))


@router.get(
    "/{name:path}/diff",
    response_model=SkillDifference,
    responses=responses(404),
    operation_id="compare_skill_versions",
    summary="Compare two versions of a skill",
)
def diff(
    name: Name,
    workspace: OwnWorkspace,
    from_version: Annotated[int, Query(alias="from", ge=1, le=1_000_000_000)],
    to_version: Annotated[int, Query(alias="to", ge=1, le=1_000_000_000)],
) -> dict[str, Any]:
    """The fields in which two versions of a skill differ."""
    first, second = _stored_skill(workspace, name, from_version), _stored_skill(workspace, name, to_version)
    fields = field_differences(first, second)
    return {"name": name, "from_version": from_version, "to_version": to_version, "fields": fields}


@router.get(
    "/{name:path}",
    response_model=SkillWithVersions,
    responses=responses(404),
    operation_id="show_skill",
    summary="Show a skill",
)
def one(name: Name, workspace: OwnWorkspace) -> dict[str, Any]:
    """The latest version of a saved skill, and all its versions."""
    stored = _stored_skill(workspace, name)
    return {**version_document(workspace, stored), "versions": version_rows(workspace, name)}


@router.put(
    "/{name:path}",
    response_model=StoredVersion,
    responses=responses(404, 409),
    operation_id="save_skill",
    summary="Save a skill",
)
def save(name: Name, body: SaveBody, caller: Author, workspace: OwnWorkspace, request: Request) -> dict[str, Any]:
    """Save a valid document as a new version of the skill of its name. The same content again keeps its version."""
    del caller
    result = documents.check(body.text, documents.suffix_of(body.text), workspace.settings)
    if result.skill is None:
        errors = [{"path": error.path, "message": error.message, "hint": error.hint} for error in result.errors]
        first = result.errors[0]
        detail = f"{first.path}: {first.message}" if first.path else first.message
        raise Problem(422, "invalid_skill", detail, first.hint, errors=errors)
    if result.skill.name != name:
        hint = f"save it as {result.skill.name}, or change the field name"
        raise Problem(409, "other_name", f"the document is named {result.skill.name!r}, not {name!r}", hint)
    request.app.state.check_skill_name(name)
    before = find_version(workspace, name)
    stored = documents.store(workspace, result.skill, body.text)
    is_new = before is None or stored.version > before.version
    return {"name": stored.name, "version": stored.version, "digest": stored.digest, "is_new": is_new}


def _stored_skill(workspace: Workspace, name: str, number: int | None = None) -> StoredSkill:
    stored = find_version(workspace, name, number)
    if stored is None:
        what = f"skill {name!r}" if number is None else f"version {number} of a skill {name!r}"
        raise Problem(404, "not_found", f"there is no {what}")
    return stored
