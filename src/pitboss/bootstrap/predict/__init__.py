"""The predict venue put together: readers, agents, backtests, live runs, and what is shown of them."""
