"""A signing process for the writer: the key of these tests, under a policy for the protocol of the fake chain."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pitboss.signer.sui.keys import address_of
from pitboss.signer.sui.policy import EXAMPLE_POLICY
from pitboss.testing.prediction_services import PREDICT
from signer.signer_process import make_folder, running_signer
from venues.predict.sui.fake_chain import PLACE, SECRET

POLICY = (
    EXAMPLE_POLICY.replace("{network}", "testnet")
    .replace('package = "0x0"', f'package = "{PLACE.package}"')
    .replace("objects = []", f'objects = ["{PLACE.predict}", "{PREDICT}", "{PLACE.manager}"]')
    .replace("coins_per_day = 0 ", "coins_per_day = 70_000_000 ")
)


@contextmanager
def signing_process(home: Path, key: bytes = SECRET) -> Iterator["subprocess.Popen[str]"]:
    """The process on the folder `signer` of a workspace, where the writer looks for it."""
    if not (home / "signer").exists():
        make_folder(home / "signer", POLICY, key, address_of(key))
    with running_signer(home / "signer", is_forked=True) as process:
        yield process
