"""The suite is run by test_sdk.py, on each interpreter, and not by pytest itself."""
collect_ignore = ["suite"]
