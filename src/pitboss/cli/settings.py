"""`pitboss settings`: every setting with its value, default and description."""

from pitboss.terminal import screen
from pitboss.terminal.options import Json
from pitboss.terminal.workspace_options import Here


def settings(*, json: Json = False, place: Here) -> int:
    """List every setting: its key in settings.toml, its environment variable, value, default and description.

    For example:

        PITBOSS_MAX_GAP=24 pitboss settings
    """
    from pitboss.bootstrap.settings import describe

    found = describe(place.settings())
    if json:
        screen.put_json(found)
        return 0
    rows = [(one["key"], one["value"], one["default"], one["meaning"]) for one in found]
    screen.put_table(("key", "value", "default", "meaning"), rows, folds=(1, 3))
    screen.put("\neach is a key of settings.toml in the workspace, and an environment variable such as PITBOSS_MAX_GAP")
    return 0
