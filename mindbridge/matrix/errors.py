"""What can go wrong with a homeserver, in the bridge's own terms."""


class MatrixError(Exception):
    """A request that did not do what it should; the message says which and why."""


class Unreachable(MatrixError):
    """No usable answer: no connection, a timeout, a 5xx, or something that is not Matrix. Trying again may help."""


class Limited(MatrixError):
    """The account sends too much (429): nothing before `retry_after_ms` milliseconds have passed."""

    def __init__(self, message: str, retry_after_ms: int) -> None:
        super().__init__(message)
        self.retry_after_ms = retry_after_ms


class Refused(MatrixError):
    """The server will not do it; `errcode` is its code, such as `M_FORBIDDEN`, else one of ours without `M_`."""

    def __init__(self, message: str, errcode: str) -> None:
        super().__init__(message)
        self.errcode = errcode


class TokenRejected(MatrixError):
    """The account's access token is not accepted (any more). Logging in again may help."""


class AccountUnusable(MatrixError):
    """The account can't log in; nothing helps but someone who changes what the message names."""
