"""`pitboss data push` and `data pull`: copy the lake to and from object storage, for workers on other machines."""

from typing import Annotated

from pitboss.report.figures import plural
from pitboss.terminal import screen
from pitboss.terminal.options import Json, option
from pitboss.terminal.progress import progress_bar
from pitboss.terminal.workspace_options import Location


def push(
    address: str,
    /,
    *,
    again: Annotated[
        bool, option("--again", "Also send files that are there already, in case they are damaged.")
    ] = False,
    replace: Annotated[
        bool, option("--replace", "Remove files from the remote lake that this lake does not have.")
    ] = False,
    json: Json = False,
    location: Location,
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
        Target: s3://bucket/prefix, gs://bucket/prefix, az://container/prefix or file:///folder.
    """
    from dataclasses import asdict

    from pitboss.bootstrap.lake_transfer import push_lake

    with progress_bar("push") as show:
        pushed = push_lake(
            location.settings(),
            address,
            again,
            replace,
            lambda done_bytes, total: show(done_bytes / max(total, 1), f"{done_bytes / 1e6:,.1f} MB"),
        )
    pinned = f"{pushed.where}#{pushed.pin}"
    if json:
        screen.put_json({**asdict(pushed), "pinned": pinned})
        return 0
    content = f"{plural(pushed.files, 'file')}, {pushed.bytes / 1e6:,.1f} MB"
    upload = (
        f"{pushed.sent_files:,} sent, {pushed.sent_bytes / 1e6:,.1f} MB" if pushed.sent_files else "nothing to send"
    )
    screen.put(f"pushed {content} to {pushed.where}; {upload}")
    screen.put(f'to read it: lake = "{pushed.where}" in settings.toml, or PITBOSS_LAKE; to pin this push, use')
    screen.put(f"  {pinned}")
    return 0


def pull(*, json: Json = False, location: Location) -> int:
    """Fetch the complete lake from object storage now, instead of when a run needs it.

    For a machine without a network, or an image that contains the data. Files that are present are not fetched again.

    For example:

        PITBOSS_LAKE=s3://bucket/prefix pitboss data pull
    """
    from dataclasses import asdict

    from pitboss.bootstrap.lake_transfer import pull_lake

    pulled = pull_lake(location.settings())
    if json:
        screen.put_json(asdict(pulled))
        return 0
    content = (
        f"{plural(pulled.files, 'file')}, {pulled.bytes / 1e6:,.1f} MB"
        if pulled.files
        else "nothing, all files are here"
    )
    screen.put(f"fetched {content}, from {pulled.where}")
    screen.put(f"  push {pulled.pin}")
    return 0
