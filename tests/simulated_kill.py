"""The exception by which a test ends a process at one step, as a kill would: nothing catches it and nothing is cleaned up."""


class Killed(BaseException):
    """The process was killed."""
