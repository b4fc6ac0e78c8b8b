"""One run on two hosts whose link is cut: both stop cleanly, and the same commands go on to the same weights.

The hosts are two network namespaces joined by a veth pair, so this needs Linux and root. Run by `make faults`,
or by hand: python tests/faults/two_hosts.py
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors.torch import load_file

HOSTS = ("endeavour-0", "endeavour-1")
ADDRESSES = ("10.231.0.1", "10.231.0.2")
PORT = 29517
TIMEOUT_SECONDS = 8  # for which a process waits for the other
RUN = [
    "training=smoke",
    "corpus.train_pairs=500",
    "tokenizer.vocabulary_size=700",
    "training.max_updates=60",
    "training.validate_every=5",
    "training.validation_sentences=2",
    "training.log_every=1",
    f"training.communication_timeout={TIMEOUT_SECONDS}",
    "tracking=none",
    "evaluation.bootstrap_samples=40",
    "decoding=greedy",
    "decoding.max_length_ratio=0.5",
]


def why_not() -> str | None:
    """Why this machine cannot play two hosts; None if it can."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0 or shutil.which("ip") is None:
        return "needs Linux, root and the command `ip`"
    return None


@contextmanager
def two_hosts() -> Generator[None]:
    """Two namespaces with a link between them, for the time of the block."""
    _remove()
    try:
        for host in HOSTS:
            _ip("netns", "add", host)
        _ip(
            "link",
            "add",
            "veth0",
            "netns",
            HOSTS[0],
            "type",
            "veth",
            "peer",
            "name",
            "veth1",
            "netns",
            HOSTS[1],
        )
        for number, (host, address) in enumerate(zip(HOSTS, ADDRESSES, strict=True)):
            _ip("-n", host, "address", "add", f"{address}/24", "dev", f"veth{number}")
            for device in ("lo", f"veth{number}"):
                _ip("-n", host, "link", "set", device, "up")
        yield
    finally:
        _remove()


def link_cut(folder: Path) -> dict[str, object]:
    """Trains undisturbed, then with the link cut in mid-training and a second start; compares the weights.

    Returns:
        `exit_codes` of both hosts after the cut, `seconds` until both had ended, `update` they went on from,
        `equal`: whether the final weights are, bit for bit.
    """
    with two_hosts():
        codes = [host.wait() for host in _start(folder, "whole")]
        assert codes == [0, 0], codes
        hosts = _start(folder, "cut")
        _wait_for_update(folder / "cut", 12, hosts)
        _ip("-n", HOSTS[0], "link", "set", "veth0", "down")
        cut = time.monotonic()
        exit_codes = [host.wait(120) for host in hosts]
        seconds = time.monotonic() - cut
        _ip("-n", HOSTS[0], "link", "set", "veth0", "up")
        checkpoints = sorted((folder / "cut" / "checkpoints").glob("update-*"))
        codes = [host.wait() for host in _start(folder, "cut")]
        assert codes == [0, 0], codes
    final = [load_file(folder / name / "model" / "weights.safetensors") for name in ("whole", "cut")]
    return {
        "exit_codes": exit_codes,
        "seconds": round(seconds, 1),
        "update": int(checkpoints[-1].name.split("-")[1]),
        "equal": all(torch.equal(final[0][name], final[1][name]) for name in final[0]),
    }


def _start(folder: Path, name: str) -> list["subprocess.Popen[bytes]"]:
    """`torchrun` on both hosts."""
    return [
        subprocess.Popen(
            [
                *("ip", "netns", "exec", host, sys.executable, "-m", "torch.distributed.run"),
                *("--nnodes=2", "--nproc-per-node=1", f"--node-rank={number}"),
                *(f"--master-addr={ADDRESSES[0]}", f"--master-port={PORT}"),
                *("-m", "endeavour", "train", f"name={name}", f"output_folder={folder}"),
                *(f"data_folder={folder / 'data'}", *RUN),
            ],
            env=os.environ
            | {
                "OMP_NUM_THREADS": "1",
                "GLOO_SOCKET_IFNAME": f"veth{number}",
                "TP_SOCKET_IFNAME": f"veth{number}",
            },
            stdout=(folder / f"{name}-{number}.log").open("ab"),
            stderr=subprocess.STDOUT,
        )
        for number, host in enumerate(HOSTS)
    ]


def _wait_for_update(run: Path, update: int, hosts: list["subprocess.Popen[bytes]"]) -> None:
    log = run / "log.jsonl"
    while not log.is_file() or log.read_text().count('"kind": "train"') < update:
        assert all(host.poll() is None for host in hosts), "a host ended before the link was cut"
        time.sleep(0.05)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def _remove() -> None:
    for host in HOSTS:
        subprocess.run(["ip", "netns", "del", host], check=False, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    reason = why_not()
    if reason is not None:
        sys.exit(f"two_hosts: {reason}")
    with tempfile.TemporaryDirectory(prefix="endeavour-hosts-") as scratch:
        print(link_cut(Path(scratch)))
