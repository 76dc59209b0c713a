"""The server that forks programs for tests outlives clients that die at any moment."""

import json
import os
import socket

import pytest

import forked_process
from forked_process import ForkedProcess


@pytest.mark.parametrize("reads_reply", [False, True])
def test_a_client_that_is_gone_before_it_is_told_does_not_end_the_server(reads_reply: bool) -> None:
    first = ForkedProcess("-c", "print('first')")
    for _ in range(20):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.connect(str(forked_process._address()))
        null = os.open(os.devnull, os.O_RDWR)
        request = {"words": ["-c", "pass"], "environment": {}, "cwd": "/", "files": [0, 1, 2]}
        socket.send_fds(connection, [json.dumps(request).encode()], [null] * 3)
        os.close(null)
        if reads_reply:
            connection.recv(64)
        connection.close()
    last = ForkedProcess("-c", "print('last')")
    assert first.communicate()[0] == "first\n"
    assert last.communicate()[0] == "last\n"
