"""Status: how a call went. A training goes on either way, so it is a value and never an exception."""

# What a program may want to tell apart.
OK = "ok"
NO_JOB = "no_job"        # not started by AIMaster
NO_AGENT = "no_agent"    # nobody listens at the socket
BUSY = "busy"            # the agent takes no more calls, for now
NO_ANSWER = "no_answer"  # it was told, and has not confirmed in time
REFUSED = "refused"      # it heard, and said no
INVALID = "invalid"      # it was not told: what was to be said makes no sense


class Status(object):
    __slots__ = ("code", "message")

    def __init__(self, code, message):
        self.code = code
        self.message = message

    def ok(self):
        return self.code == OK

    def to_string(self):
        return "OK" if self.code == OK else self.message

    __str__ = to_string

    def __repr__(self):
        return "<Status %s>" % self.to_string()


DONE = Status(OK, "")


def from_exception(problem):
    """For what nobody has foreseen: it must not reach the training."""
    return Status(INVALID, "the SDK failed: %s: %s" % (type(problem).__name__, problem))
