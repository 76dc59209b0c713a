"""What of the machine a process changes for itself."""

import sys

import pytest

from pitboss.bootstrap.machine import SWITCH_S, let_threads_alternate
from pitboss.jobs.executors import local
from pitboss.server import venue_server


def test_threads_of_workers_and_servers_take_turns_ten_times_as_often(monkeypatch: pytest.MonkeyPatch) -> None:
    intervals: list[float] = []
    monkeypatch.setattr(sys, "setswitchinterval", intervals.append)
    let_threads_alternate()
    assert intervals == [SWITCH_S]
    assert pytest.approx(sys.getswitchinterval() / 10) == SWITCH_S
    assert local.let_threads_alternate is venue_server.let_threads_alternate is let_threads_alternate
