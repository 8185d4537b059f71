"""Puts collectives on record in a program that knows nothing of it: this folder is first on PYTHONPATH.

Python imports a module of this name at its start. A program may have one of its own, further on: it is run as if this
one were not here, and is what `import sitecustomize` gives; where there is none, there is none. What fails in it fails
as it would have.
"""
import sys

_HERE = __file__.rpartition("/")[0]


def _trace():
    import os  # pylint: disable=import-outside-toplevel

    if not os.environ.get("AIMASTER_C4D_DIR") or not os.environ.get("AIMASTER_C4D_RECORDER"):
        return
    from importlib._bootstrap_external import spec_from_file_location  # pylint: disable=import-outside-toplevel

    # By itself, and not as part of the package aimaster, since the program may have another one of that name.
    folder = _HERE.rpartition("/")[0] + "/_collectives"
    spec = spec_from_file_location("_aimaster_collectives", folder + "/__init__.py",
                                   submodule_search_locations=[folder])
    _run(spec).trace()


def _run(spec):
    from importlib._bootstrap import module_from_spec  # pylint: disable=import-outside-toplevel

    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _run_the_next():
    from importlib.machinery import PathFinder  # pylint: disable=import-outside-toplevel

    spec = PathFinder.find_spec(__name__, sys.path)
    if spec is None or spec.loader is None:
        raise ImportError("No module named 'sitecustomize'", name=__name__)  # which Python expects, and says nothing
    _run(spec)


def _run_the_next_of_old():
    """Python 2, which PYTHONPATH reaches as well, and which torch has left."""
    import imp  # pylint: disable=import-outside-toplevel,deprecated-module,import-error

    imp.load_module(__name__, *imp.find_module(__name__, sys.path))


sys.path[:] = [entry for entry in sys.path if entry.rstrip("/") != _HERE]
if sys.version_info < (3, 6):
    _run_the_next_of_old()
else:
    try:
        _trace()
    except Exception:  # pylint: disable=broad-except
        pass
    _run_the_next()
