"""The files of a lake, to compare lakes byte by byte."""

from pathlib import Path


def lake_files(root: Path) -> dict[str, bytes]:
    """The content of every file of a lake by its path, the manifest included and the lock left out."""
    files = (path for path in sorted(root.rglob("*")) if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(root)): path.read_bytes() for path in files}
