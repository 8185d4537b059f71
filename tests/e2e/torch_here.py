"""Whether PyTorch is here, for tests that start real programs of it."""
import subprocess

import pytest

from harness import PYTHON

needs_torch = pytest.mark.skipif(
    subprocess.run([PYTHON, "-c", "import torch.distributed"], capture_output=True).returncode != 0,
    reason="PyTorch is not installed here")
