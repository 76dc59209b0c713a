"""Contracts on an EVM chain: their interfaces, reading, simulating, and sending at most one transaction for each intent.

`ports.py` says what the runner sees. `rpc_chain.py` has transactions signed by the signing process, `wallet_chain.py` by a
wallet behind JSON-RPC. No module here has a key.
"""
