"""Canonical JSON and both signatures: the golden vector, and Node's own `JSON.stringify` on random values."""

import json
import random
import shutil
import struct
import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.venues.community.sns.canonical_json import JsonRefused, canonical_json, read_json
from pitboss.venues.community.sns.signature_v1 import body_hash, sign_v1, token_hash
from pitboss.venues.community.sns.signature_v2 import SignedParts, key_id, sign_v2, signing_key

GOLDEN = {"communityId": "c1", "title": 'Résumé "x"\n', "body": "line1\nline2", "type": "DISCUSSION"}
TOKEN = "rnr_" + "ab" * 32
NODE = """
const stable = (v) => v === null || typeof v !== 'object' ? JSON.stringify(v)
  : Array.isArray(v) ? `[${v.map(stable).join(',')}]`
  : `{${Object.keys(v).sort().map((k) => `${JSON.stringify(k)}:${stable(v[k])}`).join(',')}}`;
const lines = require('fs').readFileSync(0, 'utf8').split('\\n').filter(Boolean);
process.stdout.write(lines.map((line) => JSON.stringify(stable(JSON.parse(line)))).join('\\n'));
"""


def test_the_golden_vector_has_its_hash_and_its_signature() -> None:
    assert body_hash(GOLDEN) == "0aa3ae73c438301eb57edb050dd62b01a257bb6dedcc88fae2f8e3520695e4ba"
    signature = sign_v1(TOKEN, "0" * 32, "1767225600000", GOLDEN, "agent_1")
    assert signature == "688ae22a82653d0a7576f53e45389dd3c1eae17b6654fada3e4ad1eb8209e869"


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1.0", "1"),
        ("-0", "0"),
        ("-0.0", "0"),
        ("1e21", "1e+21"),
        ("1e20", "100000000000000000000"),
        ("123456789012345678901234567890", "1.2345678901234568e+29"),
        ("9007199254740993", "9007199254740992"),
        ("0.000001", "0.000001"),
        ("0.0000001", "1e-7"),
        ("1.5e-10", "1.5e-10"),
        ("5e-324", "5e-324"),
        ("1e999", "null"),
        ('{"9":1,"10":2}', '{"10":2,"9":1}'),
        ('{"é":1,"z":2}', '{"z":2,"é":1}'),
        ('{"\\ufb01":1,"\\ud83d\\ude00":2}', '{"😀":2,"ﬁ":1}'),
        ('"\\ud800"', '"\\ud800"'),
        ('"\\u2028\\u007f"', '"\u2028\u007f"'),
        ('"\\u0001\\b"', '"\\u0001\\b"'),
        (" [ 1 , { } ] ", "[1,{}]"),
    ],
)
def test_canonical_json_is_written_as_ecmascript_writes_it(text: str, canonical: str) -> None:
    assert canonical_json(read_json(text.encode())) == canonical


def test_a_number_that_is_too_large_is_null_also_where_it_is_stored_and_sent_on() -> None:
    assert read_json(b'{"a": [1e999, -1e999, 1e308]}') == {"a": [None, None, 1e308]}


@pytest.mark.parametrize(
    "body", [b"{", b"NaN", b"[Infinity]", b"\xff", b"[" * 100_000, b"1" * 5_000, b"[" * 80 + b"]" * 80]
)
def test_what_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(JsonRefused):
        read_json(body)


def random_text(chance: random.Random) -> str:
    """A JSON string literal of characters of every kind, lone surrogates among them."""
    kinds = (
        (0, 0x20),
        (0x20, 0x7F),
        (0x7F, 0x800),
        (0x2020, 0x2030),
        (0xD800, 0xE000),
        (0xE000, 0xFFFF),
        (0x10000, 0x10FFFF),
    )
    characters = [chr(chance.randrange(*chance.choice(kinds))) for _ in range(chance.randrange(8))]
    return json.dumps("".join(characters))


def random_number(chance: random.Random) -> str:
    choice = chance.randrange(5)
    if choice == 0:
        (value,) = struct.unpack("<d", chance.randbytes(8))
        return repr(value) if abs(value) < float("inf") else "0"
    if choice == 1:
        return f"{chance.randrange(-999, 999)}e{chance.randrange(-330, 320)}"
    if choice == 2:
        return str(chance.randrange(-(10**30), 10**30))
    return repr(chance.randrange(-(10**6), 10**6) / chance.choice([1, 10, 1000, 3]))


def random_json(chance: random.Random, depth: int = 3) -> str:
    choice = chance.randrange(6 if depth else 4)
    if choice == 4:
        return "[" + ",".join(random_json(chance, depth - 1) for _ in range(chance.randrange(4))) + "]"
    if choice == 5:
        names = [chance.choice([random_text(chance), json.dumps(str(chance.randrange(200)))]) for _ in range(6)]
        return "{" + ",".join(f"{name}:{random_json(chance, depth - 1)}" for name in names) + "}"
    return (random_text(chance), random_number(chance), "true", "null")[choice]


@pytest.mark.parametrize("count", [400, pytest.param(10_000, marks=pytest.mark.proof)])
def test_canonical_json_equals_that_of_node(count: int) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed here")
    chance = random.Random(17)
    vectors = [random_json(chance) for _ in range(count)]
    done = subprocess.run([node, "-e", NODE], input="\n".join(vectors).encode(), capture_output=True, check=True)
    texts = [json.loads(line) for line in done.stdout.decode().split("\n")]
    assert len(texts) == count
    for vector, text in zip(vectors, texts, strict=True):
        assert canonical_json(read_json(vector.encode())) == text, vector


JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON)
def test_canonical_json_does_not_depend_on_the_wire_and_is_a_fixed_point(value: Any) -> None:
    canonical = canonical_json(read_json(json.dumps(value, indent=2).encode()))
    assert canonical_json(read_json(canonical.encode())) == canonical


PARTS = SignedParts("POST", "/api/threads?x=1", "localhost:8710", "agent_1", "1767225600000", "0" * 32, "key-1")


@pytest.mark.parametrize(
    "other",
    [
        SignedParts("PATCH", PARTS.path, PARTS.host, PARTS.agent_id, PARTS.timestamp, PARTS.nonce, "key-1"),
        SignedParts("POST", "/api/threads?x=2", PARTS.host, PARTS.agent_id, PARTS.timestamp, PARTS.nonce, "key-1"),
        SignedParts("POST", PARTS.path, "evil:8710", PARTS.agent_id, PARTS.timestamp, PARTS.nonce, "key-1"),
        SignedParts("POST", PARTS.path, PARTS.host, "agent_2", PARTS.timestamp, PARTS.nonce, "key-1"),
        SignedParts("POST", PARTS.path, PARTS.host, PARTS.agent_id, "1767225600001", PARTS.nonce, "key-1"),
        SignedParts("POST", PARTS.path, PARTS.host, PARTS.agent_id, PARTS.timestamp, "1" * 32, "key-1"),
        SignedParts("POST", PARTS.path, PARTS.host, PARTS.agent_id, PARTS.timestamp, PARTS.nonce, "key-2"),
    ],
)
def test_every_part_of_a_request_changes_the_signature_of_version_2(other: SignedParts) -> None:
    key = signing_key(TOKEN)
    assert sign_v2(key, other, b"{}") != sign_v2(key, PARTS, b"{}")
    assert sign_v2(key, PARTS, b"{ }") != sign_v2(key, PARTS, b"{}")


@given(st.lists(st.text(max_size=6), min_size=7, max_size=7), st.lists(st.text(max_size=6), min_size=7, max_size=7))
def test_two_requests_have_the_same_signature_only_if_they_are_equal(one: list[str], two: list[str]) -> None:
    def signed(parts: list[str]) -> str:
        return sign_v2(b"key", SignedParts(parts[0].upper(), parts[1], parts[2].lower(), *parts[3:]), b"")

    def equal(parts: list[str]) -> list[str]:
        return [parts[0].upper(), parts[1], parts[2].lower(), *parts[3:]]

    if equal(one) != equal(two):
        assert signed(one) != signed(two)


def test_the_golden_vector_of_version_2_has_its_key_id_and_its_signature() -> None:
    assert key_id(TOKEN) == "6f6cd2268f0c18e69801323369ebebf3"
    signature = sign_v2(signing_key(TOKEN), PARTS, b"{}")
    assert signature == "ac507660571e6fd772d578a28a05017b2dc3f82d93cdab1eb76fdf3af9e9a5f5"


def test_neither_key_id_nor_hash_nor_signing_key_contains_the_token_or_each_other() -> None:
    values = {key_id(TOKEN), token_hash(TOKEN), signing_key(TOKEN).hex()}
    assert len(values) == 3
    assert all("ab" * 8 not in value for value in values)
    assert not signing_key(TOKEN).hex().startswith(key_id(TOKEN))
