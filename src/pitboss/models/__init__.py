"""Who answers: deterministic policies, files of decisions, the demo's stand-in, scripts for tests.

Adapters behind the `Model` port and the `Decider` protocol; `catalog` finds them by name. Nothing here judges or acts.
"""
