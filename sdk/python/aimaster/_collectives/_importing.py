"""Calls a function right after a module has been imported, whenever that is.

The finder stands before all others, asks them, and has the loader that they found call back once. The loader stays the
one that it is, of the same type, for those who ask a module for its loader.
"""
import sys


class Finder(object):
    def __init__(self, name, then):
        self._name = name
        self._then = then

    def find_spec(self, name, path=None, target=None):
        if name != self._name:
            return None
        try:
            sys.meta_path.remove(self)
        except ValueError:
            return None  # another thread was first
        for finder in list(sys.meta_path):
            find_spec = getattr(finder, "find_spec", None)
            spec = find_spec(name, path, target) if find_spec is not None else None
            if spec is not None:
                self._attach(spec.loader)
                return spec
        return None

    def _attach(self, loader):
        try:
            execute, then = loader.exec_module, self._then

            def exec_module(module):
                try:
                    del loader.exec_module
                except AttributeError:
                    pass
                execute(module)
                then()

            loader.exec_module = exec_module
        except Exception:  # pylint: disable=broad-except
            pass  # a loader of a kind that can't be told anything


def await_import(name, then):
    """`then` must not raise."""
    for finder in sys.meta_path:
        if isinstance(finder, Finder):
            return True
    sys.meta_path.insert(0, Finder(name, then))
    return True
