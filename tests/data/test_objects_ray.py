"""Workers on a real Ray cluster that read a lake in object storage: the same digests, with keys that are only passed to the workers."""

import asyncio
import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from object_lakes import KEYS, ObjectLake, s3_server

from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import open_workspace
from pitboss.core.instant import parse_instant
from pitboss.data.demo import write_demo
from pitboss.data.lake import Lake
from pitboss.runs.run import start

JOBS = Path(__file__).parents[1] / "jobs"
PROGRAM = Path(__file__).with_name("objects_ray_program.py")


@pytest.mark.chaos
def test_a_study_on_ray_with_a_lake_in_s3_has_the_digests_of_one_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray", reason="ray is not installed: pip install 'pitboss[ray]'")
    monkeypatch.syspath_prepend(str(JOBS))
    from job_workspace import study_requests

    here, far = tmp_path / "here", tmp_path / "far"
    lake = Lake(here / "lake")
    write_demo(lake, days=5, end=parse_instant("2025-03-31"))
    with open_workspace(load_settings(here)) as workspace:
        expected = [asyncio.run(start(workspace, request)).digest for request in study_requests(4)]
    with s3_server() as server:
        urllib.request.urlopen(urllib.request.Request(f"{server}/cluster", method="PUT")).close()
        lent = {**KEYS, "AWS_ENDPOINT_URL": server}
        ObjectLake("s3://cluster/lake", lent).push(lake)
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PITBOSS_"))}
        process = subprocess.run(
            [sys.executable, str(PROGRAM), str(far), "4"],
            env={**clean, "RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": os.pathsep.join(map(str, (JOBS, JOBS.parent)))},
            input=json.dumps({**lent, "PITBOSS_LAKE": "s3://cluster/lake"}),
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
    assert process.returncode == 0, process.stderr[-3_000:]
    reply = json.loads(process.stdout.splitlines()[-1])
    assert (reply["digests"], reply["errors"]) == (expected, [])
    assert "lake-cache" in reply["lake"], "no worker has fetched anything"
    assert "lake" not in reply["lake"]
    assert reply["keys"] == 0, "keys reached the environment of a worker"
