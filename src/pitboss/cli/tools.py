"""`pitboss tools …`: what an agent may look at."""

from typing import Any

from cyclopts import App

from pitboss.cli import screen
from pitboss.cli.options import Json

app = App(name="tools", help="List the tools that a skill may give to its agent.")


@app.command(name="list")
def list_(*, json: Json = False) -> int:
    """List every built-in tool. Tools look; they never change anything.

    For example:

        pitboss tools list
    """
    found = _catalogue()
    if json:
        screen.put_json(found)
        return 0
    rows = [(one["name"], one["category"], ", ".join(one["modes"]), one["description"]) for one in found]
    screen.put_table(("name", "category", "modes", "what it does"), rows, folds=(3,))
    return 0


@app.command
def show(name: str, /, *, json: Json = False) -> int:
    """Show one tool with its arguments and an example call.

    For example:

        pitboss tools show fetch_recent_bars

    Parameters
    ----------
    name
        The tool's name.
    """
    from pitboss.tools.registry import lookup

    known = lookup(name).name
    (tool,) = [one for one in _catalogue() if one["name"] == known]
    if json:
        screen.put_json(tool)
        return 0
    screen.put(tool["name"], style="bold")
    screen.put(tool["description"])
    screen.put(f"\ncategory {tool['category']} · modes {', '.join(tool['modes'])} · reach {tool['reach']}")
    screen.put("\narguments (JSON Schema):")
    screen.put_json(tool["input_schema"])
    screen.put("\nexample arguments:")
    screen.put_json(tool["example"])
    return 0


def _catalogue() -> list[dict[str, Any]]:
    from pitboss.tools.registry import catalogue

    return catalogue()
