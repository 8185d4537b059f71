#!/usr/bin/env python3
"""Adds up the results of all test runners: sum_tests.py FILE.xml... prints one line, "N passed, N failed"."""
import sys
import xml.etree.ElementTree


def count(path):
    passed = failed = skipped = 0
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail":
            failed += 1
        elif case.find("skipped") is not None or case.get("status") in ("disabled", "notrun"):
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def main(paths):
    passed, failed, skipped = (sum(numbers) for numbers in zip((0, 0, 0), *map(count, paths)))
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
