"""The notification channels of each owner: those of the settings belong to `local`, those of other users are in `notifications.toml`.

The file has one table for each owner, with the addresses and the name of the secret that signs for its webhook; the mail server, the bot
and the events are those of the settings. What happens to a deployment is told through the channels of its owner, and through no others.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from pitboss.bootstrap.settings import Settings
from pitboss.core.errors import UserError

FILE = "notifications.toml"
LOCAL = "local"


class OwnerChannels(BaseModel):
    """The addresses of one owner, and the name of the secret of its webhook; empty: the one that is named after the owner."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    notify_webhook_url: str = ""
    notify_telegram_chat: str = ""
    notify_email_to: str = ""
    webhook_secret: str = ""


def settings_of(settings: Settings, owner: str) -> Settings:
    """The settings with the addresses of an owner; without any if it has none."""
    if owner == LOCAL:
        return settings
    own = read_owners(settings.home).get(owner, OwnerChannels())
    return settings.model_copy(update=own.model_dump(exclude={"webhook_secret"}))


def read_owners(home: Path) -> Mapping[str, OwnerChannels]:
    """The channels of the owners besides `local`; empty if there is no file."""
    path = home / FILE
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}", "each owner is a table, such as [anna]") from None
    owners: dict[str, OwnerChannels] = {}
    for owner, entry in content.items():
        try:
            owners[owner] = OwnerChannels.model_validate(entry)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, (owner, *first["loc"])))
            names = ", ".join(OwnerChannels.model_fields)
            raise UserError(f"{path}: {where}: {first['msg']}", f"each owner is a table with {names}") from None
    return owners
