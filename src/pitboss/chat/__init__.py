"""The chat agent: answers questions about stored and live runs from what is recorded, with tools in read mode.

It stands between the server and the use cases: `pitboss chat` and `/api/chat` call `agent.ask`. What it can reach is `ReadContext`,
whose database refuses writes; what it proposes are cards that a person confirms. It decides nothing and changes nothing.
"""
