"""Skills of the predict venue: fields, error messages, digest and schema."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pitboss.core.errors import UserError
from pitboss.runs.venues import venues
from pitboss.skill import load
from pitboss.skill.digest import skill_digest
from pitboss.skill.document import describe_fields, json_schema, json_schema_text, to_json, to_plain
from pitboss.skill.load import SkillCheck
from pitboss.skill.spelling import dotted, fields
from pitboss.venues.perp.skill import PerpSkill
from pitboss.venues.perp.venue import VENUE as PERP_VENUE
from pitboss.venues.predict.caps import PredictCaps, make_caps
from pitboss.venues.predict.schedule import TIERS as VENUE_TIERS
from pitboss.venues.predict.skill import MANDATES, TIERS, TOOLS, PredictSkill
from pitboss.venues.predict.venue import VENUE
from venues.predict.predict_documents import check_plain, check_text, document

SPECIFIED = """
pitboss: 1
name: btc-brain
venue: predict
model: groq/llama-3.3-70b-versatile
max_steps: 8
schedule: {every: 60s}                    # 10s .. 1h
strategy: {mandate: momentum}
tools: {built_in: [list_btc_markets, list_strikes, recent_fills, btc_candles, get_my_positions, quote]}
context: {underlying: BTC, tiers: [15m, 1h, 1d, 1w], candles_minutes: 60}
risk:
  max_spend_per_tick: 2
  max_spend_per_day: 50
  max_total_spend: 200
  max_exposure_per_expiry: 50
  max_slippage_bps: 200
  min_edge: null
  min_seconds_to_expiry: 60
  max_price_age_s: 30
"""
SMALL = (
    "name: btc-brain\npitboss: 1\nvenue: predict\nmodel: groq/llama-3.3-70b-versatile\nstrategy: {mandate: momentum}\n"
)

PERP: dict[str, Any] = {
    "pitboss": 1,
    "name": "test",
    "model": "standin/analyst",
    "schedule": {"every": "15m"},
    "strategy": {"mode": "thesis", "leash": "balanced", "thesis": "Trends persist.", "avoid": "Chop."},
    "context": {"symbols": ["BTC"], "bars_interval": "15m"},
}
"""A valid skill of the other venue."""


def check(**changes: Any) -> SkillCheck[PredictSkill]:
    return check_text(json.dumps(document(**changes)), ".json")


def skill(**changes: Any) -> PredictSkill:
    found = check(**changes)
    assert found.skill is not None, found.errors
    return found.skill


def digest(plain: dict[str, Any]) -> str:
    found = check_plain(plain)
    assert found.skill is not None, found.errors
    assert found.digest == skill_digest(found.skill)
    return found.digest


# What it says ---------------------------------------------------------------------------------------------------------


def test_the_documented_skill_is_valid_and_says_nothing_but_defaults():
    found, small = check_text(SPECIFIED), check_text(SMALL)
    assert found.errors == small.errors == ()
    assert found.notes == ()
    assert found.skill == small.skill
    assert found.digest == small.digest
    made = found.skill
    assert made is not None
    assert (made.venue, made.max_steps, made.schedule.every_ms) == ("predict", 8, 60_000)
    assert (made.strategy.mandate, made.strategy.text) == ("momentum", None)
    assert made.tools.built_in == TOOLS
    assert made.context.model_dump() == {"underlying": "BTC", "tiers": TIERS, "candles_minutes": 60}


def test_the_caps_of_a_skill_are_the_venues_word_for_word():
    made = skill()
    assert make_caps(**made.risk.model_dump(), underlying=made.context.underlying) == PredictCaps(underlying="BTC")
    other = skill(risk={"max_spend_per_tick": 1.5, "min_edge": 0.03, "max_slippage_bps": 50, "max_price_age_s": 5})
    caps = make_caps(**other.risk.model_dump())
    assert (caps.max_spend_per_tick, caps.min_edge, caps.max_slippage_bps) == (1_500_000, 30_000_000, 50)
    assert caps.max_price_age_ms == 5_000


def test_tiers_and_mandates_are_those_that_there_are():
    assert TIERS == VENUE_TIERS
    for mandate in MANDATES:
        assert skill(strategy={"mandate": mandate}).strategy.mandate == mandate


@pytest.mark.parametrize(
    ("written", "length"), [("10s", 10_000), ("90s", 90_000), ("1m", 60_000), ("1.5m", 90_000), ("1h", 3_600_000)]
)
def test_the_time_between_ticks_is_a_duration(written: str, length: int):
    made = skill(schedule__every=written)
    assert made.schedule.every == written
    assert made.schedule.every_ms == length


BOUNDS = [
    ("max_steps", [1, 8], [0, 9]),
    ("context__candles_minutes", [1, 1_440], [0, 1_441, 1.5]),
    ("context__tiers", [["1d"], list(TIERS)], [[], ["5m"], ["1h", "1h"]]),
    ("tools__built_in", [[], ["quote"]], [["propose_order"], ["quote", "quote"]]),
    ("schedule__every", ["10s", "3600s"], ["9s", "3601s", "60", 60, "1d", "", "1" * 30 + "s"]),
    ("risk__max_spend_per_tick", [0, 0.000001, 10**9], [-1, 10**9 + 1, "2"]),
    ("risk__max_spend_per_day", [0, 1], [-0.1]),
    ("risk__max_total_spend", [0, 1], [-0.1]),
    ("risk__max_exposure_per_expiry", [0, 1], [-0.1]),
    ("risk__max_slippage_bps", [0, 10_000], [-1, 10_001, 1.5]),
    ("risk__min_edge", [0, 0.05, 1], [-0.1, 1.1]),
    ("risk__min_seconds_to_expiry", [0, 604_800], [-1, 604_801]),
    ("risk__max_price_age_s", [0.5, 86_400], [0, -1, 86_401]),
]


@pytest.mark.parametrize(("path", "good", "bad"), BOUNDS, ids=[bound[0] for bound in BOUNDS])
def test_a_field_takes_what_lies_within_its_bounds_and_nothing_else(path: str, good: list[Any], bad: list[Any]):
    assert [value for value in good if not check(**{path: value}).ok] == []
    assert [value for value in bad if check(**{path: value}).ok] == []


# Mistakes -------------------------------------------------------------------------------------------------------------

ERRORS: list[tuple[dict[str, Any], str, str, str]] = [
    ({"risk__max_spend_per_tik": 3}, "risk.max_spend_per_tik", "unknown key", "did you mean max_spend_per_tick?"),
    ({"min_seconds_to_expiry": 5}, "min_seconds_to_expiry", "unknown key", "did you mean risk.min_seconds_to_expiry?"),
    ({"risk__max_leverage": 3}, "risk.max_leverage", "unknown key", ""),
    ({"context__symbols": ["BTC"]}, "context.symbols", "unknown key", ""),
    ({"context__zzz": 1}, "context.zzz", "unknown key", "keys here: underlying, tiers, candles_minutes"),
    ({"maxSteps": 3, "max_steps": 3}, "maxSteps", "two spellings of one key", "keep one"),
    ({"model": None}, "model", "is missing", "provider/model"),
    ({"strategy": {}}, "strategy.text", "is missing, and there is no mandate either", "mandate: momentum"),
    ({"strategy__text": "x"}, "strategy.text", "is given together with mandate", "keep one"),
    ({"strategy": {"mandate": "a.md", "text": "x"}}, "strategy.text", "is given together with mandate", "keep one"),
    ({"strategy__mandate": "momentun"}, "strategy.mandate", "must be momentum, contrarian, calibrated or the path of a .md file, not 'momentun'", "did you mean momentum?"),
    ({"strategy__mandate": "qqq"}, "strategy.mandate", "must be momentum", "goes into text"),
    ({"strategy__mandate": 5}, "strategy.mandate", "not 5", "goes into text"),
    ({"strategy__mandate": "a.md"}, "strategy.mandate", "this document has no folder to read it from", "as text"),
    ({"strategy": {"text": " "}}, "strategy.text", "must not be empty", ""),
    ({"schedule__every": "5s"}, "schedule.every", "must be from 10s to 1h, not '5s'", "Time between ticks"),
    ({"schedule__every": 60}, "schedule.every", "must be a length of time, not 60", "write 60s"),
    ({"schedule__every": "soon"}, "schedule.every", "must be a length of time, not 'soon'", "write 60s"),
    ({"tools__built_in": ["list_strike"]}, "tools.built_in[0]", "must be one of list_btc_markets", "did you mean list_strikes?"),
    ({"tools__built_in": "quote"}, "tools.built_in", "must be a list, not 'quote'", "write [quote]"),
    ({"context__tiers": ["1h", "2h"]}, "context.tiers[1]", "must be one of 15m, 1h, 1d, 1w, not '2h'", "for example 15m"),
    ({"context__tiers": ["1h", "1h"]}, "context.tiers[1]", "1h is listed twice", "keep one"),
    ({"context__tiers": []}, "context.tiers", "needs at least 1 entry", "at least one"),
    ({"context__underlying": "B TC"}, "context.underlying", "is not a name", "letters"),
    ({"risk__min_edge": 2}, "risk.min_edge", "must be at most 1, not 2", "confidence less ask"),
    ({"risk__maxSpendPerTick": "2"}, "risk.maxSpendPerTick", "must be a number, not '2'", "write 2 without quotes"),
    ({"risk": [1]}, "risk", "must be a map of keys, not a list", "keys here: max_spend_per_tick"),
    ({"venue": "predct"}, "venue", "must be predict here, not 'predct'", "only predict skills are accepted here"),
    ({"venue": "perp"}, "venue", "must be predict here, not 'perp'", "only predict skills are accepted here"),
    ({"venue": None}, "venue", "is missing: only predict skills are accepted here", "write `venue: predict`"),
    ({"pitboss": 2}, "pitboss", "needs a newer pitboss", "upgrade"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "path", "message", "hint"), ERRORS, ids=[f"{e[1]}: {e[2]}" for e in ERRORS])
def test_a_mistake_is_named_by_path_reason_and_hint(changes: dict[str, Any], path: str, message: str, hint: str):
    found = check(**changes)
    assert (found.ok, found.skill, found.digest) == (False, None, None)
    (error,) = found.errors
    assert error.path == path
    assert message in error.message
    assert hint in error.hint
    assert error.hint


def test_all_errors_are_reported_in_the_order_of_the_document_with_their_lines():
    text = "pitboss: 1\nname: x\nvenue: predict\nmodel: nope\nschedule: {every: 2s}\nstrategy:\n  mandat: momentum\nrisk:\n  minEdge: 7\n"
    found = check_text(text)
    assert [(error.line, error.path) for error in found.errors] == [
        (4, "model"),
        (5, "schedule.every"),
        (6, "strategy.text"),
        (7, "strategy.mandat"),
        (9, "risk.minEdge"),
    ]


def test_null_is_a_value_for_the_edge_alone():
    assert skill().risk.min_edge is None
    assert check_plain({**document(), "risk": {"min_edge": None}}).ok
    (error,) = check_plain({**document(), "risk": {"max_total_spend": None}}).errors
    assert (error.path, error.message) == ("risk.max_total_spend", "has no value")


@pytest.mark.parametrize(
    ("risk", "note"),
    [
        ({"max_total_spend": 0, "max_spend_per_tick": 0}, "max_spend_per_tick is 0: every mint will be refused"),
        ({"max_spend_per_day": 1}, "max_spend_per_tick is above another cap"),
    ],
)
def test_a_skill_that_can_hardly_mint_is_allowed_but_remarked_on(risk: dict[str, Any], note: str):
    found = check(risk=risk)
    assert found.ok
    assert note in found.notes[0]


def test_a_document_without_its_version_is_upgraded_and_means_the_same():
    plain = {key: value for key, value in document(schedule="30s").items() if key != "pitboss"}
    found = check_plain(plain)
    assert found.digest == digest(document(schedule__every="30s"))
    assert "add `pitboss: 1`" in found.notes[0]


PIECES = st.sampled_from(["pitboss", "venue", "strategy", "mandate", "text", "risk", "min_edge", "schedule", "every"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["predict", "a.md", "60s", "momentum"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PIECES, inner, max_size=4),
    max_leaves=8,
)


@given(st.dictionaries(PIECES, VALUES, max_size=5) | VALUES)
def test_any_plain_value_is_checked_without_an_exception(plain: Any):
    found = check_plain(plain)
    assert found.ok == (found.skill is not None) == (not found.errors)


# The other venue ------------------------------------------------------------------------------------------------------


def test_what_reads_perp_skills_refuses_a_predict_skill_with_one_error_and_its_line():
    (error,) = load.check_text(SPECIFIED, ".yaml", PerpSkill).errors
    assert (error.path, error.line) == ("venue", 4)
    assert error.message == "must be perp here, not 'predict'"
    (error,) = load.check_plain(PERP, PerpSkill, overrides=["venue=predict"]).errors
    assert error.path == "venue"


def test_the_kinds_of_document_know_different_keys():
    types = {venue.name: venue.skill_type() for venue in venues()}
    assert (types["perp"], types["predict"]) == (PerpSkill, PredictSkill)
    assert "risk.max_leverage" not in {dotted(path) for path, _ in fields(PredictSkill)}
    assert "risk.min_edge" not in {dotted(path) for path, _ in fields(PerpSkill)}


# Digest ---------------------------------------------------------------------------------------------------------------

OTHER: dict[str, Any] = {
    "name": "other",
    "description": "other",
    "model": "a/other",
    "model_settings": {"temperature": 0.3},
    "max_steps": 4,
    "schedule": {"every": "61s"},
    "strategy": {"mandate": "contrarian"},
    "strategy__text": "words",
    "tools": {"built_in": ["quote"]},
    "context__underlying": "ETH",
    "context__tiers": ["1h"],
    "context__candles_minutes": 61,
    **{f"risk__{name}": 1 for name in PredictSkill.model_validate(document()).risk.model_dump()},
}


def document_with(path: str) -> dict[str, Any]:
    more = {"strategy__mandate": None} if path == "strategy__text" else {}
    return document(**{path: OTHER[path], **more})


def test_changing_any_field_changes_the_digest():
    digests = {digest(document_with(path)) for path in OTHER} | {digest(document())}
    assert len(digests) == len(OTHER) + 1
    assert {path.partition("__")[0] for path in OTHER} == set(PredictSkill.model_fields) - {"pitboss", "venue"}


def test_ways_of_writing_the_same_thing_share_a_digest():
    small = digest(document())
    assert digest(document(schedule__every="1m")) == small
    assert digest(document(context__tiers=["1w", "1d", "15m", "1h"])) == small
    assert digest(to_plain(skill())) == small
    assert digest(document(schedule__every="120s")) == digest(document(schedule__every="2m")) != small
    assert digest(document(context__tiers=["1d", "1h"])) == digest(document(context__tiers=["1h", "1d"]))
    assert digest({**document(), "risk": {"maxTotalSpend": 7.0}}) == digest(document(risk={"max_total_spend": 7}))


@pytest.mark.parametrize("path", OTHER)
def test_a_skill_reads_back_equal_from_its_json_and_from_its_normal_form(path: str):
    made = check_plain(document_with(path)).skill
    assert made is not None
    assert check_text(to_json(made).decode(), ".json").skill == made
    assert check_plain(made.normal()).digest == skill_digest(made)


def test_the_digest_of_a_document_never_moves():
    """Stored runs name skills by digest: if this fails, the format changed and needs a new document version."""
    made = skill()
    assert made.normal() == document()
    assert skill_digest(made) == "287f88dde64f3dc93728746a906563801b647aa915c9da95d1a6c479cd0f0d24"
    assert (
        check_text(VENUE.examples()["btc-brain.yaml"]).digest
        == "3162a5a0c6bb29ce9814aad4f35aac41f68333f56b8fa76da2b7a92d7398a912"
    )


def test_a_skill_is_frozen_and_can_be_hashed():
    assert hash(skill()) == hash(skill())


# Settings -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "path", "value"),
    [
        ("risk.max_total_spend=5", "risk.max_total_spend", Decimal(5)),
        ("risk.maxTotalSpend=5", "risk.max_total_spend", Decimal(5)),
        ("risk.min_edge=null", "risk.min_edge", None),
        ("schedule.every=5m", "schedule.every", "5m"),
        ("strategy.mandate=calibrated", "strategy.mandate", "calibrated"),
        ("context.tiers=1h,1d", "context.tiers", ("1h", "1d")),
    ],
)
def test_a_setting_is_typed_like_the_field_it_names(setting: str, path: str, value: Any):
    for found in (
        check_plain(document(), overrides=[setting]),
        check_plain(load.override(document(), [setting], PredictSkill)),
    ):
        part: Any = found.skill
        for name in path.split("."):
            part = getattr(part, name)
        assert part == value


def test_a_setting_of_the_other_venue_is_no_such_field():
    with pytest.raises(UserError, match=r"--set risk\.max_leverage: no such field"):
        check_plain(document(), overrides=["risk.max_leverage=5"])


# Schema, fields, example ----------------------------------------------------------------------------------------------

VALIDATOR = Draft202012Validator(json_schema(PredictSkill))


def test_the_schema_is_one_of_its_own_and_takes_what_the_loader_takes():
    schema = json_schema(PredictSkill)
    assert schema["$id"] != json_schema(PerpSkill)["$id"]
    assert json.loads(json_schema_text(PredictSkill)) == schema
    assert set(schema["required"]) == set(document()) - {"pitboss"}
    for plain in (
        document(),
        document(strategy={"mandate": "notes/mine.md"}),
        document(strategy={"text": "words"}),
        {**document(), "risk": {"min_edge": None}},
        json.loads(to_json(skill())),
    ):
        assert list(VALIDATOR.iter_errors(plain)) == []
    for bad in (
        PERP,
        document(strategy={}),
        document(strategy={"mandate": "momentum", "text": "x"}),
        document(strategy={"mandate": "mood"}),
        document(max_steps=9),
        document(schedule__every="soon"),
        document(risk={"max_total_spend": -1}),
        {**document(), "risk": {"max_total_spend": None}},
        document(zzz=1),
    ):
        assert list(VALIDATOR.iter_errors(bad)), bad


def test_the_field_list_has_every_field_once_with_type_default_and_meaning():
    notes = {note.path: note for note in describe_fields(PredictSkill)}
    assert list(notes) == [dotted(path) for path, _ in fields(PredictSkill)]
    assert notes["risk.min_edge"].default == "null"
    assert notes["context.tiers"].default == "[15m, 1h, 1d, 1w]"
    assert notes["schedule.every"].default == "60s"
    assert all(note.description for note in notes.values())


def test_the_shipped_example_is_the_documented_skill_and_explains_itself():
    ((name, text),) = VENUE.examples().items()
    found, specified = check_text(text), check_text(SPECIFIED)
    assert (found.errors, found.notes) == ((), ())
    assert found.skill is not None
    assert specified.skill is not None
    assert f"{found.skill.name}.yaml" == name
    assert found.skill.model_copy(update={"description": ""}) == specified.skill
    assert text.count("#") >= 8
    assert name not in PERP_VENUE.examples(), "`pitboss init` writes perp skills unless told otherwise"
