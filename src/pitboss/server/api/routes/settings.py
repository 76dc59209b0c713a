"""`/api/settings`: the settings of the workspace, and changing those of budgets."""

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, Field

from pitboss.bootstrap.settings_description import describe
from pitboss.bootstrap.settings_file import EDITABLE, change_setting, source_of
from pitboss.server.access.caller import Admin, OwnWorkspace
from pitboss.server.problem import responses

router = APIRouter(prefix="/settings", tags=["settings"], responses=responses())
SettingKey = Annotated[str, Path(max_length=64, description="The key of a setting.", examples=["daily_usd"])]


class ListedSetting(BaseModel):
    """A setting with its value, where that comes from, and whether the app can change it."""

    key: str = Field(examples=["daily_usd"])
    variable: str = Field(examples=["PITBOSS_DAILY_USD"])
    value: str = Field(examples=["5"])
    default: str = Field(examples=["5"])
    meaning: str | None
    source: str = Field(examples=["default"], description="environment, file or default")
    editable: bool


class NewValue(BaseModel):
    """The new value of a setting."""

    value: str = Field(max_length=40, examples=["12.50"])


@router.get("", response_model=list[ListedSetting], operation_id="list_settings")
def list_settings(caller: Admin, workspace: OwnWorkspace) -> list[dict[str, Any]]:
    """Every setting."""
    del caller
    return [
        {**row, "source": source_of(workspace.settings, row["key"]), "editable": row["key"] in EDITABLE}
        for row in describe(workspace.settings)
    ]


@router.put("/{key}", status_code=204, operation_id="store_setting")
def store_setting(request: Request, caller: Admin, workspace: OwnWorkspace, key: SettingKey, new: NewValue) -> None:
    """Change a budget in `settings.toml`. It holds for requests from now on, and for workers that start from now on."""
    del caller
    request.state.audit = new.value
    settings = change_setting(workspace.settings, key, new.value)
    state = request.app.state
    kept = {"home": workspace.settings.home, "database_url": workspace.settings.database_url}
    state.workspace = replace(state.workspace, settings=settings.model_copy(update=kept))
