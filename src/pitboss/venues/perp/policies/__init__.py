"""The shipped baseline policies, one module each with `POLICY = define_policy(...)`; `policy.policies` finds them."""
