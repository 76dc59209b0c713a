"""The choices of where orders of a live run go. Separate, so that the help of a command loads nothing else."""

from typing import Literal

Writer = Literal["paper", "sui"]
Network = Literal["testnet", "mainnet"]
