"""The build: which pitboss made a run, and so which one can be trusted to go on with it in the same way.

The version and a digest of the package's own files, data included: no git, no installer needs to have been there. It says
nothing about the libraries underneath; those are pinned by whoever installs.
"""

from functools import cache
from hashlib import sha256
from pathlib import Path

import pitboss
from pitboss import __version__

SHOWN = 12


@cache
def build() -> str:
    """The build of this process, read once: what it has imported does not change when its files do."""
    return f"{__version__}+{source_digest(Path(pitboss.__file__).parent)[:SHOWN]}"


def source_digest(folder: Path) -> str:
    """One digest over the names and contents of all files of a package."""
    whole = sha256()
    for path in sorted(folder.rglob("*"), key=lambda one: one.relative_to(folder).as_posix()):
        if path.is_file() and path.suffix != ".pyc" and "__pycache__" not in path.parts:
            name, content = path.relative_to(folder).as_posix().encode(), path.read_bytes()
            whole.update(b"%d:%b%d:" % (len(name), name, len(content)))
            whole.update(content)
    return whole.hexdigest()
