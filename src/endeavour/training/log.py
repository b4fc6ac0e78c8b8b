"""Metrics of training, summed over several updates, and the log file. Knows numbers, not what follows from them."""

import json
import math
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from endeavour.errors import RunError
from endeavour.storage import write_atomically
from endeavour.training.distributed import Ranks
from endeavour.training.step import StepResult
from endeavour.training.updates import Update

COLUMNS = 5  # loss, nll, gradient norm, target tokens, 1 (all 0 if the update was skipped)


def perplexity(nll: float) -> float:
    """Of a mean negative log-likelihood in nats; at most e⁷⁰⁰, near the largest number there is."""
    return math.exp(min(nll, 700.0))


class MetricLog:
    """`log.jsonl`: one JSON object per line, with its `kind` and `update`.

    Kinds: "train", "validation", "attention" of one pair, and "samples", (source, hypothesis, reference) each.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def cut_after(self, update: int) -> None:
        """Drops the lines of updates that a resumed run will repeat, atomically: a kill must not lose the others."""
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
                "free some disk space; the same command, without training.restart, resumes from the last checkpoint"
            ) from error

    def read(self) -> list[dict[str, Any]]:
        """All lines but those that are damaged, or that a kill cut short."""
        if not self._path.is_file():
            return []
        lines: list[dict[str, Any]] = []
        for text in self._path.read_text("utf-8", errors="replace").splitlines():
            with suppress(ValueError):
                line = json.loads(text)
                if isinstance(line, dict) and line.keys() >= {"kind", "update"}:
                    lines.append(line)
        return lines


class MetricWindow:
    """Sums over the updates since the last log line; tensors are read only when the window is closed or saved."""

    def __init__(self, saved: Mapping[str, Any] | None = None) -> None:
        """An empty window, or the one that `state` returned."""
        saved = saved or {"rows": [], "updates": 0, "tokens": 0, "cells": [0, 0], "seconds": 0.0}
        self._started = time.monotonic() - saved["seconds"]
        self._saved = torch.tensor(saved["rows"]).reshape(-1, COLUMNS)
        self._rows: list[Tensor] = []
        self._updates, self._tokens = saved["updates"], saved["tokens"]
        self._padding, self._cells = saved["cells"]

    def add(self, update: Update, result: StepResult) -> None:
        """Adds one update and what `Updater` returned for it."""
        tokens = torch.full_like(result.loss, update.target_tokens)
        row = torch.stack((result.loss, result.nll, result.norm, tokens, torch.ones_like(result.loss)))
        self._rows.append(torch.where(result.norm.isfinite(), row, 0.0))
        self._updates += 1
        self._tokens += update.target_tokens
        for batch in update.batches:
            padding, cells = batch.padding
            self._padding += padding
            self._cells += cells

    def close(self, ranks: Ranks, *, epoch: int, rate: float, seconds: float) -> dict[str, float]:
        """Means over the updates that were not skipped (loss and perplexity per target token); NaN if all were.

        The window must not be used again. `padding` covers the batches of this process only.
        """
        columns = self._all_rows(ranks).double().sum(dim=0)
        loss, nll, norm, tokens, made = columns.tolist()
        loss, nll = (total / tokens if tokens else math.nan for total in (loss, nll))
        return {
            "epoch": epoch,
            "loss": loss,
            "perplexity": perplexity(nll),
            "learning_rate": rate,
            "gradient_norm": norm / made if made else math.nan,
            "skipped": self._updates - int(made),
            "tokens_per_second": self._tokens / max(time.monotonic() - self._started, 1e-9),
            "padding": self._padding / max(self._cells, 1),
            "seconds": seconds,
        }

    def state(self, ranks: Ranks) -> dict[str, Any]:
        """What a checkpoint keeps so that a resumed run logs the same lines: plain numbers, exact in JSON."""
        return {
            "rows": self._all_rows(ranks).tolist(),
            "updates": self._updates,
            "tokens": self._tokens,
            "cells": [self._padding, self._cells],
            "seconds": time.monotonic() - self._started,
        }

    def _all_rows(self, ranks: Ranks) -> Tensor:
        """(updates, COLUMNS), the losses summed over all processes; a skipped update is a row of zeros."""
        if not self._rows:
            return self._saved
        rows = torch.stack(self._rows)
        losses = ranks.all_reduce_sum(rows[:, :2].contiguous())
        return torch.cat([self._saved, torch.cat([losses, rows[:, 2:]], dim=1).cpu()])
