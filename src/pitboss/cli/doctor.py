"""`pitboss doctor`: what is installed, reachable and misconfigured."""

from typing import Annotated

from pitboss.terminal import screen
from pitboss.terminal.options import Json, Name, option
from pitboss.terminal.workspace_options import Location


def doctor(
    *,
    model: Annotated[
        Name, option("--model", "Also send this model one small request, as `pitboss models test` does.")
    ] = "",
    json: Json = False,
    location: Location,
) -> int:
    """Check the installation and the workspace: versions, extras, keys, database, data, disk. Exit code 1 if something is broken.

    Each line is ok, warn or FAIL, with a hint. Keys are named and never shown; nothing is created or changed.

    For example:

        pitboss doctor
        pitboss doctor --model groq/llama-3.3-70b-versatile
    """
    from pitboss.runs.doctor import diagnose, diagnosis_document

    checks = list(diagnose(location.settings, model))
    document = diagnosis_document(checks)
    if json:
        screen.put_json(document)
    else:
        cells = [
            (check.name, "FAIL" if check.state == "fail" else check.state, check.detail, check.hint) for check in checks
        ]
        screen.put_table(("check", "state", "detail", "hint"), cells, folds=(2, 3))
    return 0 if document["ok"] else 1
