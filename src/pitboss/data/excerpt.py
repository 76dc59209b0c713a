"""Parts of a file or a reply as they are shown in a message: short, on one line, and printable."""

MOST_CHARS = 60


def excerpt(text: str, most: int = MOST_CHARS) -> str:
    """A text, cut to `most` characters, with `?` for what cannot be printed."""
    part = "".join(letter if letter.isprintable() else "?" for letter in text[:most])
    return part if len(text) <= most else f"{part}…"


def excerpts(texts: list[str]) -> str:
    """The first texts of a list."""
    return ", ".join(excerpt(text, 24) for text in texts[:8])


def display(value: object) -> str:
    """A value of a cell: text in quotes."""
    return f"'{excerpt(value)}'" if isinstance(value, str) else excerpt(str(value))
