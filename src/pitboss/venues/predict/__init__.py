"""Binary markets priced by a volatility surface and paid by one vault. The readings are docs/adr/0016-predict-world.md."""
