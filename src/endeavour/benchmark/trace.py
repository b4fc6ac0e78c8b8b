"""Where the time of our training goes: torch's profiler over a few updates, as a table and as a trace."""

from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from endeavour.benchmark.contenders import make_contender
from endeavour.benchmark.task import Task
from endeavour.benchmark.training import run_updates, warm_up

UPDATES = 3
TABLE_ROWS = 40


def write_profile(task: Task, name: str, folder: Path) -> None:
    """Writes `profile-<size>.txt`, the costliest operations first, and `trace-<size>.json` to `folder`."""
    dataset = task.dataset()
    contender = make_contender(name, task)
    warm_up(contender, dataset)
    cuda = task.device.type == "cuda"
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if cuda else [])]
    # Torch 2.11 warns where acc_events is not set.
    with profile(activities=activities, acc_events=True) as recorded:
        run_updates(contender, dataset, task.rows[:UPDATES])
        if cuda:
            torch.cuda.synchronize(task.device)
    order = "self_cuda_time_total" if cuda else "self_cpu_time_total"
    table = recorded.key_averages().table(sort_by=order, row_limit=TABLE_ROWS)
    (folder / f"profile-{task.model.name}.txt").write_text(table + "\n", "utf-8")
    recorded.export_chrome_trace(str(folder / f"trace-{task.model.name}.json"))
