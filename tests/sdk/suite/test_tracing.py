"""Switching the tracing of collectives on: what it does to programs that have no torch, on every interpreter."""
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest
import venv

import aimaster

PACKAGE = os.path.dirname(os.path.abspath(aimaster.__file__))
PRELOAD = os.path.join(PACKAGE, "_preload")

# A torch that has nothing to trace, but says when it is imported.
TORCH = {"torch/__init__.py": "import torch.distributed\n",
         "torch/distributed/__init__.py": "print('torch.distributed', __spec__.loader is __loader__)\n"
                                          "def is_available(): return False\n"}


class Programs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.library = self.write("recorder.so", "no library")

    def tearDown(self):
        shutil.rmtree(self.folder)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(textwrap.dedent(text))
        return path

    def run_program(self, text, flags=(), python=sys.executable, **more):
        """What it prints, and whatever is in the way of it too."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("AIMASTER_")}
        environment.update(PYTHONPATH=os.pathsep.join((PRELOAD, self.folder)), AIMASTER_C4D_DIR=self.folder,
                           AIMASTER_C4D_RECORDER=self.library)
        environment.update(more)
        done = subprocess.run([python, "-B"] + list(flags) + ["-c", textwrap.dedent(text)], env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout.splitlines()

    def test_a_program_without_torch_notices_nothing(self):
        loaded = self.run_program("import sys; print([name for name in sys.modules if 'torch' in name "
                                  "or name in ('ctypes', 'hashlib', 'aimaster')])")
        self.assertEqual(loaded, ["[]"])
        self.assertEqual(self.run_program("import sys; print([p for p in sys.path if '_preload' in p or "
                                          "p.endswith('aimaster')])"), ["[]"])

    def test_the_hook_comes_after_the_module_and_goes_away(self):
        for name, text in TORCH.items():
            self.write(name, text)
        said = self.run_program("""\
            import sys
            finders = len(sys.meta_path)
            import torch
            print(finders - len(sys.meta_path))
            import importlib
            importlib.reload(torch.distributed)
            """, C4D_RUNTIME_LOG_LEVEL="Debug")
        self.assertIn("aimaster: this torch has no torch.distributed: collectives are not recorded", said)
        self.assertEqual([line for line in said if not line.startswith("aimaster")],
                         ["torch.distributed True", "1", "torch.distributed True"])

    def test_an_import_that_fails_fails_as_it_would(self):
        self.write("torch/__init__.py", "")
        self.write("torch/distributed/__init__.py", "raise RuntimeError('no such device')")
        said = self.run_program("""\
            for _ in range(2):
                try:
                    import torch.distributed
                except RuntimeError as problem:
                    print(problem)
            """)
        self.assertEqual(said, ["no such device"] * 2)
        shutil.rmtree(os.path.join(self.folder, "torch", "distributed"))
        said = self.run_program("""\
            try:
                import torch.distributed
            except ImportError as problem:
                print(problem.name)
            """)
        self.assertEqual(said, ["torch.distributed"])

    def test_a_broken_library_is_no_reason_to_stop(self):
        for name, text in TORCH.items():
            self.write(name, text.replace("return False", "return True"))
        self.write("torch/distributed/distributed_c10d.py", "class ProcessGroup: pass\n")
        said = self.run_program("import torch.distributed.distributed_c10d; print('here')")
        self.assertEqual(said, ["torch.distributed True", "here"])

    def test_the_program_s_own_sitecustomize_is_run_in_its_place(self):
        own = self.write("sitecustomize.py", "print('own', __name__, __file__)\nvalue = 7\n")
        said = self.run_program("import sitecustomize; print(sitecustomize.value, sitecustomize.__file__)")
        self.assertEqual(said, ["own sitecustomize " + own, "7 " + own])
        self.assertEqual(self.run_program("import sitecustomize; print(sitecustomize.value)", AIMASTER_C4D_DIR=""),
                         ["own sitecustomize " + own, "7"])

    def test_one_that_is_a_package_too(self):
        self.write("sitecustomize/__init__.py", "from .part import value\nprint(__package__, value)\n")
        self.write("sitecustomize/part.py", "value = 7\n")
        self.assertEqual(self.run_program(""), ["sitecustomize 7"])

    def test_what_there_is_of_it_is_as_without_us(self):
        self.write("usercustomize.py", "import sys; print('user', 'sitecustomize' in sys.modules)")
        program = """\
            import sys
            try:
                import sitecustomize
                print(sitecustomize.__file__, sitecustomize.__spec__.origin)
            except ImportError as problem:
                print(repr(problem))
            print([path for path in sys.path if path])
            """
        for flags in ((), ("-s",), ("-E",), ("-I",)):
            self.assertEqual(self.run_program(program, flags),
                             self.run_program(program, flags, PYTHONPATH=self.folder, AIMASTER_C4D_DIR=""))

    def test_where_there_is_none_there_is_none(self):
        """As Python expects at its start; a distribution may have one, so its start is done here by hand."""
        said = self.run_program("""\
            import sys, os, importlib.machinery
            before = len(sys.meta_path)
            sys.path[:] = [%r]
            try:
                import sitecustomize
            except ImportError as problem:
                print(problem.name, "sitecustomize" in sys.modules, sys.path, len(sys.meta_path) - before)
            """ % PRELOAD, ["-S"])
        self.assertEqual(said, ["sitecustomize False [] 1"])

    def test_an_own_sitecustomize_that_fails_is_told_as_ever(self):
        self.write("sitecustomize.py", "raise ValueError('mine')\n")
        ours = self.run_program("print('here')")
        alone = self.run_program("print('here')", PYTHONPATH=self.folder)
        self.assertEqual([line for line in ours if "mine" in line], [line for line in alone if "mine" in line])
        self.assertEqual(ours[-1], "here")

    def test_in_a_virtual_environment_it_is_on(self):
        venv.create(os.path.join(self.folder, "own"), symlinks=True)
        for name, text in TORCH.items():
            self.write(name, text)
        said = self.run_program("import sys, torch; print(sys.prefix)", C4D_RUNTIME_LOG_LEVEL="Debug",
                                python=os.path.join(self.folder, "own", "bin", "python"))
        self.assertIn("aimaster: this torch has no torch.distributed: collectives are not recorded", said)
        self.assertEqual(said[-1], os.path.join(self.folder, "own"))

    def test_what_a_program_starts_finds_it_too(self):
        """As launchers do, which are programs of Python themselves."""
        for name, text in TORCH.items():
            self.write(name, text)
        said = self.run_program("""\
            import os, subprocess, sys
            print(os.environ["PYTHONPATH"])
            sys.stdout.flush()
            subprocess.check_call([sys.executable, "-c", "import torch"])
            """, C4D_RUNTIME_LOG_LEVEL="Debug")
        self.assertEqual(said[0], PRELOAD + os.pathsep + self.folder)
        self.assertIn("aimaster: this torch has no torch.distributed: collectives are not recorded", said)

    def test_where_python_looks_at_no_site_it_is_off(self):
        for flags in (("-S",), ("-I",), ("-E",)):
            said = self.run_program("import sys; print(any('mporting' in type(one).__module__ "
                                    "for one in sys.meta_path))", flags=flags)
            self.assertEqual(said, ["False"])

    def test_packages_of_the_same_names_are_left_alone(self):
        for name in ("aimaster", "_collectives", "_preload", "_library"):
            self.write(name + "/__init__.py", "print('another', __name__)")
            self.assertEqual(self.run_program("import " + name), ["another " + name])

    def test_who_only_asks_where_it_is_does_not_switch_it_off(self):
        for name, text in TORCH.items():
            self.write(name, text.replace("import torch.distributed\n", ""))
        said = self.run_program("""\
            import importlib.util
            for _ in range(2):
                print(importlib.util.find_spec("torch.distributed").name)
            import torch.distributed
            """, C4D_RUNTIME_LOG_LEVEL="Debug")
        self.assertEqual(said, ["torch.distributed"] * 2 + [
            "torch.distributed True", "aimaster: this torch has no torch.distributed: collectives are not recorded"])

    def test_other_finders_that_ask_all_others_meet_it(self):
        """As tools have them that wait for modules themselves."""
        for name, text in TORCH.items():
            self.write(name, text)
        program = """\
            import importlib.util
            import sys

            class Other(object):
                is_asking = False

                def find_spec(self, name, path=None, target=None):
                    if self.is_asking or name != "torch.distributed":
                        return None
                    self.is_asking = True
                    try:
                        return importlib.util.find_spec(name)
                    finally:
                        self.is_asking = False

            sys.meta_path.insert(%d, Other())
            import torch.distributed
            """
        for before_or_after in (0, 1):
            said = self.run_program(program % before_or_after, C4D_RUNTIME_LOG_LEVEL="Debug")
            self.assertEqual([line for line in said if "aimaster: " in line],
                             ["aimaster: this torch has no torch.distributed: collectives are not recorded"])
            self.assertEqual(said.count("torch.distributed True"), 1)

    def test_calling_it_says_whether_and_why(self):
        call = "import aimaster; print(aimaster.trace_collectives(), aimaster.trace_collectives())"
        path = os.path.dirname(PACKAGE)
        self.assertEqual(self.run_program(call, PYTHONPATH=path), ["True True"])
        self.assertEqual(self.run_program(call, PYTHONPATH=path, AIMASTER_C4D_RECORDER=""), ["False False"])
        self.assertEqual(self.run_program(call, PYTHONPATH=path, AIMASTER_C4D_DIR="there"), ["False False"])
        said = self.run_program(call, PYTHONPATH=path, AIMASTER_C4D_DIR="", C4D_RUNTIME_LOG_LEVEL="debug")
        self.assertEqual(said, ["aimaster: AIMASTER_C4D_DIR names nothing: collectives are not recorded"] * 2
                         + ["False False"])


if __name__ == "__main__":
    unittest.main()
