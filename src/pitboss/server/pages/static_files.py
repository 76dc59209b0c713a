"""`/static/…`: style sheets and scripts. Their address has a digest of their content, so that browsers may keep them."""

from fastapi import APIRouter, Response

from pitboss.server.pages.frame import static_file
from pitboss.server.problem import Problem

router = APIRouter()
TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


@router.get("/static/{digest}/{name}")
def static(digest: str, name: str) -> Response:
    """A static file. Needs no credentials: it holds nothing of the workspace."""
    del digest
    content = static_file(name)
    if content is None:
        raise Problem(404, "not_found", "there is no such file")
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(content, 200, headers, TYPES[name.rpartition(".")[2]])
