"""AIMaster's SDK: what a training may tell the master that keeps it alive, and ask of it.

    from aimaster import job_monitor as jm

The distribution is called pai-aimaster. The package named aimaster on the public index is somebody else's.
"""
__version__ = "0.1.0"


def trace_collectives():
    """Records what this process communicates through torch.distributed, for those who look for the rank that hangs.

    Returns whether it does: not where AIMASTER_C4D_DIR and AIMASTER_C4D_RECORDER are not set, as AIMaster sets them for
    the ranks of a job. Never raises; may be called any number of times, best before torch.distributed is used.
    """
    from . import _collectives  # pylint: disable=import-outside-toplevel

    return _collectives.trace()
