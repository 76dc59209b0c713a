"""What holds for every test."""

from hypothesis import settings

# How long an example takes says more about what else this machine does than about the code; speed is `make bench`.
settings.register_profile("pitboss", deadline=None)
settings.load_profile("pitboss")
