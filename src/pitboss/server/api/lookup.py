"""Find what a request names by its path or cursor, or answer 404."""

import re
from typing import Unpack

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.runs.deployments import run_named
from pitboss.server.problem import refused_as
from pitboss.store.deployments import Deployment
from pitboss.store.lifecycle import Status
from pitboss.store.run_filter import RunFilter
from pitboss.store.runs import Run, RunListing

_CURSOR = re.compile(r"(\d{1,18})\.([0-9a-zA-Z_-]{1,64})")


def named_run(workspace: Workspace, run_id: str) -> Run:
    """The run with an id, the only one whose id starts with it, or `last`, `last~1`, …"""
    with refused_as(404, "not_found"):
        return workspace.runs.get(run_id)


def named_subject(workspace: Workspace, some_id: str) -> Run:
    """The run with an id, or that of the deployment with it: what a conversation is about."""
    with refused_as(404, "not_found"):
        return run_named(workspace, some_id)


def named_deployment(workspace: Workspace, deployment_id: str) -> Deployment:
    """The deployment with an id, or the only one whose id starts with it; also by the id of its run."""
    with refused_as(404, "not_found"):
        return workspace.deployments.get(deployment_id)


def named_study(workspace: Workspace, study_id: str) -> str:
    """The full id of a study, given all of it or its start."""
    with refused_as(404, "not_found"):
        return workspace.studies.find(study_id)


def run_cursor(text: str) -> tuple[Instant, str] | None:
    """Where a page of the list of runs goes on: the cursor that `page_of_runs` returned; None for an empty text."""
    if not text:
        return None
    match = _CURSOR.fullmatch(text)
    if match is None:
        raise UserError("before is not a cursor of this list", "send `next` of the previous page, unchanged")
    return int(match[1]), match[2]


def page_of_runs(
    workspace: Workspace, limit: int, status: Status | None, **filters: Unpack[RunFilter]
) -> tuple[RunListing, str | None]:
    """At most `limit` runs, newest first, and the cursor of the next page; None on the last page.

    A cursor is written from a readable run, so further rows are read until there is one.
    """
    rows = limit + 1
    while True:
        listing = workspace.runs.listing(rows, status, **filters)
        has_more = len(listing.runs) + len(listing.damaged) == rows
        if listing.runs or not has_more:
            break
        rows *= 2
    page = listing.runs[:limit]
    cursor = f"{page[-1].created_at}.{page[-1].id}" if page and (has_more or len(listing.runs) > limit) else None
    return RunListing(page, listing.damaged), cursor
