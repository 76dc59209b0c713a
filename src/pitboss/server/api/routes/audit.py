"""`/api/audit`: who has changed what, and when."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from pitboss.core.instant import iso
from pitboss.server.access.caller import Admin
from pitboss.server.problem import responses
from pitboss.store.audit_log import AuditEntry

router = APIRouter(prefix="/audit", tags=["audit"], responses=responses())


class ListedEntry(BaseModel):
    """An entry of the audit log."""

    id: int
    at: str
    user_name: str = Field(examples=["anna"])
    address: str = Field(examples=["127.0.0.1"])
    action: str = Field(examples=["POST /api/runs"])
    object: str = Field(examples=["/api/runs"])
    detail: str = Field(examples=["201"])
    intact: bool = Field(description="Whether the entry is unchanged since it was written.")


class AuditPage(BaseModel):
    """Entries, newest first; `next` is the `before` of the next page."""

    entries: list[ListedEntry]
    next: int | None


@router.get("", response_model=AuditPage, operation_id="list_audit_entries")
def list_entries(
    request: Request,
    caller: Admin,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    before: Annotated[int | None, Query(ge=1, le=1 << 62, description="Entries older than this one.")] = None,
    user: Annotated[str, Query(max_length=64)] = "",
) -> dict[str, Any]:
    """Every write by anybody, and every attempt to sign in."""
    del caller
    entries = request.app.state.audit.listing(limit, before, user)
    last = entries[-1].id if len(entries) == limit else None
    return {"entries": [entry_document(entry) for entry in entries], "next": last}


def entry_document(entry: AuditEntry) -> dict[str, Any]:
    """An entry with its time as text."""
    return {**asdict(entry), "at": iso(entry.at)}
