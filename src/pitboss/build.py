"""The build: which pitboss a process is, and which one created a run and can continue it with the same result.

The version and a digest of the package's own files, data included; it needs neither git nor an installer. It does not cover
the libraries underneath: those are pinned by the installation.
"""

from functools import cache
from hashlib import sha256
from pathlib import Path

import pitboss
from pitboss import __version__

DIGEST_CHARS = 12


@cache
def build() -> str:
    """The build of this process, computed once: imported code does not change when its files do."""
    return f"{__version__}+{source_digest(Path(pitboss.__file__).parent)[:DIGEST_CHARS]}"


def source_digest(folder: Path) -> str:
    """One digest over the names and contents of all files of a package."""
    digest = sha256()
    for path in sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).as_posix()):
        if path.is_file() and path.suffix != ".pyc" and "__pycache__" not in path.parts:
            name, content = path.relative_to(folder).as_posix().encode(), path.read_bytes()
            digest.update(b"%d:%b%d:" % (len(name), name, len(content)))
            digest.update(content)
    return digest.hexdigest()
