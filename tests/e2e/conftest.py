"""The fixture of all end-to-end tests: a home of its own, and nothing left behind afterwards."""
import os
import signal
import uuid

import pytest

from harness import AIMASTER, Home, kill, wait_for


def pytest_configure(config):
    # Who runs the tests in the background of a script has SIGINT ignored, under nohup SIGHUP, and so would all that we
    # start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    config.addinivalue_line("markers", "training: runs a real training, some ten seconds or more")
    config.addinivalue_line("markers", "alone: takes the whole machine, so nothing runs beside it")
    config.addinivalue_line("markers", "tensorflow: needs what tools/install_tensorflow.sh installs")
    if not os.access(AIMASTER, os.X_OK):
        pytest.exit(f"{AIMASTER} is not there: run ./dev build, or set AIMASTER_BIN", returncode=2)


@pytest.fixture
def home(tmp_path):
    home = Home(tmp_path, uuid.uuid4().hex)
    yield home
    try:
        # A master writes its last lines after the job has ended; nothing needs longer than that.
        wait_for(lambda: not home.leftovers(), "all processes to be gone", timeout=5)
    except AssertionError:
        left = home.leftovers()
        for pid in left:
            kill(pid)
        pytest.fail(f"left behind: {left}")
