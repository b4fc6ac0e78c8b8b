"""Metrics of training: summed up over some updates, and written down. Knows numbers, not what to do about them."""

import json
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from endeavour.errors import RunError
from endeavour.storage import write_atomically
from endeavour.training.processes import Processes
from endeavour.training.updates import Update

COLUMNS = 5  # loss, likelihood, norm, target tokens, 1 if the update was made


class MetricLog:
    """`log.jsonl`: one JSON object a line, each with its `kind` ("train", "validation" or "attention") and `update`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def cut_after(self, update: int) -> None:
        """Drops the lines of updates that a resumed run will make again, in one step: a kill must not take others."""
        if not self._path.is_file():
            return
        kept = [line for line in self.read() if line["update"] <= update]
        write_atomically(self._path, "".join(json.dumps(line) + "\n" for line in kept))

    def write(self, kind: str, update: int, metrics: Mapping[str, object]) -> None:
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"kind": kind, "update": update, **metrics}) + "\n")
        except OSError as error:
            raise RunError(
                f"{self._path} cannot be written ({error.strerror})\n"
                "make room, and the same command goes on from the last checkpoint"
            ) from error

    def read(self) -> list[dict[str, Any]]:
        """All whole lines; a last one that a kill cut short is left out."""
        if not self._path.is_file():
            return []
        lines: list[dict[str, Any]] = []
        for text in self._path.read_text("utf-8").splitlines():
            try:
                lines.append(json.loads(text))
            except ValueError:
                break
        return lines


class MetricWindow:
    """Sums over the updates since the last log line; tensors are read only when it closes or is saved."""

    def __init__(self, saved: Mapping[str, Any] | None = None) -> None:
        """An empty window, or one as `state` described it."""
        saved = saved or {"rows": [], "updates": 0, "tokens": 0, "cells": [0, 0], "seconds": 0.0}
        self._started = time.monotonic() - saved["seconds"]
        self._saved = torch.tensor(saved["rows"]).reshape(-1, COLUMNS)
        self._rows: list[Tensor] = []
        self._updates, self._tokens = saved["updates"], saved["tokens"]
        self._padding, self._cells = saved["cells"]

    def add(self, loss: Tensor, likelihood: Tensor, norm: Tensor, finite: Tensor, update: Update) -> None:
        """Takes one update: this process's sums of the losses, the gradients' norm and whether it is finite."""
        tokens = torch.full_like(loss, update.target_tokens)
        row = torch.stack((loss, likelihood, norm, tokens, torch.ones_like(loss)))
        self._rows.append(torch.where(finite, row, 0.0))
        self._updates += 1
        self._tokens += update.target_tokens
        for batch in update.batches:
            padding, cells = batch.padding
            self._padding += padding
            self._cells += cells

    def close(self, processes: Processes, *, epoch: int, rate: float, seconds: float) -> dict[str, float]:
        """The means, loss and perplexity per target token, of the updates that were not skipped; NaN if all were.

        The window is used up. `padding` is that of this process's batches.
        """
        columns = self._all_rows(processes).double().sum(dim=0)
        loss, likelihood, norm, tokens, made = columns.tolist()
        loss, likelihood = (total / tokens if tokens else math.nan for total in (loss, likelihood))
        return {
            "epoch": epoch,
            "loss": loss,
            "perplexity": math.exp(min(likelihood, 700.0)),
            "learning_rate": rate,
            "gradient_norm": norm / made if made else math.nan,
            "skipped": self._updates - int(made),
            "tokens_per_second": self._tokens / max(time.monotonic() - self._started, 1e-9),
            "padding": self._padding / max(self._cells, 1),
            "seconds": seconds,
        }

    def state(self, processes: Processes) -> dict[str, Any]:
        """What a checkpoint keeps, so that a resumed run logs the same lines; plain numbers, exact as JSON."""
        return {
            "rows": self._all_rows(processes).tolist(),
            "updates": self._updates,
            "tokens": self._tokens,
            "cells": [self._padding, self._cells],
            "seconds": time.monotonic() - self._started,
        }

    def _all_rows(self, processes: Processes) -> Tensor:
        """(updates, COLUMNS), the losses summed over all processes; a skipped update is a row of zeros."""
        if not self._rows:
            return self._saved
        rows = torch.stack(self._rows)
        losses = processes.sum(rows[:, :2].contiguous())
        return torch.cat([self._saved, torch.cat([losses, rows[:, 2:]], dim=1).cpu()])
