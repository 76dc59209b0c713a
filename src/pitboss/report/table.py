"""HTML tables and lists of facts: every table has a caption, header cells and right-aligned numbers."""

from collections.abc import Iterable, Sequence

from pitboss.report.markup import Html, tag

LEFT, RIGHT, WIDE = "", "num", "wide"


def table(
    caption: str,
    columns: Sequence[tuple[str, str]],
    rows: Iterable[Sequence[object]],
    *,
    style: str = "",
    tall: bool = False,
    stacks: bool = False,
) -> Html:
    """A table whose first column contains the row headers. `columns` are names with `LEFT`, `RIGHT` or `WIDE`; a tall table scrolls.

    On a narrow screen a table that stacks shows each row as a small list: the row header, then the values with the names of their
    columns, and a wide cell below them.
    """
    styles = f"{style} stacks".strip() if stacks else style
    return scroll_region(
        caption,
        tag(
            "table",
            tag("caption", caption),
            head(columns),
            tag("tbody", *[_row(columns, cells, stacks) for cells in rows]),
            class_=styles or None,
        ),
        style="tall" if tall else "",
    )


def head(columns: Sequence[tuple[str, str]]) -> Html:
    return tag("thead", tag("tr", *[tag("th", name, scope="col", class_=side or None) for name, side in columns]))


def scroll_region(name: str, inner: Html, *, style: str = "") -> Html:
    """A region that scrolls inside the page; focusable, so that the keyboard can scroll it."""
    return tag("div", inner, class_=f"scroll {style}".strip(), tabindex="0", role="region", aria_label=name)


def _row(columns: Sequence[tuple[str, str]], cells: Sequence[object], has_labels: bool) -> Html:
    elements: list[Html] = []
    for index, ((name, side), cell) in enumerate(zip(columns, cells, strict=True)):
        if index == 0:
            elements.append(tag("th", cell, scope="row", class_=side or None))
        else:
            label = (name or None) if has_labels and side != WIDE else None
            elements.append(tag("td", cell, class_=side or None, data_label=label))
    return tag("tr", *elements)


def facts(pairs: Iterable[tuple[str, object]], style: str = "facts") -> Html:
    """A list of named values."""
    return tag("dl", *[tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs], class_=style)


def gain_or_loss(text: str, tone: str | None) -> Html:
    """Text in the colour of a gain or a loss; the sign is in the text."""
    return tag("span", text, class_=tone)
