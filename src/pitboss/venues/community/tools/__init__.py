"""The tools of the community venue: only the decision. Agents read through their actions, as the protocol has it."""
