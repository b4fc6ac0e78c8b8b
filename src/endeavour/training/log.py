"""Metrics of training: summed up over some updates, and written down. Knows numbers, not what to do about them."""

import json
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from endeavour.data.batching import Batch


class MetricLog:
    """`log.jsonl`: one JSON object a line, each with its `kind` ("train" or "validation") and `update`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def cut_after(self, update: int) -> None:
        """Drops the lines of updates that a resumed run will make again."""
        kept = [line for line in self.read() if line["update"] <= update]
        self._path.write_text("".join(json.dumps(line) + "\n" for line in kept))

    def write(self, kind: str, update: int, metrics: Mapping[str, float]) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps({"kind": kind, "update": update, **metrics}) + "\n")

    def read(self) -> list[dict[str, Any]]:
        """All whole lines; a last one that a kill cut short is left out."""
        if not self._path.is_file():
            return []
        lines: list[dict[str, Any]] = []
        for text in self._path.read_text().splitlines():
            try:
                lines.append(json.loads(text))
            except ValueError:
                break
        return lines


class MetricWindow:
    """Sums over the updates since the last log line; tensors are read only when it closes."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._sums: list[Tensor] = []
        self._tokens = self._padding = self._cells = 0

    def add(self, loss: Tensor, likelihood: Tensor, tokens: int, norm: Tensor, batches: list[Batch]) -> None:
        self._sums.append(torch.stack((loss, likelihood, norm)))
        self._tokens += tokens
        for batch in batches:
            padding, cells = batch.padding
            self._padding += padding
            self._cells += cells

    def close(self, *, epoch: int, rate: float, seconds: float) -> dict[str, float]:
        """The means, loss and perplexity per target token; starts a new window."""
        loss, likelihood, norm = torch.stack(self._sums).double().sum(dim=0).tolist()
        metrics = {
            "epoch": epoch,
            "loss": loss / self._tokens,
            "perplexity": math.exp(min(likelihood / self._tokens, 700.0)),
            "learning_rate": rate,
            "gradient_norm": norm / len(self._sums),
            "tokens_per_second": self._tokens / max(time.monotonic() - self._started, 1e-9),
            "padding": self._padding / self._cells,
            "seconds": seconds,
        }
        self.__init__()  # the next window
        return metrics
