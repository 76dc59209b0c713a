"""`pitboss models …`: who can be asked for decisions."""

from cyclopts import App

from pitboss.cli import screen
from pitboss.cli.options import Json

app = App(name="models", help="List what can be named as a skill's model.")


@app.command(name="list")
def list_(*, json: Json = False) -> int:
    """List the names that work as a model. Those of this version are programs, not language models, and cost nothing.

    For example:

        pitboss models list
    """
    from pitboss.models.catalog import entries

    found = list(entries().values())
    if json:
        screen.put_json(
            [
                {"name": one.name, "kind": one.kind, "summary": one.summary, "language_model": False, "price_usd": 0}
                for one in found
            ]
        )
        return 0
    screen.put_table(("name", "kind", "what it does"), [(one.name, one.kind, one.summary) for one in found], folds=(2,))
    return 0
