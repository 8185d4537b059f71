#!/usr/bin/env python3
"""How well `aimaster judge` does on labelled logs.

    tests/judge_cases.py [--bin FOLDER] [--merged] [--misses] FILE.jsonl...

Each line of a file is one job: `log_tail`, or `ranks` with the lines of each, `exit_code` where known, and what an
expert says: `label`, `node_suspect`, `root_rank`, `class`. tests/data/logs has such files; any other collection of the
same form will do. Ends with 1 where a measure is below what is asked for.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

ASKED = {"label": 0.95, "node_suspect": 0.90, "root_rank": 0.90}


def judge(program, case, merged):
    with tempfile.TemporaryDirectory() as folder:
        ranks = {} if merged else case.get("ranks") or {}
        tail = case.get("log_tail") or [line for lines in (case.get("ranks") or {}).values() for line in lines]
        files = {f"rank{name}.err".replace("/", "_"): lines for name, lines in ranks.items()} or {"job.log": tail}
        for name, lines in files.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
        command = [program, "judge", "--json"]
        if case.get("exit_code") is not None:
            command += ["--exit-code", str(case["exit_code"])]
        answer = subprocess.run(command + list(files), cwd=folder, capture_output=True, text=True, check=False)
        if answer.returncode != 0:
            sys.exit(f"{case['id']}: exit code {answer.returncode}: {answer.stderr.strip()}")
        return json.loads(answer.stdout)


def expected_root(case, merged):
    """The number of a rank that has a name is its place among the files; in a mixed log it has none."""
    root = case.get("root_rank")
    if isinstance(root, str) and root != "all":
        return None if merged else list(case["ranks"]).index(root)
    return root


def compare(case, answer, merged):
    """What was asked of this case, and whether it came out."""
    results = {}
    if case.get("label") in ("retryable", "not_retryable"):
        results["label"] = answer["label"] == case["label"]
    if case.get("node_suspect") is not None:
        results["node_suspect"] = answer["node_suspect"] == case["node_suspect"]
    if case.get("root_rank") is not None and expected_root(case, merged) is not None:
        results["root_rank"] = answer["root_rank"] == expected_root(case, merged)
    if case.get("class") == "user_code":
        results["no user code is retried"] = answer["label"] != "retryable"
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--bin", default=os.environ.get("AIMASTER_BIN", "build/bin"))
    parser.add_argument("--merged", action="store_true", help="all ranks' lines in one file, one rank after the other")
    parser.add_argument("--misses", action="store_true", help="list what did not come out")
    arguments = parser.parse_args()
    program = os.path.join(os.path.abspath(arguments.bin), "aimaster")
    totals = {}
    for path in arguments.files:
        with open(path, encoding="utf-8") as file:
            for line in filter(str.strip, file):
                case = json.loads(line)
                answer = judge(program, case, arguments.merged)
                results = compare(case, answer, arguments.merged)
                for measure, right in results.items():
                    count = totals.setdefault(measure, [0, 0])
                    count[0] += right
                    count[1] += 1
                if arguments.misses and not all(results.values()):
                    wrong = ", ".join(measure for measure, right in results.items() if not right)
                    print(f"{case['id']} ({case.get('kind', '')}): {wrong}; judged {answer['code']}, "
                          f"{answer['label']}, "
                          f"root {answer['root_rank']}, line {answer['line']!r}")
    below = False
    for measure, (right, asked) in totals.items():
        print(f"{measure}: {right} of {asked}")
        below |= right < asked * ASKED.get(measure, 1.0)
    sys.exit(1 if below else 0)


if __name__ == "__main__":
    main()
