"""A lake at a server that speaks S3, through the whole program: the same runs, the same digests, and no key in any text."""

import asyncio
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from object_lakes import FROM, KEYS, ObjectLake, copy_of, funding, s3_server

from cli.run_command import pitboss, pitboss_ok, pitboss_refused
from forked_process import ForkedProcess
from pitboss.bootstrap import machine
from pitboss.bootstrap.redact import REDACTOR
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import lake_variables, open_workspace
from pitboss.core.errors import UserError
from pitboss.core.instant import HOUR_MS
from pitboss.data import object_storage as objects
from pitboss.data.lake import Lake
from pitboss.data.object_storage import read_address
from pitboss.jobs.worker import Worker, WorkerSettings
from pitboss.jobs.worker_settings import open_queue
from pitboss.runs.fork import ForkChange, fork
from pitboss.runs.run import job_of, request_of, resume, start, verify
from pitboss.store.run import Run
from pitboss.venues.perp.assembly import PerpRequest
from pitboss.venues.perp.report_source import same_data
from pitboss.venues.perp.testing import plain_skill


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with s3_server() as address:
        yield address


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The credentials of the server as the only variables of S3."""
    for name in list(os.environ):
        if name.startswith(("AWS_", "PITBOSS_")):
            monkeypatch.delenv(name)
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(machine, "_LENT", {})
    yield
    REDACTOR.forget()


@pytest.fixture
def bucket(server: str, keys: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a place in a bucket of its own."""
    del keys
    monkeypatch.setenv("AWS_ENDPOINT_URL", server)
    name = "b" + tmp_path.name.replace("_", "-").lower()[-50:]
    urllib.request.urlopen(urllib.request.Request(f"{server}/{name}", method="PUT")).close()
    return f"s3://{name}/some/lake"


@pytest.fixture
def home(stock: Lake, tmp_path: Path) -> Path:
    """A workspace with the lake in its folder."""
    copy_of(stock, tmp_path / "here" / "lake")
    return tmp_path / "here"


def run_in(home: Path, model: str = "standin/analyst", hours: int = 12) -> Run:
    """A backtest in a workspace."""
    request = PerpRequest(plain_skill(["BTC", "ETH"], "15m", model=model), FROM, FROM + hours * HOUR_MS)
    with open_workspace(load_settings(home)) as workspace:
        run = asyncio.run(start(workspace, request))
        assert verify(workspace, run.id) == []
        return run


def test_the_same_run_through_s3_has_the_digest_of_the_one_here(
    bucket: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = {model: run_in(home, model) for model in ("standin/analyst", "policy/momentum")}
    listed, checked = (pitboss_ok("data", what, "--json", "--home", home).json for what in ("list", "check"))
    reply = pitboss_ok("data", "push", bucket, "--json", "--home", home).json
    assert reply["sent_files"] == reply["files"] > 10

    elsewhere = tmp_path / "elsewhere"
    monkeypatch.setenv("PITBOSS_LAKE", bucket)
    for model, run in here.items():
        far = run_in(elsewhere, model)
        assert (far.digest, far.data_digest) == (run.digest, run.data_digest)
        assert far.params == {**run.params, "lake": reply["pin"]}
    assert not (elsewhere / "lake").exists()
    copies = list((elsewhere / "lake-cache" / "files").glob("[0-9a-f]*"))
    assert 0 < len(copies) < reply["files"], "not only what the runs needed was fetched"
    assert pitboss_ok("data", "list", "--json", "--home", elsewhere).json == listed
    assert pitboss_ok("data", "check", "--json", "--home", elsewhere).json == checked
    assert pitboss_ok("data", "pull", "--json", "--home", elsewhere).json["files"] == 0, (
        "list and check had read everything"
    )


def _skill(tmp_path: Path) -> Path:
    path = tmp_path / "skill.json"
    path.write_text(json.dumps(plain_skill(["BTC"], "15m")))
    return path


def test_a_queued_run_is_done_with_the_push_it_was_queued_with(
    bucket: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = run_in(home, "policy/momentum")
    pin = pitboss_ok("data", "push", bucket, "--json", "--home", home).json["pin"]
    elsewhere = tmp_path / "elsewhere"
    monkeypatch.setenv("PITBOSS_LAKE", bucket)
    request = PerpRequest(plain_skill(["BTC", "ETH"], "15m", model="policy/momentum"), FROM, FROM + 12 * HOUR_MS)
    with open_workspace(load_settings(elsewhere)) as workspace:
        ids = open_queue(workspace).enqueue([job_of(workspace, request)])
    _change_the_past(home)
    monkeypatch.delenv("PITBOSS_LAKE")
    newer = pitboss_ok("data", "push", bucket, "--json", "--home", home).json["pin"]
    assert newer != pin

    monkeypatch.setenv("PITBOSS_LAKE", bucket)
    settings = load_settings(elsewhere).model_copy(update={"home": tmp_path / "worker"})  # another machine
    settings = settings.model_copy(update={"database_url": str(elsewhere / "pitboss.db")})
    with open_workspace(settings) as workspace:
        queue = open_queue(workspace)
        asyncio.run(Worker(workspace, queue, "one", WorkerSettings(idle_exit_s=0.0)).run())
        run = workspace.runs.get(ids[0])
    assert (run.status, run.digest, run.params["lake"]) == ("complete", before.digest, pin)
    assert run_in(tmp_path / "newest", "policy/momentum").data_digest != before.data_digest
    monkeypatch.setenv("PITBOSS_LAKE", f"{bucket}#{pin}")
    assert run_in(tmp_path / "pinned", "policy/momentum").digest == before.digest


def _change_the_past(home: Path) -> None:
    lake = Lake(home / "lake")
    rows = funding(lake)
    lake.put("funding", "demo", "BTC", None, rows.with_columns(value=rows["value"] + 0.001), replace=True)


def test_two_processes_that_pull_at_once_both_have_the_whole_lake(
    bucket: str, home: Path, tmp_path: Path, stock: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply = pitboss_ok("data", "push", bucket, "--json", "--home", home).json
    monkeypatch.setenv("PITBOSS_LAKE", bucket)
    words = ("-m", "pitboss", "data", "pull", "--json", "--home", tmp_path / "elsewhere")
    both = [ForkedProcess(*words) for _ in range(2)]
    said = [process.communicate(timeout=60) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    answers: list[dict[str, Any]] = [json.loads(out) for out, _ in said]
    assert {answer["pin"] for answer in answers} == {reply["pin"]}
    copies = {path.name for path in (tmp_path / "elsewhere" / "lake-cache" / "files").iterdir()}
    assert sum(answer["files"] for answer in answers) == len(copies), "a file was fetched by both"
    assert pitboss_ok("data", "list", "--json", "--home", tmp_path / "elsewhere").json
    with open_workspace(load_settings(tmp_path / "elsewhere")) as workspace:
        assert workspace.lake.list() == stock.list()


def test_what_would_write_into_a_lake_elsewhere_is_refused(
    bucket: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pitboss_ok("data", "push", bucket, "--home", home)
    monkeypatch.setenv("PITBOSS_LAKE", bucket)
    for arguments in (
        ("data", "import", "some.csv"),
        ("data", "download", "hyperliquid", "--symbols", "BTC", "--interval", "1h", "--from", "2025-01-01"),
        ("data", "demo"),
        ("data", "extract-events"),
        ("demo",),
    ):
        message = pitboss_refused(*arguments, "--home", tmp_path / "elsewhere")
        assert f"the lake of this workspace is {bucket}, which is read-only" in message
        assert "data push" in message


def test_no_key_is_in_any_text_or_record(
    server: str, bucket: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = KEYS["AWS_SECRET_ACCESS_KEY"]
    monkeypatch.setattr(objects, "RETRIES", 0)
    pitboss_ok("data", "push", bucket, "--home", home)
    monkeypatch.setenv("PITBOSS_LAKE", bucket)
    run_in(tmp_path / "elsewhere", "policy/hold", 2)
    texts = [path.read_bytes() for path in (tmp_path / "elsewhere").rglob("*") if path.is_file()]
    assert not any(word.encode() in text for text in texts for word in KEYS.values() if word != "us-east-1")

    answers = [pitboss("settings", "--home", home), pitboss("data", "push", "s3://no-such-bucket/x", "--home", home)]
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    answers += [pitboss("data", "pull", "--home", tmp_path / "third")]
    answers += [pitboss("data", "push", f"s3://me:{secret}@bucket/x", "--home", home)]
    monkeypatch.setenv("PITBOSS_LAKE", f"s3://me:{secret}@bucket/x")
    answers += [pitboss("settings"), pitboss("data", "list", "--home", home)]
    assert [answer.code for answer in answers] == [0, 2, 2, 2, 2, 2]
    assert "there is no such bucket" in answers[1].err
    assert "cannot be used" in answers[2].err
    for answer in answers:
        assert secret not in answer.out + answer.err
        assert len(answer.err.splitlines()) <= 2


def test_a_worker_elsewhere_is_lent_what_its_lake_needs_and_nothing_else(
    keys: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    del keys
    for name in ("GOOGLE_SERVICE_ACCOUNT_KEY", "AZURE_STORAGE_ACCOUNT_KEY", "AWS_PROFILE", "MY_OTHER_SECRET"):
        monkeypatch.setenv(name, "another-secret")
    assert lake_variables(read_address("s3://bucket/x")) == KEYS
    assert lake_variables(read_address("gs://bucket/x")) == {"GOOGLE_SERVICE_ACCOUNT_KEY": "another-secret"}
    assert lake_variables(read_address("file:///x")) == lake_variables(read_address("https://h/x")) == {}
    for name in KEYS:
        monkeypatch.delenv(name)
    machine.lend({"AWS_ACCESS_KEY_ID": "lent"})
    assert lake_variables(read_address("s3://bucket/x")) == {"AWS_ACCESS_KEY_ID": "lent"}


def test_what_was_lent_opens_a_lake_without_being_in_the_environment(
    server: str, bucket: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pitboss_ok("data", "push", bucket, "--home", home)
    for name in (*KEYS, "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name)
    machine.lend({**KEYS, "AWS_ENDPOINT_URL": server})
    monkeypatch.setenv("PITBOSS_LAKE", bucket)
    assert run_in(tmp_path / "elsewhere", "policy/hold", 2).status == "complete"


def test_objects_that_are_damaged_on_the_server_are_refused(
    server: str, bucket: str, stock: Lake, tmp_path: Path
) -> None:
    there = ObjectLake(bucket, {**KEYS, "AWS_ENDPOINT_URL": server})
    there.push(stock)
    far = there.remote_lake(tmp_path / "cache")
    name = "funding/venue=demo/symbol=BTC/year=2025/part.parquet"
    content = (stock.root / name).read_bytes()
    for harm, message in ((content[:-9], "bytes instead of"), (content[:-1] + b"\0", "its digest differs")):
        there.storage().write(far.index.files[name].object, harm)
        with pytest.raises(UserError, match=message):
            far.points("funding", "demo", "BTC")
    there.push(stock, again=True)
    assert far.points("funding", "demo", "BTC") is not None


def test_a_file_of_many_parts_arrives_whole(server: str, bucket: str, tmp_path: Path) -> None:
    there = ObjectLake(bucket, {**KEYS, "AWS_ENDPOINT_URL": server})
    content = bytes(range(256)) * 50_000  # three parts of an upload
    path, got = tmp_path / "large", bytearray()
    path.write_bytes(content)
    with path.open("rb") as file:
        there.storage().write("objects/large", file)
    assert there.storage().sizes("objects") == {"objects/large": len(content)}
    assert there.storage().read("objects/large", got.extend)
    assert bytes(got) == content
    assert not there.storage().read("objects/none", got.extend)


def test_a_report_and_a_branch_of_a_run_stand_on_its_own_push_and_need_no_server(
    bucket: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pin = pitboss_ok("data", "push", bucket, "--json", "--home", home).json["pin"]
    _change_the_past(home)
    elsewhere = tmp_path / "elsewhere"
    monkeypatch.setenv("PITBOSS_LAKE", bucket)
    run = run_in(elsewhere, "policy/momentum")
    monkeypatch.delenv("PITBOSS_LAKE")
    pitboss_ok("data", "push", bucket, "--home", home)
    monkeypatch.setenv("PITBOSS_LAKE", bucket)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with open_workspace(load_settings(elsewhere)) as workspace:
        assert same_data(workspace, run, request_of(run)) is not None, "its data is here and was not found"
        branch = workspace.runs.get(asyncio.run(fork(workspace, run.id, "8", ForkChange())))
        assert (branch.params["lake"], branch.data_digest) == (pin, run.data_digest)
        assert asyncio.run(resume(workspace, branch.id)).digest == run.digest


@pytest.mark.chaos
def test_pushes_and_pulls_that_are_killed_again_and_again_end_with_the_whole_lake(
    server: str, bucket: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, lake = ObjectLake(bucket, {**KEYS, "AWS_ENDPOINT_URL": server}), Lake(home / "lake")
    for number in range(60):
        lake.put("funding", "hyperliquid", f"MORE{number}", None, funding(lake).head(5 + number))
    elsewhere, files = tmp_path / "elsewhere", tmp_path / "elsewhere" / "lake-cache" / "files"

    def killed(text: list[str], seen: Callable[[], int], at: int) -> None:
        process = subprocess.Popen([sys.executable, "-m", "pitboss", "data", *text], stdout=subprocess.DEVNULL)
        while process.poll() is None and seen() < at:
            pass
        process.kill()
        process.wait()

    for at in (1, 20, 50):
        killed(["push", bucket, "--home", str(home)], lambda: len(there.storage().sizes("objects")), at)
        assert there.storage().sizes("indexes") == {}, "the push had ended before it was killed"
    pitboss_ok("data", "push", bucket, "--home", home)
    monkeypatch.setenv("PITBOSS_LAKE", bucket)
    for at in (1, 20, 50):
        killed(["pull", "--home", str(elsewhere)], lambda: len(list(files.glob("[0-9a-f]*"))), at)
        with open_workspace(load_settings(elsewhere)) as workspace:
            points = workspace.lake.points("funding", "hyperliquid", "MORE7")
            assert points is not None
            assert len(points.at) == 12
    fetched = pitboss_ok("data", "pull", "--json", "--home", elsewhere).json["files"]
    assert fetched < len(lake.series_files()), "what had been fetched was fetched again"
    with open_workspace(load_settings(elsewhere)) as workspace:
        assert workspace.lake.list() == lake.list()
    assert pitboss_ok("data", "check", "--json", "--home", elsewhere).json["ok"]
