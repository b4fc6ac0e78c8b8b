"""Everything worth knowing of a machine with a GPU and without network, measured step by step within 25 minutes.

    python3 benchmark/gpu.py --out results --wheels wheels --text multi30k       all steps
    python3 benchmark/gpu.py --out results base-eager decoding                   these, beside what `results` holds
    python3 benchmark/gpu.py --out results --rehearse                            all on the CPU, at toy size

Writes gpu.json and gpu.md to the folder after each step, so that a cut leaves what was measured; a step that fails or
takes too long is recorded with the end of its log, and the next one begins; given again, a training continues from its
last checkpoint. Needs Python 3.11; what the steps need besides, the machine has or `wheels.py` collects. CTranslate2's
wheels need the libraries of the CUDA that they were built for.

Each row of training has also the time of the first update with all compiling, the graphs of `torch.compile`, the breaks
between them and why any was compiled again, and how often the host waits for the GPU in one update, by line of code.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpu_steps import STEPS, Place, write_toy_text

ROOT = Path(__file__).resolve().parents[1]
RESUMED = ("multi30k", "best")  # trainings, which continue where they were stopped
GRACE = 20  # seconds that a step has to end by itself after SIGTERM: a training then writes a checkpoint
SHOWN = 30  # lines of the log of a step that failed
COUNTED = "\n## How it was counted"


def run_step(name: str, place: Place, seconds: float) -> dict[str, Any]:
    """Runs a step for at most so many seconds and returns what gpu.json holds of it."""
    step, folder = STEPS[name], place.out / name
    words = step.command(place, name)
    if words is None:
        return {"status": "left out", "why": f"needs {step.needs}"}
    if name not in RESUMED:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    log = place.out / f"{name}.log"
    started = time.monotonic()
    with log.open("w", encoding="utf-8") as file:
        code = _watched([sys.executable, *words], _environment(place, folder), file.fileno(), seconds)
    status = {0: "done", None: "too slow"}.get(code, "failed")
    entry = {"status": status, "seconds": round(time.monotonic() - started, 1), "command": words}
    if status != "done":
        entry["log"] = log.read_text("utf-8", errors="replace").splitlines()[-SHOWN:]
    try:
        entry["results"] = step.results(folder)
    except (OSError, ValueError, StopIteration, KeyError, xml.etree.ElementTree.ParseError) as error:
        entry["results"] = {}
        entry["why"] = f"left no results ({type(error).__name__})"
    return entry


def _watched(words: Sequence[str], environment: dict[str, str], output: int, seconds: float) -> int | None:
    """The exit code of a command, with all processes that it starts; None where it had to be stopped."""
    process = subprocess.Popen(
        words,
        cwd=ROOT,
        env=environment,
        stdout=output,
        stderr=output,
        stdin=subprocess.DEVNULL,
        process_group=0,
    )
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, number)
                process.wait(GRACE)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue
        return None
    except BaseException:  # this program is being ended: nothing may hold the GPU on
        os.killpg(process.pid, signal.SIGKILL)
        raise


def _environment(place: Place, folder: Path) -> dict[str, str]:
    """That of this program, with what was installed, this checkout, no network, and nothing compiled before."""
    given = os.environ.get("PYTHONPATH")
    paths = [str(place.out / "install"), str(ROOT / "src"), *([given] if given else [])]
    own = {
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONUNBUFFERED": "1",
        "HF_HUB_OFFLINE": "1",
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "compiled"),
        "ENDEAVOUR_CACHE": str(place.out / "cache"),
    }
    # Compiling for a CPU takes a minute; everything around it is rehearsed.
    return (
        os.environ | own | ({"TORCH_COMPILE_DISABLE": "1", "OMP_NUM_THREADS": "1"} if place.rehearse else {})
    )


def write(out: Path, entries: dict[str, Any]) -> None:
    """gpu.json, and gpu.md with a table of the steps and what each of them reports."""
    _replace(out / "gpu.json", json.dumps(entries, indent=1) + "\n")
    lines = ["# A GPU, measured", "", "| step | how it ended | seconds | |", "| --- | --- | ---: | --- |"]
    for name, entry in entries.items():
        found = entry.get("results", {})
        if "tests" in found:
            note = f"{found['tests']} tests, {found['skipped']} skipped; failed: {found['failed'] or 'none'}"
        elif "summary" in found:
            speed = f"{found['train']['tokens_per_second']:,.0f} target tokens/s"
            tested = [_scores(name, scores) for name, scores in found["summary"]["test"].items()]
            note = "; ".join([*tested, speed])
        else:
            note = entry.get("why", "")
        lines.append(f"| {name} | {entry['status']} | {entry.get('seconds', '–')} | {note} |")
    counted = ""
    for name in entries:
        for report in sorted((out / name).glob("bench/*/report.md")):
            text, _, counted = report.read_text("utf-8").partition(COUNTED)
            lines += ["", *("#" * line.startswith("#") + line for line in text.strip().splitlines())]
    lines += [COUNTED + counted] if counted else []
    for name, entry in entries.items():
        if "log" in entry:
            lines += ["", f"## The end of {name}.log", "", "```", *entry["log"], "```"]
    _replace(out / "gpu.md", "\n".join(lines) + "\n")


def _scores(test_set: str, scores: dict[str, float]) -> str:
    return f"{test_set}: " + ", ".join(f"{metric} {value:.4g}" for metric, value in scores.items())


def _replace(path: Path, text: str) -> None:
    partial = path.with_name(f".{path.name}")
    partial.write_text(text, "utf-8")
    partial.replace(path)


def _absolute(path: str) -> Path:
    """Steps run in the repository, wherever this program was started."""
    return Path(path).resolve()


def main() -> int:
    """Exit code 1 where a step failed or was too slow."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"of {', '.join(STEPS)}; none: all")
    parser.add_argument("--out", type=_absolute, required=True, help="folder of results")
    parser.add_argument("--wheels", type=_absolute, help="folder of wheels to install first; see wheels.py")
    parser.add_argument("--text", type=_absolute, help="Multi30k: train.en and so on")
    parser.add_argument("--minutes", type=float, default=25, help="after which no step goes on (25)")
    parser.add_argument("--rehearse", action="store_true", help="on the CPU, at toy size")
    given = parser.parse_args()
    if unknown := [name for name in given.steps if name not in STEPS]:
        parser.error(f"{', '.join(unknown)}: choose from {', '.join(STEPS)}")
    if given.wheels and not any(given.wheels.glob("*.whl")):
        parser.error(f"--wheels {given.wheels}: no wheels (*.whl) there")
    if given.text and not (given.text / "train.en").is_file():
        parser.error(f"--text {given.text}: no train.en there")
    saved = given.out / "gpu.json"
    try:
        entries: dict[str, Any] = json.loads(saved.read_text("utf-8")) if saved.is_file() else {}
    except ValueError:
        parser.error(f"{saved} is damaged: move it away, or choose another --out")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the step that is running is ended too
    place = Place(given.out, given.wheels, given.text, given.rehearse)
    place.out.mkdir(parents=True, exist_ok=True)
    if given.rehearse:
        write_toy_text(place.out / "toy")
    ends = time.monotonic() + 60 * given.minutes
    ended: list[str] = []
    for name in given.steps or STEPS:
        left = ends - time.monotonic()
        entry = (
            run_step(name, place, min(STEPS[name].seconds, left))
            if left > 0
            else {"status": "left out", "why": "no time was left"}
        )
        entries[name] = entry
        ended.append(entry["status"])
        write(place.out, entries)
        print(f"{name}: {entry['status']} {entry.get('why', '')}".strip(), flush=True)
    return int(bool({"failed", "too slow"} & set(ended)))


if __name__ == "__main__":
    sys.exit(main())
