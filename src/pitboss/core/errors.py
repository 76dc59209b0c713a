"""Every exception of pitboss, one per distinct reaction.

    UserError        the input is wrong; shown without a traceback, with a hint; exit 2
      KeyMissing       a provider's key is not set; callers that need no provider call may continue
    TransientError   retry, then skip the tick
      ModelUnavailable the model has not answered yet: end the run before its first tick
    BudgetExceeded   end cleanly, keep everything
    ToolFailed       shown to the model
    InvariantError   stop at once
      LookaheadError   data was requested that was not available yet
      ReplayMismatch   a stored record does not match its digest or its recomputation
    RunCancelled     BaseException, so that nothing in between can swallow it

A refusal by the engine is not an error: it is a `Verdict`.
"""


class UserError(Exception):
    """The user can fix the cause. `hint` says how."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class KeyMissing(UserError):
    """A provider needs a key and none is set."""


class TransientError(Exception):
    """A failure that may pass: retried, and after the last attempt the tick is skipped."""


class ModelUnavailable(TransientError):
    """The first call of a run failed. The run ends, because the next calls would fail too."""


class BudgetExceeded(Exception):
    """The next call would pass a spending limit."""


class ToolFailed(Exception):
    """A tool call failed. The text is shown to the model."""


class InvariantError(Exception):
    """A condition that must always hold does not. The run stops at once."""


class LookaheadError(InvariantError):
    """Data from after the tick was requested."""


class ReplayMismatch(InvariantError):
    """A recorded value and its recomputation differ."""


class RunCancelled(BaseException):
    """The user cancelled the run."""
