"""Calls a function right after a module has been imported, whenever that is.

The finder stands before all others, asks those behind it, and has the loader that they found call back. The loader
stays the one that it is, of the same type, for those who ask a module for its loader. Whoever only asks where the
module is has not imported it: so the finder stays until it has been.
"""
import _thread
import sys


class Finder(object):
    def __init__(self, name, then):
        self._name = name
        self._then = then
        self._asking = set()  # threads: another such finder may ask us in its turn

    def find_spec(self, name, path=None, target=None):
        if name != self._name:
            return None
        thread, finders = _thread.get_ident(), list(sys.meta_path)
        if thread in self._asking or self not in finders:
            return None
        self._asking.add(thread)
        try:
            for finder in finders[finders.index(self) + 1:]:
                find_spec = getattr(finder, "find_spec", None)
                if find_spec is None:
                    return None  # of an old kind: Python asks it by itself
                spec = find_spec(name, path, target)
                if spec is not None:
                    self._attach(spec.loader)
                    return spec
            return None
        finally:
            self._asking.discard(thread)

    def _attach(self, loader):
        try:
            execute = loader.exec_module

            def exec_module(module):
                if getattr(module, "__name__", None) != self._name:
                    return execute(module)  # one loader for many
                try:
                    del loader.exec_module
                except AttributeError:
                    pass
                execute(module)
                self._leave()
                self._then()
                return None

            loader.exec_module = exec_module
        except Exception:  # pylint: disable=broad-except
            pass  # a loader of a kind that can't be told anything

    def _leave(self):
        try:
            sys.meta_path.remove(self)
        except ValueError:
            pass


def await_import(name, then):
    """`then` must not raise."""
    for finder in sys.meta_path:
        if isinstance(finder, Finder):
            return True
    sys.meta_path.insert(0, Finder(name, then))
    return True
