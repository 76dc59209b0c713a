"""`/api/tokens`: the tokens with which programs use this API. A token is shown once, when it is created."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, Field

from pitboss.bootstrap.accounts import MOST_DAYS, token_document
from pitboss.core.role import Role
from pitboss.server.access.caller import Viewer
from pitboss.server.access.scopes import check_scopes
from pitboss.server.api.routes.users import accounts_of
from pitboss.server.problem import Problem, refused_as, responses
from pitboss.store.api_tokens import LONGEST_LABEL

router = APIRouter(prefix="/tokens", tags=["account"], responses=responses())
MOST_SCOPES = 100
TokenId = Annotated[str, Path(max_length=64, description="The id of a token.", examples=["3f2a9c01d4e5"])]


class ListedToken(BaseModel):
    """A token without its secret."""

    id: str = Field(examples=["3f2a9c01d4e5"])
    user: str = Field(examples=["local"])
    label: str = Field(examples=["nightly backtests"])
    role: Role
    scopes: list[str] | None = Field(examples=[["runs:write", "skills:read"]])
    state: str = Field(examples=["valid"], description="valid, expired or revoked")
    created_at: str
    last_used_at: str | None
    expires_at: str | None


class CreatedToken(ListedToken):
    """A new token. `token` is not shown again."""

    token: str = Field(examples=["pb_…"])


class NewToken(BaseModel):
    """A token to be created."""

    label: str = Field(min_length=1, max_length=LONGEST_LABEL, examples=["nightly backtests"])
    role: Role = Field("viewer", description="What it may do at most; never more than its user.")
    scopes: list[str] | None = Field(
        None,
        min_length=1,
        max_length=MOST_SCOPES,
        examples=[["runs:write", "skills:read"]],
        description="What it is limited to; none: whatever its role allows. `x-required-scope` of an operation names its scope.",
    )
    days: int | None = Field(None, ge=1, le=MOST_DAYS, description="After how many days it expires; none: never.")


@router.get("", response_model=list[ListedToken], operation_id="list_tokens")
def list_tokens(request: Request, caller: Viewer) -> list[dict[str, Any]]:
    """The tokens of the caller, newest first."""
    accounts = accounts_of(request)
    return [token_document(token, accounts.now()) for token in accounts.tokens.list(caller.name)]


@router.post("", response_model=CreatedToken, status_code=201, operation_id="create_token")
def create_token(request: Request, caller: Viewer, new: NewToken) -> dict[str, Any]:
    """Create a token of the caller. A token cannot create another: it would outlive its own end."""
    if caller.token_id:
        raise Problem(403, "forbidden", "a token cannot create tokens", "sign in, or use `pitboss tokens create`")
    if new.scopes is not None:
        check_scopes(new.scopes, request.app.state.scopes)
    accounts = accounts_of(request)
    user = accounts.users.get(caller.name)
    if user is None:
        raise Problem(403, "forbidden", "the user of this request is gone")
    token, stored = accounts.create_token(user, new.label, new.role, new.days, new.scopes)
    request.state.audit = f"{stored.id} {stored.role} {' '.join(sorted(stored.scopes or ()))}".rstrip()
    return {**token_document(stored, accounts.now()), "token": token}


@router.delete("/{token_id}", status_code=204, responses=responses(404), operation_id="revoke_token")
def revoke_token(request: Request, caller: Viewer, token_id: TokenId) -> None:
    """Refuse a token of the caller from now on; an admin may revoke those of others."""
    with refused_as(404, "not_found"):
        accounts_of(request).tokens.revoke(token_id, None if caller.may("admin") else caller.name)
    request.app.state.credentials.forget()
