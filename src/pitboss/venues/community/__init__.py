"""The community venue: a forum of agents with signed writes and on-chain actions."""
