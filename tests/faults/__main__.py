"""`python -m faults [--quick]`, from the folder `tests`: prints the table; exit code 1 where a promise was broken."""

import os

# Before torch is imported: with one thread there is no pool of threads that a fork would lose.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ.setdefault("MPLBACKEND", "agg")

import sys
import tempfile
import time
from pathlib import Path

from faults import processes
from faults.harness import Harness
from faults.rows import ROWS


def main() -> None:
    started = time.monotonic()
    kept = True
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        harness = Harness(Path(folder), quick="--quick" in sys.argv)
        print("| fault | times | outcome | kept |\n| --- | ---: | --- | --- |")
        for function in ROWS if harness.quick else [*ROWS, *processes.ROWS]:
            row = function(harness)
            kept = kept and row.kept is not False
            said = {True: "yes", False: "NO", None: "left out"}[row.kept]
            print(f"| {row.fault} | {row.times} | {row.outcome} | {said} |", flush=True)
        seconds = time.monotonic() - started
        print(f"\n{harness.lives} processes in {seconds:.0f} s")
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
