"""`make mutants`: how many small changes of the arithmetic the tests notice, by mutmut; an hour of one core or more.

`[tool.mutmut]` of pyproject.toml says which files are changed and which tests run. Two things mutmut does otherwise:
it changes no function that is decorated (here it does), and it changes messages and assertions too (here it does
not, and of the files in `PARTS` only what is named there).

    make mutants                                             all of them, on all cores
    .venv/bin/python tests/mutants.py '*x_limit_of*'         those of that name again, of a run that was made before
    .venv/bin/mutmut show endeavour.decoding.engine.x_limit_of__mutmut_3
"""

import ast
import json
import os
import re
import shutil
import sys
from collections import Counter
from pathlib import Path

# Before torch is imported: a process is forked for each mutant, which neither threads nor a CUDA context survive.
os.environ |= {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "MPLBACKEND": "agg"}

from mutmut import __main__ as mutmut
from mutmut.stats import status_by_exit_code

# Of these files the rest is about files, processes and other programs, or says what is wrong.
PARTS = {
    "training/checkpoint.py": {"average_weights", "optimizer_tensors", "restore_optimizer"},
    "training/log.py": {"MetricWindow"},
    "training/optimizer.py": {"NonFiniteGuard"},
    "training/state.py": {"TrainState"},
    "training/step.py": {"LossModel", "accumulate_gradients", "choose_compile"},
    "training/updates.py": {"updates", "_share"},
}
LEFT_OUT = {"_unwritable", "extra_repr"}
KEPT_DECORATORS = {"staticmethod", "classmethod"}  # mutmut knows what to do with these
KILLED = {"killed", "timeout", "caught by type check", "segfault"}
FOLDER = Path("mutants")
LEAST = (
    0.95  # of the mutants are to be killed: the others change nothing that could be seen, see docs/mutants.md
)

Function = ast.FunctionDef | ast.AsyncFunctionDef


def main() -> None:
    original = mutmut.mutate_file_contents

    def mutate(filename: str, code: str, *_: object) -> object:
        code = re.sub(r", strict=(True|False)", "", undecorated(code))  # an assertion too
        return original(filename, code, lines_to_change(filename, code))

    mutmut.mutate_file_contents = mutate
    shutil.rmtree(FOLDER / "tests" if sys.argv[1:] else FOLDER, ignore_errors=True)
    mutmut._run(sys.argv[1:], int(os.environ.get("MUTANTS_AT_A_TIME", os.cpu_count() or 1)))
    sys.exit(report() < LEAST)


def undecorated(code: str) -> str:
    """`@decorator` above a function as `name = decorator(name)` below it, which is the same."""
    lines = code.splitlines()
    after: dict[int, list[str]] = {}
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, Function):
            continue
        for decorator in node.decorator_list:
            text = ast.unparse(decorator)
            if text in KEPT_DECORATORS:
                continue
            assert decorator.lineno == decorator.end_lineno
            lines[decorator.lineno - 1] = ""
            after.setdefault(node.end_lineno or 0, []).insert(
                0, f"{' ' * node.col_offset}{node.name} = {text}({node.name})"
            )
    return (
        "\n".join(row for number, line in enumerate(lines, 1) for row in (line, *after.get(number, ())))
        + "\n"
    )


def lines_to_change(filename: str, code: str) -> set[int]:
    """Numbers of the lines on which something is computed."""
    module = ast.parse(code)
    parts = next((parts for name, parts in PARTS.items() if filename.endswith(name)), None)
    wanted = [node for node in module.body if parts is None or getattr(node, "name", None) in parts]
    lines = {line for node in wanted for line in span(node)}
    for node in ast.walk(module):
        if isinstance(node, ast.Raise | ast.Assert) or getattr(node, "name", None) in LEFT_OUT:
            lines -= span(node)
    return lines


def span(node: ast.stmt) -> set[int]:
    return set(range(node.lineno, (node.end_lineno or node.lineno) + 1))


def report() -> float:
    """Prints what became of the mutants of each file, and which no test noticed. Returns the share killed."""
    total: Counter[str] = Counter()
    left: list[str] = []
    for file in sorted(FOLDER.rglob("*.py.meta")):
        tried = {
            name: status_by_exit_code[code]
            for name, code in json.loads(file.read_text())["exit_code_by_key"].items()
            if code is not None
        }
        counts = Counter("killed" if status in KILLED else status for status in tried.values())
        counts["mutants"] = len(tried)
        total += counts
        left += [f"{status}  {name}" for name, status in tried.items() if status not in KILLED]
        print(f"{counts['killed']:5} of {counts['mutants']:5}  {file.relative_to(FOLDER).with_suffix('')}")
    print(*sorted(left), sep="\n")
    share = total["killed"] / max(total["mutants"], 1)
    print(f"{share:.1%} of {total['mutants']} mutants were killed")
    return share


if __name__ == "__main__":
    main()
