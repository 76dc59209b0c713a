"""A server's tool as a model may use it: allowed, pinned, with checked arguments, a timeout, and its result fenced as data.

Every failure is a `ToolFailed` with one plain line, within the entry's timeout; a server that fails three times in a row
is not called again in this tick. Which tools a skill gets is decided by `tool_names` and the catalogue; results in
simulations come from `recorded_tool`.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pitboss.core import codec
from pitboss.core.errors import ToolFailed, TransientError
from pitboss.core.ports import ToolSpec
from pitboss.tools.data_fence import LIMIT, fence
from pitboss.tools.mcp.argument_check import compile_check
from pitboss.tools.mcp.connection import Connection
from pitboss.tools.mcp.recorded_tool import MAX_ARGUMENT_BYTES
from pitboss.tools.mcp.server_entry import ServerEntry

if TYPE_CHECKING:
    from mcp_types import CallToolResult

MAX_MARKS = 10
_KILO = 1_000
_MIME = re.compile(r"[a-z]{1,20}/[A-Za-z0-9.+-]{1,40}")


class GuardedTool:
    """A `core.ports.Tool`. `name` is the server's own name of the tool, `pin` the digest of the approved definition.

    `schema` is the approved schema, if the one shown to the model (`spec.schema`) was cut.
    """

    def __init__(
        self,
        spec: ToolSpec,
        connection: Connection,
        name: str,
        entry: ServerEntry,
        pin: str,
        schema: Mapping[str, Any] | None = None,
    ) -> None:
        self.spec = spec
        self._connection = connection
        self._name = name
        self._entry = entry
        self._pin = pin
        self._schema = spec.schema if schema is None else schema
        self._check: Any = None

    async def call(self, arguments: Any) -> str:
        """The server's result as fenced text."""
        checked_arguments = self._checked(arguments)
        if self._connection.broken:
            raise ToolFailed(f"{self._entry.id} is not available in this tick: it failed several times in a row")
        request = asyncio.create_task(self._ask(checked_arguments))
        try:
            await asyncio.wait({request}, timeout=self._entry.timeout_s)
        finally:
            if not request.done():
                request.cancel()
        if not request.done():
            self._connection.failed()
            raise ToolFailed(f"{self.spec.name} did not answer in {self._entry.timeout_s:g} s")
        try:
            result = request.result()
        except TransientError as error:
            self._connection.failed()
            raise ToolFailed(str(error)) from None
        self._connection.worked()
        content, marks = result_text(result)
        text = fenced(self.spec.name, self._connection.hide(content), marks)
        if result.is_error:
            raise ToolFailed(text)
        return text

    def _checked(self, arguments: Any) -> dict[str, Any]:
        if not isinstance(arguments, Mapping):
            raise ToolFailed("the arguments must be a JSON object")
        try:
            plain: dict[str, Any] = {str(key): _number(value) for key, value in arguments.items()}
            size = len(codec.dumps(plain))
        except (TypeError, ValueError, ArithmeticError, RecursionError):
            raise ToolFailed("the arguments are not JSON that can be sent") from None
        if size > MAX_ARGUMENT_BYTES:
            raise ToolFailed(f"the arguments are {size} bytes long; at most {MAX_ARGUMENT_BYTES}")
        if self._check is None:
            self._check = compile_check(self._schema)
        self._check(plain)
        return plain

    async def _ask(self, arguments: dict[str, Any]) -> "CallToolResult":
        if self._name not in self._entry.tools:
            raise ToolFailed(f"{self.spec.name} is not allowed by the catalogue")
        async with self._connection.slots:
            definition = (await self._connection.definitions()).get(self._name)
            if definition is None:
                raise ToolFailed(f"{self.spec.name} is disabled: the server does not offer it any more")
            if definition.digest != self._pin:
                raise ToolFailed(f"{self.spec.name} is disabled: its definition changed since it was approved")
            return await self._connection.call(self._name, arguments)


def result_text(result: "CallToolResult") -> tuple[str, list[str]]:
    """The text of a result, and one placeholder for each part that is not text and is not shown."""
    texts = [block.text for block in result.content if block.type == "text"]
    marks = [_mark(block) for block in result.content if block.type != "text"]
    if result.structured_content is not None and not any(texts):
        texts = [codec.dumps(codec.number_fragments(result.structured_content)).decode()]
    return "\n".join(texts), marks


def fenced(source: str, text: str, marks: Sequence[str]) -> str:
    """The text fenced as data, with the placeholders after it, where the text cannot forge them."""
    data, end = fence(source, text or ("" if marks else "(no text)"), LIMIT).rsplit("\n", 1)
    more = [f"[{len(marks) - MAX_MARKS} more parts, not shown]"] if len(marks) > MAX_MARKS else []
    return "\n".join((data, *marks[:MAX_MARKS], *more, end))


def _mark(block: Any) -> str:
    if block.type in ("image", "audio"):
        return f"[{block.type} {_kind(block.mime_type)}, {_size(len(block.data) * 3 // 4)}, not shown]"
    if block.type == "resource":
        resource = block.resource
        content = getattr(resource, "text", None)
        size = len(resource.blob) * 3 // 4 if content is None else len(content.encode("utf-8", "replace"))
        return f"[resource {_kind(resource.mime_type)}, {_size(size)}, not shown]"
    return f"[resource {_kind(block.mime_type)}, linked, not shown]"


def _kind(mime_type: str | None) -> str:
    return mime_type if mime_type and _MIME.fullmatch(mime_type) else "of unknown kind"


def _size(count: int) -> str:
    return f"{count} bytes" if count < _KILO else f"{round(count / _KILO)} kB"


def _number(value: Any) -> Any:
    """Decimals as int or float, which JSON libraries accept; whole numbers become int."""
    if isinstance(value, Decimal):
        if not value.is_finite() or value.adjusted() > 300:
            raise ValueError("a number out of range")
        return int(value) if value == value.to_integral_value() and value.adjusted() < 18 else float(value)
    if isinstance(value, Mapping):
        return {str(key): _number(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_number(item) for item in value]
    return value
