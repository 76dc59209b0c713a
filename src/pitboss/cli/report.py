"""`pitboss report`: the report of a run as one self-contained HTML file."""

from pathlib import Path
from typing import Annotated

from pitboss.terminal import screen
from pitboss.terminal.options import Json, RunId, option
from pitboss.terminal.workspace_options import Location


def report(
    run: RunId,
    /,
    *,
    out: Annotated[
        Path | None, option("--out", "File of the report. Default: reports/RUN.html in the workspace.")
    ] = None,
    open_: Annotated[bool, option("--open", "Open the report in the browser.")] = False,
    json: Json = False,
    location: Location,
) -> int:
    """Write the report of a run: one HTML file that opens offline.

    For example:

        pitboss report 3f9a --out march.html
        pitboss report last --open
    """
    from pitboss.bootstrap.machine import open_in_browser
    from pitboss.runs.report import write_report

    with location.existing_workspace() as workspace:
        run_id = workspace.runs.find(run)
        path = write_report(workspace, run_id, out)
    if json:
        screen.put_json({"run_id": run_id, "report": str(path)})
    else:
        screen.put(str(path))
    if open_ and not open_in_browser(path):
        screen.note("no browser was found on this machine; open the file yourself")
    return 0
