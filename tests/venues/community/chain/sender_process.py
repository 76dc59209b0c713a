"""A process that sends one transaction as a runner does: a node over HTTP, a signer behind its socket, an outbox in a file."""

import asyncio
import json
import sys
from pathlib import Path

from pitboss.signer.client import SignerClient
from pitboss.store.database import open_database
from pitboss.store.outbox import StoredOutbox
from pitboss.venues.community.chain.abi import read_abi
from pitboss.venues.community.chain.json_rpc import HttpTransport, JsonRpcClient
from pitboss.venues.community.chain.ports import ChainContract
from pitboss.venues.community.chain.rpc_chain import RpcChain
from pitboss.venues.community.chain.transaction_sender import SenderSettings


async def work(folder: Path, url: str, chain_id: int, address: str, number: int) -> str:
    abi = read_abi([{"type": "function", "name": "mark", "inputs": [{"type": "uint256"}]}])
    transport = HttpTransport(url)
    with open_database(folder / "pitboss.db") as database:
        outbox = StoredOutbox(database, lambda: 0)
        settings = SenderSettings(turns=400, pause_s=0.005)
        client, signer = JsonRpcClient(transport, chain_id), SignerClient(folder / "signer" / "signer.sock")
        chain = await RpcChain.open(client, signer, outbox, settings, "worker", lambda: 0)
        await chain.resume()
        outcome = await chain.send("one", ChainContract(address, abi), "mark", [number])
    await transport.close()
    return outcome.status


if __name__ == "__main__":
    place, url, chain_id, address, number = sys.argv[1:]
    print(json.dumps(asyncio.run(work(Path(place), url, int(chain_id), address, int(number)))), flush=True)
