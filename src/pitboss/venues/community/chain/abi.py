"""Functions of a contract's interface (ABI), and strict encoding of JSON arguments for them.

An ABI and arguments come from strangers: whatever is wrong with them is a list of problems, never an exception, and sizes are
bounded. A function is named by its full signature, or by its name where name and arguments leave one candidate. Pure; the rules
and the chain adapter use the same functions, so that what was checked is what is sent.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, cast

from eth_abi.abi import encode
from eth_abi.codec import ABIDecoder
from eth_abi.decoding import ContextFramesBytesIO
from eth_abi.exceptions import ABITypeError, DecodingError, EncodingError, ParseError
from eth_abi.grammar import parse
from eth_abi.registry import registry
from eth_utils.address import is_checksum_address
from eth_utils.crypto import keccak

from pitboss.core.noun import noun

MOST_FUNCTIONS = 2_000
MOST_DEPTH = 12
MOST_ITEMS = 2_000
MOST_BYTES = 24 * 1024
MOST_READINGS, SHORT_RESULT_BYTES = 16, 1 << 18
"""How often each byte of a result may be read on average, and how many bytes more. Tuples in tuples are read several times."""
LARGEST_JSON_INTEGER = 2**53
"""Larger results are decimal text: many JSON readers would round them."""

_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]{0,127}")
_TYPE = re.compile(r"(tuple|[a-z]+[0-9]*)((?:\[[0-9]{0,6}\])*)")
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,78})")
_HEX = re.compile(r"0x(?:[0-9a-fA-F]{2})*")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")

Mutability = Literal["view", "pure", "nonpayable", "payable"]


@noun
class AbiFunction:
    """One function: its types in canonical form, and how it may be called."""

    name: str
    types: tuple[str, ...]
    outputs: tuple[str, ...]
    mutability: Mutability

    @property
    def signature(self) -> str:
        """The full signature, such as `withdraw(uint256)`."""
        return f"{self.name}({','.join(self.types)})"

    @property
    def selector(self) -> str:
        """The first four bytes of the signature's hash, with 0x."""
        return selector_of(self.signature)

    @property
    def is_read_only(self) -> bool:
        """Whether a call changes nothing."""
        return self.mutability in ("view", "pure")


@lru_cache(2_000)
def selector_of(signature: str) -> str:
    """The first four bytes of the hash of a full signature, with 0x."""
    return "0x" + keccak(text=signature)[:4].hex()


@noun
class ContractAbi:
    """The functions of a contract, in the order of its ABI. `problems` names entries that could not be read."""

    functions: tuple[AbiFunction, ...]
    problems: tuple[str, ...] = ()

    def named(self, name: str) -> tuple[AbiFunction, ...]:
        """The functions of this name or full signature."""
        if "(" in name:
            return tuple(function for function in self.functions if function.signature == name)
        return tuple(function for function in self.functions if function.name == name)


@noun
class EncodedCall:
    """A function with its arguments as call data, hexadecimal with 0x."""

    function: AbiFunction
    data: str


def read_abi(content: Any) -> ContractAbi:
    """Read the functions of an ABI in its JSON form. Entries that cannot be read are left out and named."""
    if not isinstance(content, list):
        return ContractAbi((), ("the ABI is not a list",))
    entries = cast("list[Any]", content)
    functions: dict[str, AbiFunction] = {}
    problems: list[str] = []
    for number, entry in enumerate(entries[: MOST_FUNCTIONS * 2]):
        if not isinstance(entry, dict) or cast("dict[str, Any]", entry).get("type", "function") != "function":
            continue
        function = _function(cast("dict[str, Any]", entry))
        if function is None:
            problems.append(f"entry {number} of the ABI is no function that can be called")
        elif len(functions) < MOST_FUNCTIONS:
            functions.setdefault(function.signature, function)
    return ContractAbi(tuple(functions.values()), tuple(problems[:20]))


def _function(entry: dict[str, Any]) -> AbiFunction | None:
    name = entry.get("name")
    types, outputs = _types(entry.get("inputs", []), 0), _types(entry.get("outputs", []), 0)
    if not isinstance(name, str) or not _NAME.fullmatch(name) or types is None or outputs is None:
        return None
    mutability = entry.get("stateMutability")
    if mutability not in ("view", "pure", "nonpayable", "payable"):  # the form before 2018
        constant, payable = entry.get("constant") is True, entry.get("payable") is True
        mutability = "view" if constant else "payable" if payable else "nonpayable"
    return AbiFunction(name, types, outputs, mutability)


def _types(parameters: Any, depth: int) -> tuple[str, ...] | None:
    """The canonical types of a list of parameters; None if one cannot be read."""
    if not isinstance(parameters, list) or depth > MOST_DEPTH or len(cast("list[Any]", parameters)) > 64:
        return None
    types: list[str] = []
    for parameter in cast("list[Any]", parameters):
        written = cast("dict[str, Any]", parameter).get("type") if isinstance(parameter, dict) else None
        match = _TYPE.fullmatch(written) if isinstance(written, str) and len(written) < 100 else None
        if match is None:
            return None
        if match[1] == "tuple":
            inner = _types(parameter.get("components"), depth + 1)
            if inner is None:
                return None
            types.append(f"({','.join(inner)}){match[2]}")
        else:
            types.append({"uint": "uint256", "int": "int256"}.get(match[1], match[1]) + match[2])
        if _parsed(types[-1]) is None:
            return None
    return tuple(types)


@lru_cache(2_000)
def _parsed(written: str) -> Any:
    try:
        if "()" in written:
            return None
        parsed: Any = parse(written)
        parsed.validate()
        return parsed
    except (ParseError, ABITypeError, ValueError, RecursionError):
        return None


def encode_call(abi: ContractAbi, name: str, arguments: Any) -> EncodedCall | list[str]:
    """Encode a call by name or full signature, or return everything that is wrong with it."""
    if not isinstance(cast("object", name), str) or len(name) > 2_000:
        return ["the function is not named by text"]
    candidates = abi.named(name)
    if not candidates:
        return ["the contract has no function of that name or signature"]
    if not isinstance(arguments, list | tuple):
        return ["the arguments are not a list"]
    results = [_encode(function, cast("Sequence[Any]", arguments)) for function in candidates]
    calls = [result for result in results if isinstance(result, EncodedCall)]
    if len(calls) == 1:
        return calls[0]
    if len(calls) > 1:
        signatures = ", ".join(call.function.signature for call in calls)
        return [f"several functions of that name take these arguments; name one by its signature: {signatures[:500]}"]
    if len(candidates) > 1:
        signatures = ", ".join(function.signature for function in candidates)
        return [f"no function of that name takes these arguments; there are: {signatures[:500]}"]
    return cast("list[str]", results[0])


def _encode(function: AbiFunction, arguments: Sequence[Any]) -> EncodedCall | list[str]:
    if len(arguments) != len(function.types):
        return [f"{function.signature} takes {len(function.types)} arguments, not {len(arguments)}"]
    problems: list[str] = []
    values = [
        _converted(_parsed(written), argument, f"argument {number}", problems, 0)
        for number, (written, argument) in enumerate(zip(function.types, arguments, strict=True), start=1)
    ]
    if problems:
        return problems[:20]
    try:
        data = encode(function.types, values)
    except (EncodingError, ValueError, OverflowError, UnicodeError):
        return ["the arguments cannot be encoded"]
    if len(data) > MOST_BYTES:
        return [f"the arguments take {len(data)} bytes, more than {MOST_BYTES}"]
    return EncodedCall(function, function.selector + data.hex())


def _converted(written: Any, value: Any, where: str, problems: list[str], depth: int) -> Any:
    """A JSON value as the library takes it. What is wrong is added to `problems`."""
    if len(problems) >= 20 or depth > MOST_DEPTH:
        problems.append(f"{where} is nested too deep")
        return None
    if written.is_array or hasattr(written, "components"):
        return _converted_list(written, value, where, problems, depth)
    wanted = f"{where} must be {written.to_type_str()}"
    base, size = written.base, written.sub
    if base in ("uint", "int"):
        number = _integer(value)
        low, high = (0, 2**size) if base == "uint" else (-(2 ** (size - 1)), 2 ** (size - 1))
        if number is None or not low <= number < high:
            problems.append(f"{wanted}: a whole number in its range, or its decimal digits as text")
        return number
    if base == "bool":
        if type(value) is not bool:
            problems.append(f"{wanted}: true or false")
        return value
    if base == "address":
        if not isinstance(value, str) or not _is_address(value):
            problems.append(f"{wanted}: 0x and 40 hexadecimal digits, with the right checksum if in mixed case")
        return value
    if base == "bytes":
        if not isinstance(value, str) or len(value) > 2 * MOST_BYTES + 2 or not _HEX.fullmatch(value):
            problems.append(f"{wanted}: hexadecimal text with 0x")
            return b""
        data = bytes.fromhex(value[2:])
        if size is not None and len(data) != size:
            problems.append(f"{wanted}: exactly {size} bytes")
        return data
    if base == "string":
        if not isinstance(value, str) or len(value) > MOST_BYTES or _has_surrogates(value):
            problems.append(f"{wanted}: text of at most {MOST_BYTES} characters")
            return ""
        return value
    problems.append(f"{wanted}, which is not supported")
    return None


def _converted_list(written: Any, value: Any, where: str, problems: list[str], depth: int) -> Any:
    if not isinstance(value, list | tuple) or len(cast("Sequence[Any]", value)) > MOST_ITEMS:
        problems.append(f"{where} must be a list of at most {MOST_ITEMS} values for {written.to_type_str()[:80]}")
        return ()
    items = cast("Sequence[Any]", value)
    if written.is_array:
        length = written.arrlist[-1]
        if length and len(items) != length[0]:
            problems.append(f"{where} must have exactly {length[0]} values")
            return ()
        inner = [written.item_type] * len(items)
    else:
        if len(items) != len(written.components):
            problems.append(f"{where} must have exactly {len(written.components)} values")
            return ()
        inner = list(written.components)
    return tuple(
        _converted(one, item, f"{where}[{place}]", problems, depth + 1)
        for place, (one, item) in enumerate(zip(inner, items, strict=True))
    )


def _integer(value: Any) -> int | None:
    if type(value) is int:
        return value
    return int(value) if isinstance(value, str) and _INTEGER.fullmatch(value) else None


def _is_address(text: str) -> bool:
    digits = text[2:]
    uniform = digits in (digits.lower(), digits.upper())
    return _ADDRESS.fullmatch(text) is not None and (uniform or is_checksum_address(text))


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in text)


def decode_result(function: AbiFunction, data: str) -> tuple[Any, ...] | None:
    """The values that a call returned, as JSON values; None if the bytes are not of the function's types."""
    if not _HEX.fullmatch(data):
        return None
    try:
        return tuple(_plain(value) for value in _DECODER.decode(function.outputs, bytes.fromhex(data[2:])))
    except (DecodingError, ValueError, OverflowError, RecursionError):
        return None


class _BoundedStream(ContextFramesBytesIO):
    """The bytes of a result. Offsets in it may name the same bytes many times, which would take any amount of memory."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self._left = MOST_READINGS * len(data) + SHORT_RESULT_BYTES

    def read(self, size: int | None = -1, /) -> bytes:
        """Read bytes. Raises `DecodingError` after too many."""
        content = super().read(size)
        self._left -= len(content)
        if self._left < 0:
            raise DecodingError("the result names the same bytes too often")
        return content


class _BoundedDecoder(ABIDecoder):
    stream_class = _BoundedStream


_DECODER = _BoundedDecoder(registry)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, tuple | list):
        return [_plain(item) for item in cast("Sequence[Any]", value)]
    if type(value) is int and abs(value) >= LARGEST_JSON_INTEGER:
        return str(value)
    return value
