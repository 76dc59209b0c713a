"""`pitboss settings`: every setting with its value, default and meaning."""

from pitboss.cli import screen
from pitboss.cli.options import Json
from pitboss.cli.place import Here


def settings(*, json: Json = False, place: Here) -> int:
    """List every setting: its key in settings.toml, its environment variable, value, default and meaning.

    Example:

        PITBOSS_MAX_GAP=24 pitboss settings
    """
    from pitboss.bootstrap.settings import describe

    found = describe(place.settings())
    if json:
        screen.put_json(found)
        return 0
    rows = [(one["key"], one["variable"], one["value"], one["default"], one["meaning"]) for one in found]
    screen.put_table(("key", "environment variable", "value", "default", "meaning"), rows)
    return 0
