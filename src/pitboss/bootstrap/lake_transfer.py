"""Push and pull of a lake: combines the workspace's lake, object storage and its credentials."""

from dataclasses import dataclass

from pitboss.bootstrap.settings import Settings
from pitboss.bootstrap.workspace import lake_of, lake_variables
from pitboss.core.errors import UserError
from pitboss.data.lake_push import PushProgress, PushResult, push
from pitboss.data.object_storage import ObjectSource, open_objects, read_address
from pitboss.data.remote_lake import RemoteLake


@dataclass(frozen=True, slots=True)
class PullResult:
    """The result of a pull: the number of files and bytes fetched, and the push they belong to."""

    where: str
    pin: str
    files: int
    bytes: int


def push_lake(settings: Settings, text: str, again: bool, replace: bool, progress: PushProgress) -> PushResult:
    """Push the lake in the workspace's folder to an address."""
    address = read_address(text)
    if address.pin:
        raise UserError("the target of a push must not contain a digest", "remove the # and everything after it")
    objects = open_objects(address, lake_variables(address), writing=True)
    return push(settings.home / "lake", ObjectSource(str(address), lambda: objects), again, replace, progress)


def pull_lake(settings: Settings) -> PullResult:
    """Fetch the complete lake that the settings name."""
    lake = lake_of(settings)
    if not isinstance(lake, RemoteLake):
        raise UserError(
            "the lake of this workspace is a local folder: there is nothing to fetch",
            "set `lake` in settings.toml or PITBOSS_LAKE, such as s3://bucket/prefix",
        )
    fetched = lake.fetch_all()
    return PullResult(lake.address, lake.pin, fetched.files, fetched.bytes)
