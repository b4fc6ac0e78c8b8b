"""An exported folder on the hub: all its files, in a private repository, with the token of the environment alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from endeavour.errors import UserError
from endeavour.export.hub_upload import check_upload, upload
from hub_writes import WritableHub
from local_server import silent_port

TOKEN = "hf_" + "Ab3" * 11


@pytest.fixture(autouse=True)
def online(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[WritableHub]:
    with WritableHub() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "target").mkdir()
    (tmp_path / "README.md").write_text("# A model\n", "utf-8")
    (tmp_path / "target" / "tokenizer.json").write_bytes(bytes(range(256)))
    return tmp_path


def test_every_file_arrives_in_a_private_repository(hub: WritableHub, folder: Path) -> None:
    address = upload(folder, "someone/model")
    assert address == f"{hub.url}/someone/model/commit/0123"
    assert hub.files == {"README.md": b"# A model\n", "target/tokenizer.json": bytes(range(256))}
    (created,) = hub.created
    assert (created["organization"], created["name"]) == ("someone", "model")
    assert created.get("private") or created.get("visibility") == "private"
    assert hub.tokens == {f"Bearer {TOKEN}"}


def test_a_refusal_says_what_the_token_must_do_and_does_not_show_it(hub: WritableHub, folder: Path) -> None:
    hub.status = 403
    with pytest.raises(UserError, match=r"push=someone/model: .*HTTP 403") as refused:
        upload(folder, "someone/model")
    assert "HF_TOKEN" in str(refused.value)
    assert TOKEN not in str(refused.value)


def test_without_a_hub_the_folder_is_said_to_be_complete(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with silent_port() as port:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{port}")
        with pytest.raises(UserError, match="is complete"):
            upload(folder, "someone/model")


@pytest.mark.parametrize("name", ["model", "a/b/c", "../model", "someone/", "some one/model"])
def test_what_is_no_name_of_a_repository_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="push=OWNER/NAME"):
        check_upload(name)


def test_a_missing_token_is_asked_for_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    check_upload("someone/model")
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(UserError, match="set HF_TOKEN"):
        check_upload("someone/model")
