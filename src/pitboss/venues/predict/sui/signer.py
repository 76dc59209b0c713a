"""`ProcessSigner`: has transactions signed by the signing process. This process has no key.

The digest of a transaction is the id of its request: the same bytes have one signature, however often they are asked for.
"""

import base64
import re

from pitboss.core.errors import TransientError, UserError
from pitboss.signer.client import SignerClient
from pitboss.signer.protocol import SigningRefusal
from pitboss.venues.predict.sui.transaction import digest_of

SCHEME = "sui_transaction"
_ADDRESS = re.compile(r"0x[0-9a-f]{64}")


class ProcessSigner:
    """Signs for one address on one network."""

    def __init__(self, client: SignerClient, address: str, network: str) -> None:
        self.address = address
        self._client = client
        self._network = network

    async def sign(self, tx: bytes) -> str:
        """Return the signature in the nodes' format. Raises `TransientError` if there is none: then nothing may be sent."""
        payload = {"network": self._network, "tx": base64.b64encode(tx).decode()}
        reply = await self._client.ask_to_sign(SCHEME, digest_of(tx), payload)
        if isinstance(reply, SigningRefusal):
            raise TransientError(f"the signer refuses: {reply.message} ({reply.code})")
        signature = reply.get("signature")
        if not isinstance(signature, str):
            raise TransientError("the signer's answer cannot be read")
        return signature


async def open_process_signer(client: SignerClient, network: str) -> ProcessSigner:
    """Ask a signing process whose key it holds. Raises `UserError` if it is not there, or for something else."""
    hint = "`pitboss signer init --scheme sui_transaction` makes its files, `pitboss signer run` starts it"
    try:
        description = await client.ask_for_description()
    except TransientError as error:
        raise UserError(f"there is nothing to sign with on Sui: {error}", hint) from None
    address = str(description.get("address"))
    if description.get("schemes") != [SCHEME] or not _ADDRESS.fullmatch(address):
        raise UserError("the signer does not sign transactions of Sui", hint)
    if description.get("network") != network:
        raise UserError(
            f"the signer signs for {str(description.get('network'))[:20]}, and the setting sui_network says {network}",
            "network in the policy of the signer and sui_network must be the same",
        )
    return ProcessSigner(client, address, network)
