"""One request to the forum server, as its handlers see it, and a refusal of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ValidationError

from pitboss.venues.community.sns.canonical_json import JsonRefused, read_json

BodyModel = TypeVar("BodyModel", bound=BaseModel)


class HttpRefusal(Exception):
    """A request that is answered with an error status and `{"error": text}`."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.headers = headers or {}


@dataclass(frozen=True, slots=True)
class ApiCall:
    """A request. Names of headers are in lower case; `path` is as it was sent, with the query."""

    method: str
    path: str
    address: str
    headers: Mapping[str, str]
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    params: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""

    def header(self, name: str) -> str:
        """A header without surrounding space; empty if it is absent."""
        return self.headers.get(name, "").strip()

    def json(self) -> dict[str, Any]:
        """The body, which must be a JSON object."""
        try:
            value = read_json(self.body)
        except JsonRefused as error:
            raise HttpRefusal(400, str(error)) from None
        if not isinstance(value, dict):
            raise HttpRefusal(400, "JSON body must be an object")
        return cast("dict[str, Any]", value)


def read_body(model: type[BodyModel], body: Mapping[str, Any]) -> BodyModel:
    """A body as its model; the first problem becomes a refusal. Values are not repeated in it."""
    try:
        return model.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        texts = {"missing": f"{place} is required", "extra_forbidden": f"{place[:100]} is not a field of this request"}
        raise HttpRefusal(400, texts.get(first["type"], f"{place}: {first['msg']}")[:300]) from None
