"""What programs import:

    from aimaster import job_monitor as jm

    monitor = jm.Monitor(config=jm.PyTorchConfig(job_hang_interval=1800))
    status = monitor.send_custom_message(content="loss is NaN")
    if not status.ok(): print(status.to_string())

Used outside a job, or with the agent gone, calls return a status that is not ok. They never raise and never wait for
more than 50 ms. Types are in job_monitor.pyi: importing `typing` would cost more than all the rest.
"""
from ._config import Config, ElasticBatchConfig, MPIConfig, PyTorchConfig, TFConfig
from ._monitor import Monitor, report_checkpoint, report_step
from ._sections import HangDetect, hang_detect
from ._status import Status

__all__ = ["Config", "ElasticBatchConfig", "HangDetect", "MPIConfig", "Monitor", "PyTorchConfig", "Status", "TFConfig",
           "hang_detect", "report_checkpoint", "report_step"]
