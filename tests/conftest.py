"""What holds for every test."""

import os

from hypothesis import settings

# How long an example takes says more about what else this machine does than about the code; speed is `make bench`.
# Where CI decides over a change the examples are the same every time; by hand every run looks for new ones.
settings.register_profile("pitboss", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("pitboss")
