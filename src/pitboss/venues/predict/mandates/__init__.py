"""The shipped mandates of the predict venue, one Markdown file each. A new one is also listed in `skill.Mandate`."""

from functools import cache
from importlib.resources import files


@cache
def mandates() -> dict[str, str]:
    """Return the text of every mandate by name."""
    paths = [path for path in files(__name__).iterdir() if path.name.endswith(".md")]
    return {
        path.name.removesuffix(".md"): _text(path.read_text("utf-8")) for path in sorted(paths, key=lambda p: p.name)
    }


def _text(text: str) -> str:
    """Remove carriage returns that some checkouts add: the bytes of the prompt must not depend on them."""
    return text.replace("\r\n", "\n").strip()
