"""`/api/users` and `/api/me`: who may use the server, and the caller itself."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, Field

from pitboss.bootstrap.accounts import Accounts, digest_of, user_document
from pitboss.core.role import Role
from pitboss.server.access.caller import Admin, Caller, Viewer
from pitboss.server.access.gate import session_of
from pitboss.server.problem import Problem, responses
from pitboss.store.passwords import LONGEST
from pitboss.store.schema import LOCAL
from pitboss.store.users import NAME

router = APIRouter(responses=responses())
UserName = Annotated[str, Path(max_length=64, description="The name of a user.", examples=["anna"])]
Password = Annotated[
    str, Field(max_length=LONGEST, description="At least 12 characters.", examples=["four plain words here"])
]


class ListedUser(BaseModel):
    """A user, without anything secret."""

    name: str = Field(examples=["anna"])
    owner: str = Field(examples=["anna"], description="Whose skills and runs the user sees.")
    role: Role
    disabled: bool
    created_at: str = Field(examples=["2026-01-01T00:00:00Z"])


class NewUser(BaseModel):
    """A user to be added."""

    name: str = Field(pattern=f"^{NAME.pattern}$", examples=["anna"])
    role: Role
    password: Password
    owner: str = Field("", pattern=f"^({NAME.pattern})?$", description="Empty: the user's own rows.")


class ChangedUser(BaseModel):
    """What is to be changed; what is left out stays."""

    role: Role | None = Field(None, examples=["author"])
    disabled: bool | None = None
    password: Password | None = None
    owner: str | None = Field(None, pattern=f"^{NAME.pattern}$")


class Me(BaseModel):
    """The caller."""

    name: str = Field(examples=["local"])
    owner: str = Field(examples=["local"])
    role: Role
    scopes: list[str] | None = Field(
        examples=[None], description="What its token is limited to; null: what its role allows."
    )


class ChangedPassword(BaseModel):
    """The present password and a new one."""

    present: str = Field(max_length=LONGEST, examples=["the old words here"])
    password: Password


def accounts_of(request: Request) -> Accounts:
    """The accounts of the server."""
    return request.app.state.credentials.accounts


@router.get("/users", tags=["users"], response_model=list[ListedUser], operation_id="list_users")
def list_users(request: Request, caller: Admin) -> list[dict[str, Any]]:
    """All users by name."""
    del caller
    return [user_document(user) for user in accounts_of(request).users.list()]


@router.post("/users", tags=["users"], response_model=ListedUser, status_code=201, operation_id="add_user")
def add_user(request: Request, caller: Admin, user: NewUser) -> dict[str, Any]:
    """Add a user."""
    del caller
    request.state.audit = f"{user.name} as {user.role}"
    return user_document(accounts_of(request).add_user(user.name, user.role, user.password, user.owner))


@router.patch(
    "/users/{name}", tags=["users"], response_model=ListedUser, responses=responses(404), operation_id="change_user"
)
def change_user(request: Request, caller: Admin, name: UserName, change: ChangedUser) -> dict[str, Any]:
    """Change a user. Its sessions end with a new password, and when it is disabled."""
    accounts = accounts_of(request)
    if name == LOCAL or accounts.users.get(name) is None:
        raise Problem(404, "not_found", "there is no such user")
    if name == caller.name and (change.disabled or (change.role is not None and change.role != caller.role)):
        raise Problem(422, "user_error", "you cannot disable yourself or change your own role", "ask another admin")
    changes = change.model_dump(exclude_none=True)
    request.state.audit = ", ".join(key if key == "password" else f"{key} {value}" for key, value in changes.items())
    user = accounts.change_user(name, **changes)
    request.app.state.credentials.forget()
    return user_document(user)


@router.get("/me", tags=["account"], response_model=Me, operation_id="show_me")
def show_me(caller: Viewer) -> dict[str, Any]:
    """The caller: its name, its role, the scopes of its token, and whose rows it sees."""
    scopes = None if caller.scopes is None else sorted(caller.scopes)
    return {"name": caller.name, "owner": caller.owner, "role": caller.role, "scopes": scopes}


@router.put("/me/password", tags=["account"], status_code=204, operation_id="change_own_password")
def change_own_password(request: Request, caller: Viewer, change: ChangedPassword) -> None:
    """Set a new password of one's own. Other sessions end. A token cannot do this: it needs a session."""
    _require_session(caller)
    credentials = request.app.state.credentials
    credentials.check_own_password(caller.name, change.present, request.state.address)
    session = digest_of(session_of(request.headers))
    accounts_of(request).change_user(caller.name, password=change.password, keep_session=session)
    credentials.forget()


def _require_session(caller: Caller) -> None:
    if not caller.csrf:
        raise Problem(403, "forbidden", "this needs a session, not a token", "sign in")
