"""AIMaster's SDK: what a training may tell the master that keeps it alive, and ask of it.

    from aimaster import job_monitor as jm

The distribution is called pai-aimaster. The package named aimaster on the public index is somebody else's.
"""
__version__ = "0.1.0"
