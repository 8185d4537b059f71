"""Puts collectives on record in a program that knows nothing of it: this folder is first on PYTHONPATH.

Python imports a module of this name at its start. A program may have one of its own, further on: it is run as if this
one were not here, and is what `import sitecustomize` gives. What fails in it fails as it would have.
"""
import sys

_HERE = __file__.rpartition("/")[0]


def _trace():
    import os  # pylint: disable=import-outside-toplevel

    if not os.environ.get("AIMASTER_C4D_DIR") or not os.environ.get("AIMASTER_C4D_RECORDER"):
        return
    # By itself, and not as part of the package aimaster, since the program may have another one of that name.
    before = sys.path[:]
    sys.path.insert(0, _HERE.rpartition("/")[0])
    try:
        import _collectives  # pylint: disable=import-outside-toplevel,import-error
    finally:
        sys.path[:] = before
    _collectives.trace()


def _run_the_next():
    from importlib.machinery import PathFinder  # pylint: disable=import-outside-toplevel

    sys.path[:] = [entry for entry in sys.path if entry.rstrip("/") != _HERE]
    spec = PathFinder.find_spec(__name__, sys.path)
    if spec is None or spec.loader is None:
        return
    module = type(sys)(__name__)
    module.__spec__, module.__loader__, module.__file__ = spec, spec.loader, spec.origin
    module.__package__, module.__cached__ = "", spec.cached
    sys.modules[__name__] = module
    spec.loader.exec_module(module)


try:
    _trace()
except Exception:  # pylint: disable=broad-except
    pass
_run_the_next()
