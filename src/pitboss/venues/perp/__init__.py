"""Perpetual futures: cross margin, funding, liquidation. The contract is docs/perp.md."""
