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
from faults.killing import counted, killed_at
from faults.world import Row, World


def kills(world: World) -> Row:
    """SIGKILL at random moments, some of them chosen inside a save, all of one run."""
    wanted, wanted_in_save = (4, 4) if world.quick else (100, 30)
    note = world.folder / "steps.txt"
    world.live("counted", before=counted(note))
    ends = [int(line) for line in note.read_text().split()]
    a_save = ends[-1] - ends[-2]
    anywhere = in_save = finished = 0
    while anywhere < wanted or in_save < wanted_in_save:
        if in_save * wanted < anywhere * wanted_in_save or anywhere >= wanted:
            code = world.live("killed", before=killed_at(world.draw.randint(1, 2 * a_save)))
            in_save += code == -signal.SIGKILL
        else:
            code = world.live("killed", kill=(world.moment(), signal.SIGKILL))
            anywhere += code == -signal.SIGKILL
        if code == 0:  # came to its end before it had been killed often enough: once more from the start
            finished += 1
            if not world.same("killed"):
                return Row("SIGKILL", anywhere + in_save, "other weights", False)
            world.forget(world.outputs / "killed")
        elif code != -signal.SIGKILL:
            return Row("SIGKILL", anywhere + in_save, f"exit code {code}: {world.said()[-300:]}", False)
    same = world.live("killed") == 0 and world.same("killed")
    runs = f"{finished + 1} runs" if finished else "one run"
    return Row(
        f"SIGKILL: {anywhere} at random moments, {in_save} inside a save, of {runs}",
        anywhere + in_save,
        "weights and log bit-equal to the undisturbed run" if same else "other weights or another log",
        same,
    )


def stops(world: World) -> Row:
    """SIGTERM at random moments: what was logged last is what the next life goes on from."""
    wanted = 3 if world.quick else 20
    done = lost = in_training = finished = 0
    while done < wanted:
        code = world.live("stopped", kill=(2 * world.moment(), signal.SIGTERM))
        if code == 0:
            finished += 1
            world.forget(world.outputs / "stopped")
            continue
        if code not in (128 + signal.SIGTERM, -signal.SIGTERM):
            return Row("SIGTERM", done, f"exit code {code}: {world.said()[-300:]}", False)
        done += 1
        in_training += code > 0
        made = max((line["update"] for line in world.logged("stopped")), default=0)
        saved = checkpoints_in(world.outputs / "stopped" / "checkpoints")
        lost += made - (int(saved[-1].name.split("-")[1]) if saved else 0)
    same = world.live("stopped") == 0 and world.same("stopped")
    outcome = f"{lost} updates lost; {in_training} in training: checkpoint, exit code 143; bit-equal end"
    return Row("SIGTERM at random moments", done, outcome, same and lost == 0 and in_training > 0)


def full_disk(world: World) -> Row:
    """A disk that holds about two checkpoints, and room made afterwards."""
    fault = "disk full while saving (a small tmpfs)"
    disk = world.folder / "disk"
    disk.mkdir()
    used = sum(path.stat().st_size for path in (world.outputs / "whole" / "checkpoints").glob("*/*"))
    mount = ["mount", "-t", "tmpfs", "-o", f"size={used * 5 // 6}", "faults", str(disk)]
    try:
        mounted = (
            os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0
        )
    except OSError:
        mounted = False
    if not mounted:
        return Row(fault, 0, "skipped: only root may mount a tmpfs", True)
    try:
        command = [*world.arguments("full"), f"output_folder={disk}"]
        code, said = world.live("full", command=command), world.said()
        left = checkpoints_in(disk / "full" / "checkpoints")
        for path in left:
            verify(path)
        refused = world.live("fresh", command=[*command, "name=fresh", "training.preflight=true"])
        refused_first = refused == 2 and "MB of room" in world.said()
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        same = world.live("full", command=command) == 0 and world.same("full", disk)
        whole = code == 1 and "a checkpoint takes" in said and len(left) > 0
        outcome = (
            f"{len(left)} earlier checkpoints whole; the message names the room needed; "
            f"{'bit-equal end' if same else 'other end'} after room was made; the preflight refuses such a disk"
        )
        return Row(fault, 1, outcome, whole and same and refused_first)
    except UserError as error:
        return Row(fault, 1, str(error), False)
    finally:
        subprocess.run(["umount", str(disk)], check=False)


def flipped_checkpoint(world: World) -> Row:
    """A bit of each file of the newest checkpoint of a run that was killed half-way."""
    assert world.live("half", before=killed_at(160)) == -signal.SIGKILL
    newest = world.newest("half")
    files = sorted(path.name for path in newest.iterdir())
    failed: list[str] = []
    for name in files[:: 3 if world.quick else 1]:
        world.forget(world.outputs / "flipped")
        shutil.copytree(world.outputs / "half", world.outputs / "flipped")
        world.flip(world.outputs / "flipped" / "checkpoints" / newest.name / name)
        code = world.live("flipped")
        if code != 0 or "skipped a damaged checkpoint" not in world.said() or not world.same("flipped"):
            failed.append(name)
    outcome = "named and passed over; bit-equal end from the one before"
    tried = len(files[:: 3 if world.quick else 1])
    return _flipped("a bit flipped in each file of the newest checkpoint", tried, outcome, failed)


def flipped_average(world: World) -> Row:
    """A bit of each kept checkpoint's weights, when only their average is still to be made."""
    *_, first, second, _ = checkpoints_in(world.outputs / "whole" / "checkpoints")  # the newest is last
    failed: list[str] = []
    for path in (first, second):
        world.forget(world.outputs / "flipped")
        shutil.copytree(world.outputs / "whole", world.outputs / "flipped")
        (world.outputs / "flipped" / "summary.json").unlink()
        world.flip(world.outputs / "flipped" / "checkpoints" / path.name / "weights.safetensors")
        code = world.live("flipped")
        if code != 2 or "weights.safetensors: missing or altered" not in world.said():
            failed.append(path.name)
    outcome = "refused by name before they are averaged; exit code 2"
    return _flipped("a bit flipped in the weights of an older checkpoint", 2, outcome, failed)


def flipped_model(world: World) -> Row:
    """A bit of each file of the final model, which is then asked for a translation."""
    files = sorted(path.name for path in (world.outputs / "whole" / "model").iterdir())
    failed: list[str] = []
    for name in files[:: 3 if world.quick else 1]:
        world.forget(world.outputs / "flipped")
        shutil.copytree(world.outputs / "whole", world.outputs / "flipped")
        world.flip(world.outputs / "flipped" / "model" / name)
        command = ["translate", f"output_folder={world.outputs}", "name=flipped", "text=a dog", "device=cpu"]
        if world.live("flipped", command=command) != 2 or "flipped/model" not in world.said():
            failed.append(name)
    tried = len(files[:: 3 if world.quick else 1])
    return _flipped("a bit flipped in each file of a model", tried, "refused by name; exit code 2", failed)


def flipped_data(world: World) -> Row:
    """A bit of each file of the prepared data that training reads."""
    (folder,) = (path.parent for path in world.data.glob(f"prepared/*/{MANIFEST}"))
    read = (".npy", ".txt", ".model", ".json")
    files = sorted(path.name for path in folder.iterdir() if path.suffix in read and path.stem != "report")
    other = world.folder / "other"
    failed: list[str] = []
    for name in files[:: 5 if world.quick else 1]:
        world.forget(other)
        shutil.copytree(world.data, other)
        world.flip(other / folder.relative_to(world.data) / name)
        code = world.live("flipped", command=[*world.arguments("unborn"), f"data_folder={other}"])
        if code != 2 or "endeavour prepare" not in world.said():
            failed.append(name)
        if (world.outputs / "unborn" / "checkpoints").exists():
            failed.append(f"{name}: trained")
    tried = len(files[:: 5 if world.quick else 1])
    outcome = "refused by name before the first update; exit code 2"
    return _flipped("a bit flipped in each file of the prepared data", tried, outcome, failed)


def _flipped(fault: str, tried: int, outcome: str, failed: list[str]) -> Row:
    return Row(fault, tried, f"not noticed: {', '.join(failed)}" if failed else outcome, not failed)


ROWS: list[Callable[[World], Row]] = [
    kills,
    stops,
    full_disk,
    flipped_checkpoint,
    flipped_average,
    flipped_model,
    flipped_data,
]
