"""The tools of the coin venue, one file each."""
