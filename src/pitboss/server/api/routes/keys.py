"""`/api/keys`: provider keys. They can be set and removed; no route returns a value."""

from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field

from pitboss.bootstrap.key_entries import known_keys, remove_key, set_key
from pitboss.server.access.caller import Admin, OwnWorkspace
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
def store_key(caller: Admin, workspace: OwnWorkspace, name: KeyName, key: NewKey) -> None:
    """Store a key, encrypted. It replaces the one that was stored."""
    del caller
    set_key(workspace.settings, name, key.value)


@router.delete("/{name}", status_code=204, responses=responses(404), operation_id="delete_key")
def delete_key(caller: Admin, workspace: OwnWorkspace, name: KeyName) -> None:
    """Remove a stored key."""
    del caller
    with refused_as(404, "not_found"):
        remove_key(workspace.settings, name)
