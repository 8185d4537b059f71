"""Monitor: the job as its own program sees it."""
import itertools
import math

from . import _sections, _status
from ._config import Config
from ._state import STATES
from ._status import Status

MESSAGE_CHARACTERS = 16384  # the agent keeps fewer
RETRYABLE_TEXTS = 64        # of all that the job's ranks name the agent takes as many


def _guarded(call):
    """Calls never raise: what goes wrong in here is no reason for a training to end."""
    try:
        return call()
    except Exception as problem:  # pylint: disable=broad-except
        return _status.from_exception(problem)


def report_step(step, loss=None):
    return _guarded(lambda: _report_step(step, loss))


def report_checkpoint(step):
    return _guarded(lambda: _report_checkpoint(step))


def _is_on_accelerator(value):
    """Of a tensor there, int() and float() wait until the accelerator has computed it."""
    return getattr(value, "is_cuda", False) or getattr(getattr(value, "device", None), "type", "cpu") != "cpu"


def _is_text(text):
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _whole(step):
    if _is_on_accelerator(step):
        return None
    number = int(step)
    return number if not isinstance(step, bool) and number == step and 0 <= number < 1 << 53 else None


def _no_step(step):
    if _is_on_accelerator(step):  # to print it would wait too
        return Status(_status.INVALID, "the step is on an accelerator; pass a number, step.item()")
    return Status(_status.INVALID, "a step is a whole number from 0, and not %.100r" % (step,))


def _report_step(step, loss):
    number = _whole(step)
    if number is None:
        return _no_step(step)
    fields = {"step": number}
    if loss is not None:
        if _is_on_accelerator(loss):
            return Status(_status.INVALID, "loss is on an accelerator; pass a number, loss.item()")
        value = float(loss)
        fields["loss"] = value if math.isfinite(value) else str(value)
    return STATES.get().step(fields)


def _report_checkpoint(step):
    number = _whole(step)
    return _no_step(step) if number is None else STATES.get().checkpoint({"step": number})


class Monitor(object):
    """Costs nothing to make, and there may be several; what one of them sets is set for the process.

    `status` is that of setting what the configuration asks for.
    """

    def __init__(self, config=None):
        self.status = _status.DONE if config is None else self.reset_config(config)

    def send_custom_message(self, content):
        def send():
            # What is no text in UTF-8 (a file's name, say) is told as far as it is, and of a long text the beginning.
            text = str(content)[:MESSAGE_CHARACTERS].encode("utf-8", "replace").decode("utf-8")
            return STATES.get().agent.ask("/v1/message", {"content": text})[0]

        return _guarded(send)

    def set_retryable_errors(self, errors):
        def send():
            if isinstance(errors, str):
                return Status(_status.INVALID, "a list of texts is expected, and not one text")
            texts = list(itertools.islice(errors, RETRYABLE_TEXTS + 1))
            if len(texts) > RETRYABLE_TEXTS:
                return Status(_status.INVALID, "a job may name %d texts, and no more" % RETRYABLE_TEXTS)
            for text in texts:
                if not isinstance(text, str):
                    return Status(_status.INVALID, "a list of texts is expected, and not %.100r in it" % (text,))
                # Something else in the place of what can't be written would be found in lines that were never meant.
                if not _is_text(text):
                    return Status(_status.INVALID, "%.100r is no text in UTF-8" % (text,))
            return STATES.get().agent.ask("/v1/retryable_errors", {"errors": texts})[0]

        return _guarded(send)

    def reset_config(self, config=None, **settings):
        return _guarded(lambda: self._reset_config(config, settings))

    @staticmethod
    def _reset_config(config, settings):
        wanted = dict(config.settings if isinstance(config, Config) else config or {})
        wanted.update(settings)
        status = _status.DONE
        if "job_hang_interval" in wanted:
            seconds = wanted.pop("job_hang_interval")
            if seconds is not None:
                seconds = _sections.check_interval(seconds)
            status = seconds if isinstance(seconds, Status) else STATES.get().set_base(seconds)
        if wanted and status.ok():
            return Status(_status.INVALID, "a running job has no %s to change; its flags are those of aimaster run"
                          % ", ".join(sorted(map(str, wanted))))
        return status

    def hang_detect(self, seconds):
        return _sections.hang_detect(seconds)

    def report_step(self, step, loss=None):
        return report_step(step, loss)

    def report_checkpoint(self, step):
        return report_checkpoint(step)
