"""A horizontal bar that shows a part of a whole, drawn as SVG: a style attribute would be blocked by the policy of the web app."""

from pitboss.report.markup import Html, tag


def share_bar(value: float, most: float, style: str = "fill") -> Html:
    """The bar of `value` relative to `most`; an empty track for zero. A small value stays visible."""
    width = max(100.0 * min(value / most, 1.0), 0.6) if most and value else 0.0
    return tag(
        "svg",
        tag("rect", class_=style, width=f"{width:.2f}", height=14) if width else None,
        viewBox="0 0 100 14",
        preserveAspectRatio="none",
        class_="track",
        aria_hidden="true",
    )
