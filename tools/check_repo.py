#!/usr/bin/env python3
"""Checks what no compiler looks at: links in the documents, pages that are generated, file sizes, and what must not be
said.

Each line says what to change. Only files that git knows, or would take, are looked at.
"""
import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LINES_MAX = 600
WIDTH_MAX = 120
GLIBC_MAX = (2, 17)
TEXT = {".h", ".cc", ".c", ".py", ".sh", ".md", ".txt", ".cmake", ".yaml", ".yml", ".proto", ".sql", ".json", ""}
PROGRAM = {".h", ".cc", ".c", ".py", ".sh"}
WRAPPED_BY_HAND = {".py", ".sh"}  # clang-format sees to the others
# Folders of one person's machine, and the hosts that packages come from: a file that names one is of no use elsewhere.
PLACES = re.compile(r"(?<![\w.])/(?:work|root)/|\bfile://")
HOSTS = re.compile(r"\b(?:pypi\.org|pythonhosted\.org|crates\.io|npmjs\.(?:com|org)|proxy\.golang\.org|"
                   r"deb\.debian\.org|repo1?\.maven\.org|repo\.maven\.apache\.org)\b", re.IGNORECASE)
# A document names files as `src/engine/engine.cc`; folders and patterns may end in / or *.
FILE_NAME = re.compile(r"`((?:src|tools|tests|docs|bench|examples|proto|rules|cmake)/[\w./*-]+)`")
LINK = re.compile(r"(?<!\!)\[[^\]]*\]\(([^)\s]+)\)")


def files():
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"], cwd=ROOT,
                            check=True, capture_output=True).stdout
    paths = (ROOT / name for name in listed.decode().split("\0") if name)
    return sorted(path for path in paths if path.is_file() and path.suffix in TEXT and "corpus" not in path.parts)


def anchors(path):
    """The anchors of a page's headings, as code hosts make them: lower case, no punctuation, blanks to dashes."""
    found = set()
    for line in path.read_text().splitlines():
        if line.startswith("#"):
            title = re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower())
            found.add(title.replace(" ", "-"))
    return found


def check_links(path, text, complain):
    for named in FILE_NAME.findall(text):
        if not list(ROOT.glob(named.rstrip("/"))):
            complain(f"names {named}, which is not there: correct the name")
    without_code = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    for target in LINK.findall(without_code):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        destination = (path.parent / file).resolve() if file else path
        if not destination.exists():
            complain(f"links to {target}, which is not there: correct the link or add the file")
        elif anchor and destination.suffix == ".md" and anchor not in anchors(destination):
            complain(f"links to {target}, but {file or path.name} has no such heading")


def check_file(path, complaints):
    name = path.relative_to(ROOT)

    def complain(what):
        complaints.append(f"{name}: {what}")

    try:
        text = path.read_text()
    except UnicodeDecodeError:
        return complain("is not UTF-8 text: convert it, or keep binary data under tests/corpus")
    lines = text.splitlines()
    if path.suffix in PROGRAM or path.name == "dev":
        if len(lines) > LINES_MAX:
            complain(f"has {len(lines)} lines, more than {LINES_MAX}: it asks to be two files with one idea each")
    if path.suffix in WRAPPED_BY_HAND or path.name == "dev":
        for number, line in enumerate(lines, 1):
            if len(line) > WIDTH_MAX:
                complain(f"line {number} is {len(line)} characters wide, more than {WIDTH_MAX}: wrap it")
    if path != Path(__file__).resolve():
        for number, line in enumerate(lines, 1):
            if PLACES.search(line):
                complain(f"line {number} names a folder of one machine: use a relative path or a variable")
            if HOSTS.search(line):
                complain(f"line {number} names a package host: name the package alone")
    if path.suffix == ".md":
        check_links(path, text, complain)
    if text and not text.endswith("\n"):
        complain("has no newline at its end: add it")
    if path.suffix != ".md" and any(line != line.rstrip() for line in lines):
        complain("has blanks at the end of a line: remove them")


def check_parameters_page(programs, complaints):
    program = Path(programs) / "aimaster"
    if not program.exists():
        complaints.append(f"{program} is not there: run ./dev build, or name its folder with --bin")
        return
    printed = subprocess.run([program, "params", "--markdown"], capture_output=True, text=True,
                             stdin=subprocess.DEVNULL)
    if printed.returncode != 0 or printed.stdout != (ROOT / "docs" / "parameters.md").read_text():
        complaints.append("docs/parameters.md is not what the program prints: run "
                          "build/bin/aimaster params --markdown > docs/parameters.md")


def check_loaded_library(library, complaints):
    """What is loaded into other people's programs meets their C library, which may be old."""
    symbols = subprocess.run(["objdump", "-T", library], check=True, capture_output=True, text=True).stdout
    for version, name in re.findall(r"\(GLIBC_([\d.]+)\) (\w+)", symbols):
        if tuple(map(int, version.split("."))) > GLIBC_MAX:
            complaints.append(f"{library.name} needs {name} of glibc {version}: do without it, to be of use on old "
                              "systems")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default=str(ROOT / "build" / "bin"), help="folder with the programs")
    arguments = parser.parse_args()
    complaints = []
    for path in files():
        check_file(path, complaints)
    check_parameters_page(arguments.bin, complaints)
    loaded = Path(arguments.bin) / "libaimaster-hydra.so"
    if not loaded.exists():
        complaints.append(f"{loaded} is not there: run ./dev build, or name its folder with --bin")
    for pattern in ("libaimaster-*.so", "libnccl-profiler-aimaster.so"):
        for library in sorted(Path(arguments.bin).glob(pattern)):
            check_loaded_library(library, complaints)
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
