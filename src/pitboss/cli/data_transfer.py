"""`pitboss data push` and `data pull`: copy the lake to and from object storage, for workers on other machines."""

from typing import Annotated

from pitboss.cli.data_download import bar
from pitboss.terminal import screen
from pitboss.terminal.options import Json, given
from pitboss.terminal.workspace_options import Here


def push(
    address: str,
    /,
    *,
    again: Annotated[bool, given("--again", "Send what is there already, too, if it was damaged.")] = False,
    replace: Annotated[bool, given("--replace", "Let the lake there lose files that this one does not have.")] = False,
    json: Json = False,
    place: Here,
) -> int:
    """Copy the lake of this workspace to object storage, from where other machines read it.

    Only missing files are sent, and readers see the new lake once all of it has arrived. After an interruption the
    same command continues. Credentials come from the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
    AWS_REGION, AWS_ENDPOINT_URL; likewise those of Google and Azure).

    For example:

        pitboss data push s3://bucket/prefix
        PITBOSS_LAKE=s3://bucket/prefix pitboss data list

    Parameters
    ----------
    address
        Where to: s3://bucket/prefix, gs://bucket/prefix, az://container/prefix or file:///folder.
    """
    from dataclasses import asdict

    from pitboss.bootstrap.lake_transfer import push_lake

    with bar("push") as show:
        done = push_lake(
            place.settings(), address, again, replace, lambda sent, of: show(sent / max(of, 1), f"{sent / 1e6:,.1f} MB")
        )
    pinned = f"{done.where}#{done.pin}"
    if json:
        screen.put_json({**asdict(done), "pinned": pinned})
        return 0
    what = f"{done.files:,} files, {done.bytes / 1e6:,.1f} MB"
    sent = f"{done.sent_files:,} sent, {done.sent_bytes / 1e6:,.1f} MB" if done.sent_files else "all there already"
    screen.put(f"pushed {what} to {done.where}; {sent}")
    screen.put(f'to read it: lake = "{done.where}" in settings.toml, or PITBOSS_LAKE; this very push is')
    screen.put(f"  {pinned}")
    return 0


def pull(*, json: Json = False, place: Here) -> int:
    """Fetch the complete lake from object storage now, instead of when a run needs it.

    For a machine without a network, or an image that contains the data. Files that are present are not fetched again.

    For example:

        PITBOSS_LAKE=s3://bucket/prefix pitboss data pull
    """
    from dataclasses import asdict

    from pitboss.bootstrap.lake_transfer import pull_lake

    done = pull_lake(place.settings())
    if json:
        screen.put_json(asdict(done))
        return 0
    what = f"{done.files:,} files, {done.bytes / 1e6:,.1f} MB" if done.files else "nothing, all is here already"
    screen.put(f"fetched {what}, of {done.where}")
    screen.put(f"  push {done.pin}")
    return 0
