"""Runs of two processes: one of them is killed, or they are on two hosts and lose their link.

After a kill torchrun ends the other process, starts both again, and they go on.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load_file

from faults.harness import Harness, Row
from faults.two_hosts import RUN, link_cut, why_not


def rank_killed(folder: Path) -> dict[str, object]:
    """Trains on two processes undisturbed, then with one of them killed.

    Returns:
        `seconds` from the kill until both processes had been started again, `update` they went on from, and
        `equal`: whether the final weights are, bit for bit.
    """
    assert _start(folder, "undisturbed").wait() == 0
    agent = _start(folder, "bereaved")
    log = folder / "bereaved" / "log.jsonl"
    while not log.is_file() or log.read_text().count('"kind": "train"') < 12:
        time.sleep(0.05)
        assert agent.poll() is None, "torchrun gave up"
    first = _workers(agent)
    os.kill(first[1], signal.SIGKILL)
    killed = time.monotonic()
    while len(again := _workers(agent)) < 2 or set(again.values()) & set(first.values()):
        time.sleep(0.05)
        assert agent.poll() is None, "torchrun gave up"
    seconds = time.monotonic() - killed
    assert agent.wait() == 0
    said = (folder / "bereaved.log").read_text()
    final = [
        load_file(folder / name / "model" / "weights.safetensors") for name in ("undisturbed", "bereaved")
    ]
    return {
        "seconds": round(seconds, 1),
        "update": int(said.split("resuming after update ")[1].split()[0]),
        "equal": all(torch.equal(final[0][name], final[1][name]) for name in final[0]),
    }


def one_of_two(harness: Harness) -> Row:
    """The row of the table for `rank_killed`."""
    folder = harness.folder / "processes"
    folder.mkdir()
    result = rank_killed(folder)
    weights = "weights bit-equal to the undisturbed run of two" if result["equal"] else "other weights"
    return Row(
        "one of two processes killed, `torchrun --max-restarts=1`",
        1,
        f"both started again within {result['seconds']} s, on from update {result['update']}; {weights}",
        bool(result["equal"]),
    )


def two_hosts_part(harness: Harness) -> Row:
    """The row of the table for `two_hosts.link_cut`."""
    fault = "link cut between two hosts (network namespaces)"
    reason = why_not()
    if reason is not None:
        return Row(fault, 0, reason, None)
    folder = harness.folder / "hosts"
    folder.mkdir()
    result = link_cut(folder)
    weights = "weights bit-equal to the undisturbed run of two" if result["equal"] else "other weights"
    return Row(
        fault,
        1,
        f"both hosts stopped with exit codes {result['exit_codes']} within {result['seconds']} s "
        f"(of which they wait 8), on from update {result['update']} by the same commands; {weights}",
        bool(result["equal"]),
    )


# Minutes long, so not in the quick half; tests/training/test_distributed.py has that of processes.
ROWS: list[Callable[[Harness], Row]] = [one_of_two, two_hosts_part]


def _start(folder: Path, name: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [
            # Not with --master-port: the restarted processes would read the addresses of those before them.
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            *("--nproc-per-node=2", "--max-restarts=1", "-m", "endeavour", "train", f"name={name}"),
            *(f"output_folder={folder}", f"data_folder={folder / 'data'}", *RUN),
            "training.communication_timeout=120",
        ],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=(folder / f"{name}.log").open("wb"),
        stderr=subprocess.STDOUT,
    )


def _workers(agent: "subprocess.Popen[bytes]") -> dict[int, int]:
    """Rank → process of torchrun's workers that are there."""
    found: dict[int, int] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(status.read_text().rsplit(")", 1)[1].split()[1]) != agent.pid:
                continue
            environment = (status.parent / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        ranks = [int(entry[5:]) for entry in environment if entry.startswith(b"RANK=")]
        if ranks:
            found[ranks[0]] = int(status.parent.name)
    return found
