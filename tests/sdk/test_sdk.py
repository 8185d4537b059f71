"""The SDK on every interpreter that this machine has, from the checkout and from its packages.

tests/sdk/suite holds the tests themselves, with nothing but the standard library, since these interpreters have no
more. Here they are run, and the packages are looked at.
"""
import ast
import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SDK = ROOT / "sdk" / "python"
PACKAGE = SDK / "aimaster"
OLDEST = (3, 6)


def interpreters():
    """One of each version: of the system, of pyenv, and what AIMASTER_PYTHONS names."""
    found = {}
    named = os.environ.get("AIMASTER_PYTHONS", "").split(":")
    homes = [Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))]
    candidates = [*filter(None, named), *sorted(Path("/usr/bin").glob("python3.*")),
                  *sorted(Path("/usr/local/bin").glob("python3.*"))]
    for home in homes:
        candidates += sorted(home.glob("versions/*/bin/python3"))
    for path in candidates:
        if not re.fullmatch(r"python3(\.\d+t?)?", Path(path).name):
            continue
        try:
            said = subprocess.run([path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
                                  capture_output=True, text=True, timeout=60)
        except OSError:
            continue
        version = said.stdout.strip()
        if said.returncode == 0 and tuple(map(int, version.split("."))) >= OLDEST:
            found.setdefault(version, str(path))
    return found


INTERPRETERS = interpreters()


def test_there_is_an_interpreter():
    assert INTERPRETERS, "no Python of 3.6 or newer was found"


@pytest.mark.parametrize("version", INTERPRETERS)
def test_the_suite_passes(version):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AIMASTER_")}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, (SDK, ROOT / "tests" / "sdk")))
    command = [INTERPRETERS[version], "-W", "error::SyntaxWarning", "-B", "-m", "unittest", "discover", "-s",
               ROOT / "tests" / "sdk" / "suite"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^Ran \d{2,} tests", done.stderr, re.MULTILINE), done.stderr
    assert "skipped" not in done.stderr, done.stderr


@pytest.mark.parametrize("version", INTERPRETERS)
def test_importing_it_loads_nothing_heavy(version):
    code = ("import sys; before = set(sys.modules); import aimaster.job_monitor\n"
            "new = {name.split('.')[0] for name in set(sys.modules) - before}\n"
            "print(sorted(new & {'typing', 'http', 'email', 'inspect', 'asyncio', 'ssl', 'urllib', 'logging'}))")
    said = subprocess.run([INTERPRETERS[version], "-S", "-B", "-c", code], env={**os.environ, "PYTHONPATH": str(SDK)},
                          capture_output=True, text=True, check=True)
    assert said.stdout == "[]\n"


@pytest.mark.parametrize("path", sorted([*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyi")]),
                         ids=lambda path: path.name)
def test_its_syntax_is_that_of_the_oldest_python(path):
    ast.parse(path.read_text(), str(path), feature_version=OLDEST)


def test_only_the_standard_library_is_imported():
    there_if_at_all = {"torch", "imp"}  # the program's own, and what only old versions have
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module]
            for name in names:
                assert name.split(".")[0] in sys.stdlib_module_names | there_if_at_all, f"{path.name} imports {name}"


def members(tree):
    """Public names of a module, with those of its classes; of a function, its parameters."""
    found = {}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            arguments = node.args
            found[node.name] = [one.arg for one in [*arguments.args, *arguments.kwonlyargs]]
        elif isinstance(node, ast.ClassDef):
            found[node.name] = members(node)
    return found


def test_the_stubs_say_what_is_there():
    stub = members(ast.parse((PACKAGE / "job_monitor.pyi").read_text()))
    there = {}
    for path in PACKAGE.glob("_*.py"):
        there.update(members(ast.parse(path.read_text())))
    public, said = (re.search(r"__all__ = (\[.*?\])", (PACKAGE / name).read_text(), re.S)[1]
                    for name in ("job_monitor.py", "job_monitor.pyi"))
    assert public == said
    assert set(ast.literal_eval(public)) == set(stub)
    for name, members_of_stub in stub.items():
        assert name in there, f"the stub has {name}, which is not there"
        if isinstance(members_of_stub, list):
            assert members_of_stub == there[name], name
            continue
        for method, parameters in members_of_stub.items():
            if method != "__init__" or name != "Config":  # its one named setting is for the eyes of an editor
                assert there[name].get(method) == parameters, f"{name}.{method}"


def test_the_package_itself_has_what_its_stub_says():
    stub, there = (members(ast.parse((PACKAGE / name).read_text())) for name in ("__init__.pyi", "__init__.py"))
    assert stub == there == {"trace_collectives": []}


def test_the_version_is_that_of_the_programs():
    ours = re.search(r'__version__ = "([\d.]+)"', (PACKAGE / "__init__.py").read_text())[1]
    assert f"project(aimaster VERSION {ours} " in (ROOT / "CMakeLists.txt").read_text()


@pytest.fixture(scope="session")
def packages(tmp_path_factory):
    out = tmp_path_factory.mktemp("packages")
    subprocess.run([ROOT / "tools" / "build_sdk.sh", out], check=True, capture_output=True)
    return out


def test_wheel_and_source_distribution_hold_all_of_it_and_nothing_else(packages):
    sources = {str(path.relative_to(SDK)) for path in PACKAGE.rglob("*") if path.suffix in (".py", ".pyi", ".typed")}
    assert {"aimaster/py.typed", "aimaster/_preload/sitecustomize.py"} < sources
    wheel, = packages.glob("pai_aimaster-*-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
        metadata = opened.read(next(name for name in names if name.endswith("/METADATA"))).decode()
    assert {name for name in names if ".dist-info/" not in name} == sources
    assert any(name.endswith("LICENSE") for name in names)
    assert "\nName: pai-aimaster\n" in metadata and "\nRequires-Python: >=3.6\n" in metadata
    assert "Requires-Dist" not in metadata
    sdist, = packages.glob("pai[_-]aimaster-*.tar.gz")
    with tarfile.open(sdist) as opened:
        inside = {name.partition("/")[2] for name in opened.getnames()}
    assert sources | {"LICENSE", "README.md", "setup.cfg", "pyproject.toml"} <= inside


def test_the_same_sources_give_the_same_wheel(packages, tmp_path):
    subprocess.run([ROOT / "tools" / "build_sdk.sh", tmp_path], check=True, capture_output=True)
    wheel, = packages.glob("*.whl")
    assert (tmp_path / wheel.name).read_bytes() == wheel.read_bytes()


@pytest.mark.parametrize("version", INTERPRETERS)
def test_the_wheel_installs_and_works(version, packages, tmp_path):
    wheel, = packages.glob("*.whl")
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--ignore-requires-python",
                    "--no-compile", "--target", tmp_path, wheel], check=True, capture_output=True)
    code = ("from aimaster import job_monitor as jm; import aimaster; print(aimaster.__file__)\n"
            "print(jm.Monitor(config=jm.PyTorchConfig()).send_custom_message(content='x').code)")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AIMASTER_")}
    said = subprocess.run([INTERPRETERS[version], "-B", "-c", code], env={**environment, "PYTHONPATH": str(tmp_path)},
                          capture_output=True, text=True, check=True, cwd=tmp_path)
    assert said.stdout == f"{tmp_path}/aimaster/__init__.py\nno_job\n"


def test_the_source_distribution_installs_in_a_fresh_environment(packages, tmp_path):
    sdist, = packages.glob("*.tar.gz")
    venv.create(tmp_path / "venv", system_site_packages=True, with_pip=False)
    subprocess.run([tmp_path / "venv" / "bin" / "python", "-m", "pip", "install", "-q", "--no-index", "--no-deps",
                    "--no-build-isolation", "--ignore-installed", sdist], check=True, capture_output=True)
    said = subprocess.run([tmp_path / "venv" / "bin" / "python", "-c",
                           "import aimaster.job_monitor; print(aimaster.__version__, aimaster.__file__)"],
                          capture_output=True, text=True, check=True, cwd=tmp_path)
    assert str(tmp_path / "venv") in said.stdout
