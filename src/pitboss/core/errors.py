"""Every exception of pitboss, one per distinct reaction.

    UserError        the input is wrong; shown without a traceback, with a hint; exit 2
      KeyMissing       nobody can be asked without a key; who can do without asking may go on
    TransientError   try again, then skip the tick
    BudgetExceeded   end cleanly, keep everything
    ToolFailed       told to the model
    InvariantError   stop at once
      LookaheadError   something asked for data that was not available yet
      ReplayMismatch   a stored record does not hash to what it says
    RunCancelled     BaseException, so that nothing in between can swallow it

A refusal by the engine is not an error: it is a `Verdict`.
"""


class UserError(Exception):
    """The person can fix this. `hint` says how."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class KeyMissing(UserError):
    """A provider needs a key and none is set."""


class TransientError(Exception):
    """Worth another try; after that, worth skipping one tick."""


class BudgetExceeded(Exception):
    """The next call would pass a spending limit."""


class ToolFailed(Exception):
    """A tool could not answer. The text is shown to the model."""


class InvariantError(Exception):
    """Something that must never happen has happened. Nothing may go on."""


class LookaheadError(InvariantError):
    """Data from after the tick was asked for."""


class ReplayMismatch(InvariantError):
    """A recorded value and its recomputation differ."""


class RunCancelled(BaseException):
    """The person asked for the run to stop."""
