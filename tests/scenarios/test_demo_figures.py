"""README says what the demo shows: its figures, in the text and in the picture, are those of a demo that is run now."""

import re

import pytest
from documented_commands import ROOT

from demo_workspace import demo_workspace, output_of
from pitboss_dev.docs.picture import described, description_of


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What `make demo` shows, in the words of the caption."""
    (recipe,) = re.findall(r"^demo:.*\n\t@\$\(BIN\)/pitboss (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe.split()[:-1] == ["demo", "--home"]
    output = output_of(demo_workspace(tmp_path_factory)).read_text("utf-8")
    rows = {name: values for name, *values in (re.split(r"\s{2,}", line) for line in output.splitlines()) if values}
    made, (baseline, *_) = rows["Return"][0].split(" (")[0], rows["Return"][1:]
    refused = sum(map(int, re.findall(r"× (\d+)", rows["Refused by rule"][0])))
    (proposals, *_) = re.findall(r"\d+", rows["Proposals"][0])
    return f"return {made}, buy and hold {baseline}, {refused} of {proposals} proposals refused"


def test_the_caption_has_the_figures_of_the_demo(figures: str) -> None:
    assert figures in " ".join((ROOT / "README.md").read_text("utf-8").split())


def test_the_picture_shows_the_figures_of_the_demo(figures: str) -> None:
    shown = description_of((ROOT / "docs" / "report.png").read_bytes())
    assert shown == figures, "take a new picture: see dev/pitboss_dev/docs/picture.py"


def test_a_description_is_read_as_it_was_written_and_replaces_an_earlier_one() -> None:
    picture = (ROOT / "docs" / "report.png").read_bytes()
    changed = described(described(picture, "first"), "return −1 %")
    assert description_of(changed) == "return −1 %"
    assert described(changed, description_of(picture)) == picture
