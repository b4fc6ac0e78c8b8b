"""The metric log loses no line but those that it is asked to drop."""

from pathlib import Path

import pytest

from configs import run_config
from endeavour.errors import RunError
from endeavour.runs.config import save_config
from endeavour.training.log import MetricLog


def killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_cutting_drops_later_lines_and_one_that_is_torn(tmp_path: Path) -> None:
    log = MetricLog(tmp_path / "log.jsonl")
    log.cut_after(3)
    assert not (tmp_path / "log.jsonl").exists()
    for update in range(1, 6):
        log.write("train", update, {"loss": update / 2})
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write('{"kind": "tr')
    log.cut_after(3)
    assert [line["update"] for line in log.read()] == [1, 2, 3]
    assert (tmp_path / "log.jsonl").read_text().count("\n") == 3


def test_damaged_lines_are_left_out_and_the_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = MetricLog(path)
    for update in range(1, 6):
        log.write("train", update, {"loss": 0.5})
    lines = path.read_bytes().split(b"\n")
    lines[1] = lines[1][:5] + b"\xff" + lines[1][6:]
    lines[2] = lines[2].replace(b'"update"', b'"updbte"')
    lines[3] = b"[]"
    path.write_bytes(b"\n".join(lines))
    log.cut_after(9)
    assert [line["update"] for line in log.read()] == [1, 5]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_a_full_disk_is_named() -> None:
    with pytest.raises(RunError, match=r"/dev/full .*\n.*resumes"):
        MetricLog(Path("/dev/full")).write("train", 1, {"loss": 0.5})


def test_a_kill_while_the_log_is_cut_or_the_config_saved_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = MetricLog(tmp_path / "log.jsonl")
    for update in range(1, 6):
        log.write("train", update, {"loss": 0.5})
    (tmp_path / "config.yaml").write_text("name: old")
    config = run_config([])
    monkeypatch.setattr("os.fsync", killed)
    with pytest.raises(KeyboardInterrupt):
        log.cut_after(3)
    with pytest.raises(KeyboardInterrupt):
        save_config(config, tmp_path / "config.yaml")
    assert len(log.read()) == 5
    assert (tmp_path / "config.yaml").read_text() == "name: old"
