"""The extra is loaded when it is named, and says so when it is missing."""

import asyncio
import subprocess
import sys

import pytest

from models.native.vendor import claude
from pitboss.core.errors import UserError
from pitboss.core.ports import ModelReply
from pitboss.models.native import load
from pitboss.models.native.recordings import parse_native

HEAVY = ("pydantic_ai", "anthropic", "google.genai", "httpx2")


def test_importing_the_models_loads_none_of_the_extra() -> None:
    program = (
        "import sys, pitboss.models, pitboss.models.native\n"
        f"sys.exit(', '.join(name for name in {HEAVY!r} if name in sys.modules) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("kind", "missing"), [("anthropic", "anthropic"), ("google", "google.genai")])
def test_a_missing_extra_is_a_line_to_type(kind: str, missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(sys.modules):
        if name == f"pitboss.models.native.{kind}":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(UserError) as caught:
        load(kind)  # type: ignore[arg-type]
    assert "pip install 'pitboss[native]'" in caught.value.hint


def test_a_recording_is_read_inside_a_running_loop_too() -> None:
    async def inside() -> object:
        headers = {"content-type": "application/json"}
        return parse_native("anthropic", claude({"type": "text", "text": "hold"}), 200, headers)

    reply = asyncio.run(inside())
    assert isinstance(reply, ModelReply)
    assert reply.text == "hold"
