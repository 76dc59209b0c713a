"""`pitboss settings`: every setting with its value, default and description."""

from pitboss.terminal import screen
from pitboss.terminal.options import Json
from pitboss.terminal.workspace_options import Location


def settings(*, json: Json = False, location: Location) -> int:
    """List every setting: its key in settings.toml, its environment variable, value, default and description.

    For example:

        PITBOSS_MAX_GAP=24 pitboss settings
    """
    from pitboss.bootstrap.settings_description import describe

    rows = describe(location.settings())
    if json:
        screen.put_json(rows)
        return 0
    cells = [(row["key"], row["value"], row["default"], row["meaning"]) for row in rows]
    screen.put_table(("key", "value", "default", "meaning"), cells, folds=(1, 2, 3), drop=(2,))
    screen.put("\nset them in settings.toml of the workspace, or by environment variables such as PITBOSS_MAX_GAP")
    return 0
