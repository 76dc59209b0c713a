"""`python fork_client.py ADDRESS WORDS` runs `python WORDS`, forked by the server of `forked_process` at that address.

For programs that are started by a command line. It passes its open files to the forked process, forwards signals and exits
with the same code; the forked process is killed with it.
"""

import json
import os
import signal
import socket
import sys
from contextlib import suppress
from types import FrameType

FORWARDED_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def main(address: str, *words: str) -> None:
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server.connect(address)
    numbers = sorted(number for number in map(int, os.listdir("/dev/fd")) if _is_inherited(number))
    request = {"words": words, "environment": dict(os.environ), "cwd": os.getcwd(), "files": numbers}
    signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED_SIGNALS)
    socket.send_fds(server, [json.dumps(request).encode()], numbers)
    pid = int(server.recv(64))
    for number in numbers:
        if number != 2:
            os.close(number)  # the other process alone decides when readers see their end

    def pass_on(number: int, frame: FrameType | None) -> None:
        del frame
        with suppress(ProcessLookupError):
            os.kill(pid, number)

    for number in FORWARDED_SIGNALS:
        signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED_SIGNALS)
    code = os.waitstatus_to_exitcode(int(server.recv(64) or signal.SIGKILL))
    if code < 0:
        signal.signal(-code, signal.SIG_DFL) if -code != signal.SIGKILL else None
        os.kill(os.getpid(), -code)
    os._exit(code)


def _is_inherited(number: int) -> bool:
    try:
        return os.get_inheritable(number)
    except OSError:  # that of the folder which listed it
        return False


if __name__ == "__main__":
    main(*sys.argv[1:])
