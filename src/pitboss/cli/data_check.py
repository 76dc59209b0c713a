"""`pitboss data check`: what is wrong with the files of the lake, grouped by the kind of problem."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from pitboss.report.figures import plural
from pitboss.terminal import screen
from pitboss.terminal.options import Json, option
from pitboss.terminal.workspace_options import Location

if TYPE_CHECKING:
    from pitboss.data.quality import QualityFinding

EXAMPLES = 3
"""Findings that are shown of each kind."""


def check(
    *,
    all_: Annotated[bool, option("--all", "List every finding, not only some examples of each kind.")] = False,
    json: Json = False,
    location: Location,
) -> int:
    """Check every stored file for gaps, duplicates and bad rows. Exit code 1 if any file is unusable.

    For example:

        pitboss data check
    """
    from pitboss.data.quality import check_lake
    from pitboss.runs.listing import times

    findings = check_lake(location.lake())
    unusable = sum(not finding.usable for finding in findings)
    if json:
        screen.put_json({"ok": not unusable, "findings": [times(asdict(finding)) for finding in findings]})
        return 1 if unusable else 0
    if not findings:
        screen.put("no problems found")
        return 0
    shown = _show(findings, len(findings) if all_ else EXAMPLES)
    if unusable:
        screen.note("hint: import the unusable files again with --replace, or remove them")
    if shown < len(findings):
        screen.note(f"hint: `{location.command_line('data check --all')}` lists every finding")
    return 1 if unusable else 0


def _show(findings: "Sequence[QualityFinding]", most: int) -> int:
    """Print each kind of problem with its count and examples, the worst first; returns how many findings were printed."""
    groups: dict[tuple[int, str, str], list[QualityFinding]] = {}
    for finding in findings:
        place = 0 if not finding.usable else ("error", "warning", "note").index(finding.severity) + 1
        label = finding.severity if finding.usable else "UNUSABLE"
        groups.setdefault((place, label, finding.problem), []).append(finding)
    shown = 0
    for (_, label, problem), group in sorted(groups.items()):
        count = len({finding.file for finding in group})
        examples = group[:most]
        shown += len(examples)
        screen.put(f"{label}: {problem.replace('_', ' ')}, {plural(count, 'file')}", "bold")
        for finding in examples:
            screen.put(f"  {finding.file}: {finding.detail}")
        if len(group) > len(examples):
            screen.put(f"  … and {len(group) - len(examples):,} more")
    return shown
