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
        self._path.write_text("".join(json.dumps(line) + "\n" for line in kept), "utf-8")

    def write(self, kind: str, update: int, metrics: Mapping[str, float]) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"kind": kind, "update": update, **metrics}) + "\n")

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
        saved = saved or {"sums": [], "tokens": 0, "padding": 0, "cells": 0, "seconds": 0.0}
        self._started = time.monotonic() - saved["seconds"]
        self._sums = [torch.tensor(row) for row in saved["sums"]]
        self._tokens, self._padding, self._cells = saved["tokens"], saved["padding"], saved["cells"]

    def add(self, loss: Tensor, likelihood: Tensor, tokens: int, norm: Tensor, batches: list[Batch]) -> None:
        self._sums.append(torch.stack((loss, likelihood, norm)))
        self._tokens += tokens
        for batch in batches:
            padding, cells = batch.padding
            self._padding += padding
            self._cells += cells

    def close(self, *, epoch: int, rate: float, seconds: float) -> dict[str, float]:
        """The means, loss and perplexity per target token. The window is used up."""
        loss, likelihood, norm = torch.stack(self._sums).cpu().double().sum(dim=0).tolist()
        return {
            "epoch": epoch,
            "loss": loss / self._tokens,
            "perplexity": math.exp(min(likelihood / self._tokens, 700.0)),
            "learning_rate": rate,
            "gradient_norm": norm / len(self._sums),
            "tokens_per_second": self._tokens / max(time.monotonic() - self._started, 1e-9),
            "padding": self._padding / self._cells,
            "seconds": seconds,
        }

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps, so that a resumed run logs the same lines; plain numbers, exact as JSON."""
        return {
            "sums": [row.tolist() for row in self._sums],
            "tokens": self._tokens,
            "padding": self._padding,
            "cells": self._cells,
            "seconds": time.monotonic() - self._started,
        }
