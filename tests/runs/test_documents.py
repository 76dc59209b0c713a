"""Skill documents as users have them: the venue that a text names, and the error where there is none of that name."""

from pathlib import Path

import pytest

from pitboss.bootstrap.settings import load_settings
from pitboss.core.errors import UserError
from pitboss.runs import documents
from pitboss.venues.perp.venue import VENUE as PERP
from pitboss.venues.predict.venue import VENUE as PREDICT


@pytest.mark.parametrize(
    ("text", "venue"),
    [
        (PREDICT.examples()["btc-brain.yaml"], "predict"),
        ("venue: predict\n", "predict"),
        ("venue: perp\n", "perp"),
        ("name: x\n", "perp"),
        ("venue: [predict]\n", "perp"),
        ("- a\n", "perp"),
        ("a: [\n", "perp"),
        ("", "perp"),
    ],
)
def test_the_venue_of_a_text_is_the_one_it_names_or_the_default(text: str, venue: str):
    assert documents.venue_of_text(text, ".yaml").name == venue


@pytest.mark.parametrize(
    ("venue", "hint"),
    [
        ("perps", "did you mean perp?"),
        ("predct", "did you mean predict?"),
        ("casino", "installed: community, perp, predict"),
    ],
)
def test_a_venue_that_is_not_installed_is_named_with_those_that_are(tmp_path: Path, venue: str, hint: str):
    text = f"pitboss: 1\nname: x\nvenue: {venue}\nmodel: a/b\n"
    with pytest.raises(UserError) as caught:
        documents.venue_of_text(text, ".yaml")
    assert caught.value.message == f"there is no venue {venue!r}; installed: community, perp, predict"
    assert caught.value.hint == hint
    (error,) = documents.check(text, ".yaml", load_settings(tmp_path)).errors
    assert (error.path, error.message, error.hint) == ("venue", caught.value.message, hint)


def test_a_file_of_any_venue_is_read_as_the_whole_document(tmp_path: Path):
    for venue in (PERP, PREDICT):
        for name, text in venue.examples().items():
            file = tmp_path / name
            file.write_text(text)
            assert documents.read_file(file)["venue"] == venue.name
