"""JSON Schema, field list and examples: all from the one schema."""

import json
import re
from typing import Any

import pytest
from skill_documents import check_text, document, names

from pitboss.skill.document import describe_fields, json_schema, json_schema_text
from pitboss.skill.spelling import dotted, fields
from pitboss.venues.perp.skill import PerpSkill
from pitboss.venues.perp.system_prompt import compose_system
from pitboss.venues.perp.venue import VENUE


def test_the_schema_names_its_draft_and_no_site_of_its_own():
    schema = json_schema(PerpSkill)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"].startswith("urn:")
    assert json.loads(json_schema_text(PerpSkill)) == schema


def test_every_bound_of_a_number_is_in_the_schema_in_json_schema_words():
    schema = json_schema(PerpSkill)
    risk = schema["$defs"]["Risk"]["properties"]
    assert risk["max_leverage"] == {
        "default": 3,
        "description": "Highest leverage that a proposal may ask for.",
        "maximum": 1000,
        "minimum": 1,
        "title": "Max Leverage",
        "type": "number",
    }
    assert risk["max_position_pct"]["exclusiveMinimum"] == 0
    assert schema["$defs"]["Context"]["properties"]["bars_lookback"]["maximum"] == 500
    assert not re.search(r'"(gt|ge|le|lt)":', json_schema_text(PerpSkill))


def test_only_the_two_caps_may_be_null():
    text = json_schema_text(PerpSkill)
    assert text.count('"type": "null"') == 2
    assert json_schema(PerpSkill)["$defs"]["Risk"]["properties"]["max_order_usd"]["default"] is None


def test_unknown_keys_are_refused_by_the_schema_too():
    schema = json_schema(PerpSkill)
    for part in (schema, *schema["$defs"].values()):
        assert part["additionalProperties"] is False


def test_the_schema_asks_for_the_fields_of_each_mode():
    rules = json_schema(PerpSkill)["$defs"]["Strategy"]["allOf"]
    needs = {rule["if"].get("properties", {}).get("mode", {}).get("const"): rule["then"]["required"] for rule in rules}
    assert needs == {
        "thesis": ["thesis", "avoid"],
        "rules": ["entry", "exit", "risk_management"],
        "hybrid": ["thesis", "avoid", "entry", "exit", "risk_management"],
        None: ["thesis", "avoid"],
    }


def test_every_property_of_the_schema_is_described():
    schema = json_schema(PerpSkill)

    def described(prop: dict[str, Any]) -> bool:
        name = prop.get("$ref", "").rpartition("/")[2]
        return bool(prop.get("description") or schema["$defs"].get(name, {}).get("description"))

    for part in (schema, *schema["$defs"].values()):
        assert [name for name, prop in part["properties"].items() if not described(prop)] == []


def test_the_field_list_has_every_field_once_with_type_default_and_meaning():
    notes = {note.path: note for note in describe_fields(PerpSkill)}
    assert list(notes) == [dotted(path) for path, _ in fields(PerpSkill)]
    assert (notes["max_steps"].type, notes["max_steps"].default) == ("whole number from 1 to 20", "5")
    assert (notes["risk.max_leverage"].type, notes["risk.max_leverage"].default) == ("number from 1 to 1000", "3")
    assert notes["schedule.every"].type == "5m | 15m | 1h | 4h | 1d"
    assert notes["name"].default == "required"
    assert notes["strategy.style"].default == "left out"
    assert notes["risk.max_order_usd"].default == "null"
    assert notes["context.symbols"].type == "list of text"
    assert all(note.description for note in notes.values())


@pytest.mark.parametrize("name", VENUE.examples())
def test_every_shipped_example_is_valid_without_remarks_and_composes(name: str):
    found = check_text(VENUE.examples()[name], known=names(servers=[]))
    assert found.errors == ()
    assert found.notes == ()
    assert found.skill is not None
    assert found.skill.model == "standin/analyst"
    assert f"{found.skill.name}.yaml" == name
    assert compose_system(found.skill.strategy.texts())


def test_the_examples_show_each_mode_and_each_leash_once():
    skills = [check_text(text).skill for text in VENUE.examples().values()]
    strategies = [made.strategy for made in skills if made]
    assert sorted(strategy.mode for strategy in strategies) == ["hybrid", "rules", "thesis"]
    assert sorted(strategy.leash for strategy in strategies) == ["adaptive", "balanced", "strict"]


def test_the_examples_explain_themselves():
    for name, text in VENUE.examples().items():
        assert text.startswith("# A"), name
        assert text.count("#") >= 8, name
        assert "NOT a language model" in text, name


def test_the_smallest_document_has_all_that_the_schema_requires():
    assert set(json_schema(PerpSkill)["required"]) == set(document()) - {"pitboss"}
    assert PerpSkill.model_validate(document()).name == "test"
