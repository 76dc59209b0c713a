"""Entity tags: a response whose content a client has already is answered with 304 and no content."""

import hashlib
from typing import Any

import orjson
from fastapi import Request, Response
from starlette.status import HTTP_304_NOT_MODIFIED

NOT_MODIFIED: dict[int | str, dict[str, Any]] = {
    HTTP_304_NOT_MODIFIED: {"description": "The content with the tag of `If-None-Match` is still current."}
}
"""The response that routes with a tag declare."""
REVALIDATE = "private, no-cache"
"""Caches may keep it, and ask each time whether it is current."""


def tagged_json(request: Request, document: Any) -> Response:
    """A document as JSON with a tag of its content."""
    body = orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_SORT_KEYS)
    tag = hashlib.sha256(body).hexdigest()[:32]
    return not_modified(request, tag) or Response(body, headers=tag_headers(tag), media_type="application/json")


def not_modified(request: Request, tag: str) -> Response | None:
    """The response to a client that has the content with this tag; None for any other."""
    tags = [part.strip().removeprefix("W/").strip('"') for part in request.headers.get("if-none-match", "").split(",")]
    if tag not in tags and "*" not in tags:
        return None
    return Response(status_code=HTTP_304_NOT_MODIFIED, headers=tag_headers(tag))


def tag_headers(tag: str) -> dict[str, str]:
    """The headers of a response with a tag."""
    return {"ETag": f'"{tag}"', "Cache-Control": REVALIDATE}
