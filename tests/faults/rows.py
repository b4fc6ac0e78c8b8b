"""The faults of one process, a function a row of the table: what is done to a run, and what came of it."""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable

from endeavour.data.prepared import MANIFEST
from endeavour.errors import UserError
from endeavour.storage import verify
from endeavour.training.checkpoint import checkpoints_in
from faults.harness import Harness, Row
from faults.killing import counted, killed_at


def kills(harness: Harness) -> Row:
    """SIGKILL at random moments, some of them chosen inside a save, all of one run."""
    wanted, wanted_in_save = (4, 4) if harness.quick else (100, 30)
    note = harness.folder / "steps.txt"
    harness.live("counted", before=counted(note))
    ends = [int(line) for line in note.read_text().split()]
    a_save = ends[-1] - ends[-2]
    anywhere = in_save = finished = 0
    while anywhere < wanted or in_save < wanted_in_save:
        if in_save * wanted < anywhere * wanted_in_save or anywhere >= wanted:
            code = harness.live("killed", before=killed_at(harness.draw.randint(1, 2 * a_save)))
            in_save += code == -signal.SIGKILL
        else:
            code = harness.live("killed", kill=(harness.moment(), signal.SIGKILL))
            anywhere += code == -signal.SIGKILL
        if code == 0:  # came to its end before it had been killed often enough: once more from the start
            finished += 1
            if not harness.same("killed"):
                return Row("SIGKILL", anywhere + in_save, "other weights", False)
            harness.forget(harness.outputs / "killed")
        elif code != -signal.SIGKILL:
            return Row("SIGKILL", anywhere + in_save, f"exit code {code}: {harness.said()[-300:]}", False)
    same = harness.live("killed") == 0 and harness.same("killed")
    runs = f"{finished + 1} runs" if finished else "one run"
    return Row(
        f"SIGKILL: {anywhere} at random moments, {in_save} inside a save, of {runs}",
        anywhere + in_save,
        "weights and log bit-equal to the undisturbed run" if same else "other weights or another log",
        same,
    )


def stops(harness: Harness) -> Row:
    """SIGTERM at random moments: what was logged last is what the next life goes on from."""
    wanted = 3 if harness.quick else 20
    done = lost = in_training = finished = 0
    # More where starting takes longer than measured, so that none meets the training.
    while done < wanted or (in_training == 0 and done < 20 * wanted):
        code = harness.live("stopped", kill=(2 * harness.moment(), signal.SIGTERM))
        if code == 0:
            finished += 1
            harness.forget(harness.outputs / "stopped")
            continue
        if code not in (128 + signal.SIGTERM, -signal.SIGTERM):
            return Row("SIGTERM", done, f"exit code {code}: {harness.said()[-300:]}", False)
        done += 1
        in_training += code > 0
        made = max((line["update"] for line in harness.logged("stopped")), default=0)
        saved = checkpoints_in(harness.outputs / "stopped" / "checkpoints")
        lost += made - (int(saved[-1].name.split("-")[1]) if saved else 0)
    same = harness.live("stopped") == 0 and harness.same("stopped")
    outcome = f"{lost} updates lost; {in_training} in training: checkpoint, exit code 143; bit-equal end"
    return Row("SIGTERM at random moments", done, outcome, same and lost == 0 and in_training > 0)


def full_disk(harness: Harness) -> Row:
    """A disk that holds about two checkpoints, and room made afterwards."""
    fault = "disk full while saving (a small tmpfs)"
    disk = harness.folder / "disk"
    disk.mkdir()
    used = sum(path.stat().st_size for path in (harness.outputs / "whole" / "checkpoints").glob("*/*"))
    mount = ["mount", "-t", "tmpfs", "-o", f"size={used * 5 // 6}", "faults", str(disk)]
    try:
        mounted = (
            os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0
        )
    except OSError:
        mounted = False
    if not mounted:
        return Row(fault, 0, "only root may mount a tmpfs", None)
    try:
        command = [*harness.arguments("full"), f"output_folder={disk}"]
        code, said = harness.live("full", command=command), harness.said()
        left = checkpoints_in(disk / "full" / "checkpoints")
        for path in left:
            verify(path)
        refused = harness.live("fresh", command=[*command, "name=fresh", "training.preflight=true"])
        refused_first = refused == 2 and "training.keep_last" in harness.said()
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        same = harness.live("full", command=command) == 0 and harness.same("full", disk)
        whole = code == 1 and "a checkpoint needs" in said and len(left) > 0
        outcome = (
            f"{len(left)} earlier checkpoints whole; the message names the room needed; "
            f"{'bit-equal end' if same else 'other end'} after room was made; the preflight refuses such a disk"
        )
        return Row(fault, 1, outcome, whole and same and refused_first)
    except UserError as error:
        return Row(fault, 1, str(error), False)
    finally:
        subprocess.run(["umount", str(disk)], check=False)


def flipped_checkpoint(harness: Harness) -> Row:
    """A bit of each file of the newest checkpoint of a run that was killed half-way."""
    assert harness.live("half", before=killed_at(160)) == -signal.SIGKILL
    newest = harness.newest("half")
    files = sorted(path.name for path in newest.iterdir())
    failed: list[str] = []
    for name in files[:: 3 if harness.quick else 1]:
        harness.forget(harness.outputs / "flipped")
        shutil.copytree(harness.outputs / "half", harness.outputs / "flipped")
        harness.flip(harness.outputs / "flipped" / "checkpoints" / newest.name / name)
        code = harness.live("flipped")
        if code != 0 or "skipped a damaged checkpoint" not in harness.said() or not harness.same("flipped"):
            failed.append(name)
    outcome = "named and passed over; bit-equal end from the one before"
    tried = len(files[:: 3 if harness.quick else 1])
    return _flipped("a bit flipped in each file of the newest checkpoint", tried, outcome, failed)


def flipped_average(harness: Harness) -> Row:
    """A bit of each kept checkpoint's weights, when only their average is still to be made."""
    *_, first, second, _ = checkpoints_in(harness.outputs / "whole" / "checkpoints")  # the newest is last
    failed: list[str] = []
    for path in (first, second):
        harness.forget(harness.outputs / "flipped")
        shutil.copytree(harness.outputs / "whole", harness.outputs / "flipped")
        (harness.outputs / "flipped" / "summary.json").unlink()
        harness.flip(harness.outputs / "flipped" / "checkpoints" / path.name / "weights.safetensors")
        code = harness.live("flipped")
        if code != 2 or "weights.safetensors: missing or altered" not in harness.said():
            failed.append(path.name)
    outcome = "refused by name before they are averaged; exit code 2"
    return _flipped("a bit flipped in the weights of an older checkpoint", 2, outcome, failed)


def flipped_model(harness: Harness) -> Row:
    """A bit of each file of the final model, which is then asked for a translation."""
    files = sorted(path.name for path in (harness.outputs / "whole" / "model").iterdir())
    failed: list[str] = []
    for name in files[:: 3 if harness.quick else 1]:
        harness.forget(harness.outputs / "flipped")
        shutil.copytree(harness.outputs / "whole", harness.outputs / "flipped")
        harness.flip(harness.outputs / "flipped" / "model" / name)
        command = ["translate", f"output_folder={harness.outputs}", "run=flipped", "text=a dog", "device=cpu"]
        if harness.live("flipped", command=command) != 2 or "flipped/model" not in harness.said():
            failed.append(name)
    tried = len(files[:: 3 if harness.quick else 1])
    return _flipped("a bit flipped in each file of a model", tried, "refused by name; exit code 2", failed)


def flipped_data(harness: Harness) -> Row:
    """A bit of each file of the prepared data that training reads."""
    (folder,) = (path.parent for path in harness.data.glob(f"prepared/*/{MANIFEST}"))
    read = (".npy", ".txt", ".model", ".json")
    files = sorted(path.name for path in folder.iterdir() if path.suffix in read and path.stem != "report")
    other = harness.folder / "other"
    failed: list[str] = []
    for name in files[:: 5 if harness.quick else 1]:
        harness.forget(other)
        shutil.copytree(harness.data, other)
        harness.flip(other / folder.relative_to(harness.data) / name)
        code = harness.live("flipped", command=[*harness.arguments("never_begun"), f"data_folder={other}"])
        if code != 2 or "endeavour prepare" not in harness.said():
            failed.append(name)
        if (harness.outputs / "never_begun" / "checkpoints").exists():
            failed.append(f"{name}: trained")
    tried = len(files[:: 5 if harness.quick else 1])
    outcome = "refused by name before the first update; exit code 2"
    return _flipped("a bit flipped in each file of the prepared data", tried, outcome, failed)


def _flipped(fault: str, tried: int, outcome: str, failed: list[str]) -> Row:
    assert tried
    return Row(fault, tried, f"not noticed: {', '.join(failed)}" if failed else outcome, not failed)


ROWS: list[Callable[[Harness], Row]] = [
    kills,
    stops,
    full_disk,
    flipped_checkpoint,
    flipped_average,
    flipped_model,
    flipped_data,
]
