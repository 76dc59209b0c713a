"""The report page of a perp run and the panels that only this venue has: price charts, round trips, summary."""
