"""moto's S3 server in a process of its own: prints its address, and ends when its input does."""

import sys

from moto.server import ThreadedMotoServer


def main() -> None:
    """Serve until standard input ends."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    print(f"http://{host}:{port}", flush=True)
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    main()
