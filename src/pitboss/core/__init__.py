"""Nouns and ports. Pure, synchronous, and unaware of any venue, file, network or clock."""
