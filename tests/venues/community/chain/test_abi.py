"""Interfaces of contracts and strict encoding of arguments: equal to published vectors, and never an exception."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from eth_abi.abi import decode, encode
from eth_utils.crypto import keccak
from hypothesis import given
from hypothesis import strategies as st

from pitboss.venues.community.chain.abi import (
    AbiFunction,
    ContractAbi,
    EncodedCall,
    decode_result,
    encode_call,
    read_abi,
)

VECTORS = Path(__file__).parents[4].parent / "shared" / "data" / "eth"
needs_vectors = pytest.mark.skipif(not VECTORS.exists(), reason="../shared/data/eth is not here")


def vectors(name: str) -> Any:
    return json.loads(gzip.decompress((VECTORS / name).read_bytes()))


def function(*types: str, name: str = "f", **fields: Any) -> dict[str, Any]:
    return {"type": "function", "name": name, "inputs": [{"type": one} for one in types], **fields}


OVERLOADED = read_abi(
    [
        function("uint256", name="give"),
        function("address", name="give"),
        function("uint256", "uint256", name="give"),
        function("uint8", name="small"),
        function("uint256", name="small"),
    ]
)


@needs_vectors
def test_published_signatures_and_selectors_are_reproduced() -> None:
    for case in vectors("contract-signatures.json.gz"):
        functions = [one for one in read_abi(json.loads(case["abi"])).functions if one.name == "testSig"]
        assert [(one.signature, one.selector) for one in functions] == [(case["signature"], case["sigHash"])], case[
            "name"
        ]


@needs_vectors
def test_published_hashes_are_reproduced() -> None:
    for case in vectors("hashes.json.gz"):
        assert "0x" + keccak(hexstr=case["data"]).hex() == case["keccak256"]


@needs_vectors
def test_published_encodings_are_read_and_written_again() -> None:
    checked = 0
    for case in vectors("contract-interface-abi2.json.gz"):
        abi = read_abi(json.loads(case["interface"]))
        test = next(one for one in abi.functions if one.name == "test")
        values = decode_result(test, case["result"])
        assert values is not None, case["name"]
        inverse = AbiFunction("test", test.outputs, (), "nonpayable")
        call = encode_call(ContractAbi((inverse,)), "test", list(values))
        assert isinstance(call, EncodedCall), (case["name"], call)
        assert call.data[10:] == case["result"][2:], case["name"]
        checked += 1
    assert checked > 100


@pytest.mark.parametrize(
    ("name", "arguments", "signature"),
    [
        ("give(uint256)", [7], "give(uint256)"),
        ("give", [7], "give(uint256)"),
        ("give", ["0x" + "ab" * 20], "give(address)"),
        ("give", [1, "2"], "give(uint256,uint256)"),
        ("small", [300], "small(uint256)"),
        ("small(uint8)", [200], "small(uint8)"),
    ],
)
def test_an_overloaded_function_is_found_by_signature_or_by_its_only_fit(
    name: str, arguments: list[Any], signature: str
) -> None:
    call = encode_call(OVERLOADED, name, arguments)
    assert isinstance(call, EncodedCall)
    assert call.function.signature == signature


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("small", [200], "several functions"),
        ("give", [True], "no function of that name takes"),
        ("take", [], "no function of that name"),
        ("small(uint8)", [256], "argument 1 must be uint8"),
        ("small(uint8)", [-1], "argument 1 must be uint8"),
        ("small(uint8)", [1.0], "argument 1 must be uint8"),
        ("small(uint8)", ["0x1"], "argument 1 must be uint8"),
        ("small(uint8)", ["9" * 5_000], "argument 1 must be uint8"),
        ("small(uint8)", [1, 2], "takes 1 arguments"),
        ("small(uint8)", {"a": 1}, "not a list"),
        ("small( uint8)", [1], "no function of that name"),
    ],
)
def test_wrong_calls_are_problems_in_words(name: str, arguments: Any, problem: str) -> None:
    problems = encode_call(OVERLOADED, name, arguments)
    assert isinstance(problems, list)
    assert problem in problems[0]


@pytest.mark.parametrize(
    ("written", "good", "bad"),
    [
        ("address", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD"),
        ("address", "0x" + "0" * 40, "0x" + "0" * 39),
        ("bytes4", "0x01020304", "0x0102030405"),
        ("bytes", "0x", "00"),
        ("bytes", "0xAb", "0xabc"),
        ("string", "é", "\ud800"),
        ("string", "x", 1),
        ("bool", False, 0),
        ("int8", -128, -129),
        ("int256", str(-(2**255)), str(2**255)),
        ("uint256", str(2**256 - 1), str(2**256)),
        ("uint256", 0, "00"),
        ("uint8[2]", [1, 2], [1]),
        ("uint8[]", [], "[]"),
        ("uint8[2][]", [[1, 2]], [[1, 2, 3]]),
    ],
)
def test_each_type_takes_its_values_and_no_others(written: str, good: Any, bad: Any) -> None:
    abi = read_abi([function(written)])
    call = encode_call(abi, "f", [good])
    assert isinstance(call, EncodedCall)
    assert len(decode([written], bytes.fromhex(call.data[10:]))) == 1
    assert isinstance(encode_call(abi, "f", [bad]), list)


def test_tuples_are_lists_of_their_fields() -> None:
    abi = read_abi([{"type": "function", "name": "f", "inputs": [{"type": "tuple[]", "components": [{"type": "address"}, {"type": "uint"}]}]}])  # fmt: skip
    assert abi.functions[0].signature == "f((address,uint256)[])"
    assert isinstance(encode_call(abi, "f", [[["0x" + "11" * 20, 5]]]), EncodedCall)
    assert isinstance(encode_call(abi, "f", [[["0x" + "11" * 20]]]), list)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda one: st.lists(one, max_size=5) | st.dictionaries(st.text(max_size=8), one, max_size=5),
    max_leaves=20,
)
TYPES = st.sampled_from(["uint256", "int8", "bool", "address", "bytes", "bytes32", "string", "uint8[]", "uint8[3]", "tuple", "fixed128x18", "function", "uint7", "x", "uint256[0]"])  # fmt: skip


@given(st.lists(TYPES, max_size=4), JSON)
def test_no_interface_and_no_arguments_raise(types: list[str], arguments: Any) -> None:
    abi = read_abi([function(*types), arguments])
    for name in ("f", *(one.signature for one in abi.functions)):
        result = encode_call(abi, name, arguments)
        assert isinstance(result, EncodedCall) or all(isinstance(one, str) for one in result)


@given(JSON)
def test_any_json_is_an_interface_or_has_problems(content: Any) -> None:
    assert read_abi(content).functions == ()
    assert read_abi([{"type": "function", "name": "f", "inputs": content, "outputs": content}]).functions is not None
    assert decode_result(AbiFunction("f", (), ("uint256",), "view"), str(content)[:60]) is None


def test_nesting_is_bounded() -> None:
    deep: Any = {"type": "uint8"}
    for _ in range(200):
        deep = {"type": "tuple", "components": [deep]}
    assert read_abi([{"type": "function", "name": "f", "inputs": [deep]}]).functions == ()


def test_large_results_are_decimal_text() -> None:
    result = decode_result(AbiFunction("f", (), ("uint256", "bytes"), "view"), "0x" + "ff" * 32 + "00" * 31 + "40" + "00" * 31 + "01" + "ab" + "00" * 31)  # fmt: skip
    assert result == (str(2**256 - 1), "0xab")


def test_a_result_that_names_the_same_bytes_again_and_again_is_not_read() -> None:
    word, count = (lambda number: number.to_bytes(32, "big")), 2_000
    function = read_abi([{"type": "function", "name": "f", "inputs": [], "outputs": [{"type": "string[]"}]}]).functions[
        0
    ]
    text = word(100_000) + b"a" * 100_000
    once = word(32) + word(1) + word(32) + text
    assert decode_result(function, "0x" + once.hex()) == (["a" * 100_000],)
    repeated = word(32) + word(count) + count * word(32 * count) + text
    assert decode_result(function, "0x" + repeated.hex()) is None


def test_nested_results_of_any_size_are_read() -> None:
    inner = {
        "type": "tuple[]",
        "components": [{"type": "uint256"}, {"type": "tuple", "components": [{"type": "bool"}]}],
    }
    outputs = [{"type": "tuple[]", "components": [{"type": "string[]"}, inner]}]
    function = read_abi([{"type": "function", "name": "f", "inputs": [], "outputs": outputs}]).functions[0]
    rows = [(["text", "", "x" * 40] * 20, [(number, (True,)) for number in range(50)])] * 40
    data = encode(function.outputs, [rows])
    assert decode_result(function, "0x" + data.hex()) == (
        [[list(texts), [[number, [flag[0]]] for number, flag in pairs]] for texts, pairs in rows],
    )
