"""The signing process: it holds a key, and signs only what its own policy allows.

It stands beside the adapters, imports `core` alone and knows no venue. The process that decides what to do has no key and asks
over a Unix socket (`client.py`). The protocol names a scheme; each scheme is one file in `schemes`.
"""
