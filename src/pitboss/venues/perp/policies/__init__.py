"""The shipped baselines, one file each with `POLICY = define_policy(...)`. The catalogue finds them by looking here."""
