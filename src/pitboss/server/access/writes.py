"""Which requests change something: those are entered into the audit log and need a scope to write."""

API = "/api"
UNSAFE = frozenset({"POST", "PUT", "PATCH", "DELETE"})
READING = frozenset(
    f"{API}/{path}" for path in ("skills/check", "skills/preview", "skills/edit", "estimate", "studies/estimate")
)
"""POST requests that change nothing: they have a body because their input is long."""


def is_write(method: str, path: str) -> bool:
    """Whether a request changes something. An unsafe method does, unless its path is in `READING`."""
    return method in UNSAFE and path not in READING
