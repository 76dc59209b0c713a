"""`/api/keys`: provider keys. They can be set and removed; no route returns a value."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, Field

from pitboss.bootstrap.key_entries import known_keys, remove_key, set_key
from pitboss.bootstrap.keys import variable_of
from pitboss.bootstrap.settings import Settings
from pitboss.server.access.caller import Admin, OwnWorkspace
from pitboss.server.access.gate import KEYS
from pitboss.server.problem import refused_as, responses
from pitboss.store.secrets import LONGEST

router = APIRouter(prefix="/keys", tags=["keys"], responses=responses())
KeyName = Annotated[str, Path(max_length=64, description="A variable or a provider.", examples=["GROQ_API_KEY"])]


class ListedKey(BaseModel):
    """A key by its name: who uses it, where it is sent, and whether it is set."""

    name: str = Field(examples=["GROQ_API_KEY"])
    providers: list[str] = Field(examples=[["groq"]])
    hosts: list[str] = Field(examples=[["api.groq.com"]])
    set_at: str | None = Field(description="Since when it is stored; none: it is not.")
    in_environment: bool = Field(description="Whether the server's environment has it, which takes precedence.")


class NewKey(BaseModel):
    """The value of a key."""

    value: str = Field(min_length=1, max_length=LONGEST, examples=["gsk_…"])


@router.get("", response_model=list[ListedKey], operation_id="list_keys")
def list_keys(caller: Admin, workspace: OwnWorkspace) -> list[dict[str, Any]]:
    """Every key that a provider or MCP server can use, never its value."""
    del caller
    return known_keys(workspace.settings)


@router.put("/{name}", status_code=204, operation_id="store_key")
def store_key(request: Request, caller: Admin, workspace: OwnWorkspace, name: KeyName, key: NewKey) -> None:
    """Store a key, encrypted. It replaces the one that was stored."""
    del caller
    _audit_known_key(request, workspace.settings, name)
    variable, _ = set_key(workspace.settings, name, key.value)
    request.state.audit_path = KEYS + variable


@router.delete("/{name}", status_code=204, responses=responses(404), operation_id="delete_key")
def delete_key(request: Request, caller: Admin, workspace: OwnWorkspace, name: KeyName) -> None:
    """Remove a stored key."""
    del caller
    with refused_as(404, "not_found"):
        _audit_known_key(request, workspace.settings, name)
        remove_key(workspace.settings, name)


def _audit_known_key(request: Request, settings: Settings, name: str) -> None:
    """Enter the key of a name into the audit log if it is known. Any other name may be a key that was given in its place."""
    variable = variable_of(name)
    if any(row["name"] == variable for row in known_keys(settings)):
        request.state.audit_path = KEYS + variable
