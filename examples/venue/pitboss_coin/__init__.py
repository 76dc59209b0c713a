"""A toy venue: bets on whether the next bar closes above its open."""
