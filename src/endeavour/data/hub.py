"""Fetching plain files of a dataset repository from the Hugging Face Hub, verified; failing soon and clearly.

The hub's own client does the transfers and keeps the cache; this module decides when to try again and what to
tell the user. Runs no repository code. Knows nothing of what the files hold.
"""

import errno
import hashlib
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

from endeavour.errors import UserError

# Seconds to wait before each further attempt. The client's own retries take half a minute where there is no
# network at all, so its first request is made by hand, without them.
_WAITS = (0.5, 1.0)
_TIMEOUT = 5.0
_PATIENCE = 8.0  # seconds after which no further attempt begins: a lost name server alone can take that long
_WITHOUT_NETWORK = (
    "corpus=textbook and corpus=files need no network, and corpus.path=FOLDER reads a local copy of the files"
)

# Failures of this machine's disk, which no other attempt mends.
_OUR_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS)


class _DamagedError(OSError):
    """What arrived is not what the server announced."""


def fetch(
    repository: str,
    revision: str,
    names: list[str],
    *,
    corpus: str,
    cache: Path | None,
    progress: Callable[[str, int, int | None], None] = lambda what, done, total: None,
) -> list[Path]:
    """The local paths of files of a dataset repository at a commit, downloaded where the cache lacks them.

    Args:
        revision: a full commit hash; a file once in the cache is then never asked for again.
        corpus: the name to use in messages.
        cache: the client's cache folder; None is its default.
        progress: called as (what, 0, 1) before each file.

    Raises:
        UserError: the hub cannot be reached, has no such file, or keeps sending damaged ones.
    """
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    shown = not are_progress_bars_disabled()
    disable_progress_bars()  # the caller reports progress, and two bars would fight for the terminal
    try:
        paths: list[Path] = []
        for name in names:
            progress(f"fetch {name} of {repository}", 0, 1)
            paths.append(_fetch_file(repository, revision, name, corpus=corpus, cache=cache))
        return paths
    finally:
        if shown:
            enable_progress_bars()


def _fetch_file(repository: str, revision: str, name: str, *, corpus: str, cache: Path | None) -> Path:
    # Imported here: a prepare with nothing to fetch should not pay for the import.
    from huggingface_hub import constants, try_to_load_from_cache
    from huggingface_hub.errors import OfflineModeIsEnabled

    try:
        cached = try_to_load_from_cache(
            repository, name, cache_dir=cache, revision=revision, repo_type="dataset"
        )
    except ValueError as error:  # of names that the hub could not have
        raise UserError(
            f"corpus {corpus}: the hub has no {name} of {repository} ({str(error).splitlines()[0]}); check "
            "corpus.repository and corpus.splits, or read own files by corpus=files or corpus.path=FOLDER"
        ) from error
    if isinstance(cached, str):
        return Path(cached)
    # Read at the time of the call; the client itself only looks when it is imported.
    endpoint = os.environ.get("HF_ENDPOINT", constants.ENDPOINT).rstrip("/")
    wanted = f"{name} of {repository} at revision {revision[:12]}"
    begin = time.monotonic()
    for wait in (*_WAITS, None):
        try:
            return _download(repository, revision, name, endpoint=endpoint, cache=cache)
        except OfflineModeIsEnabled as error:
            raise UserError(
                f"corpus {corpus} needs {wanted}, which is not in the cache, and HF_HUB_OFFLINE "
                f"forbids to fetch it; {_WITHOUT_NETWORK}"
            ) from error
        # The errors of the transport belong to whichever HTTP library this version of the client is built on.
        except Exception as error:
            status = getattr(getattr(error, "response", None), "status_code", None)
            if isinstance(status, int) and status < 500 and status not in (408, 429):
                raise UserError(
                    f"{endpoint} does not give out {wanted} for corpus {corpus} (HTTP {status}); check "
                    f"corpus.repository, corpus.revision and corpus.splits. {_WITHOUT_NETWORK}"
                ) from error
            if isinstance(error, OSError) and error.errno in _OUR_DISK:
                raise UserError(f"{wanted} cannot be stored in the hub's cache: {error}") from error
            if wait is None or time.monotonic() - begin > _PATIENCE:
                problem = (
                    "received a damaged file from" if isinstance(error, _DamagedError) else "could not reach"
                )
                reason = str(error).strip().split("\n")[0] or type(error).__name__
                raise UserError(
                    f"{problem} {endpoint} for corpus {corpus} ({wanted}: {reason}); {_WITHOUT_NETWORK}"
                ) from error
            time.sleep(wait)
    raise AssertionError("the last attempt returns or raises")


def _download(repository: str, revision: str, name: str, *, endpoint: str, cache: Path | None) -> Path:
    """One attempt: ask what the file should be, fetch it, compare."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url

    url = hf_hub_url(repository, name, repo_type="dataset", revision=revision, endpoint=endpoint)
    announced = get_hf_file_metadata(url, timeout=_TIMEOUT)
    try:
        path = Path(
            hf_hub_download(
                repository,
                name,
                repo_type="dataset",
                revision=revision,
                cache_dir=cache,
                endpoint=endpoint,
                etag_timeout=_TIMEOUT,
            )
        )
    except OSError as error:
        if "Consistency check failed" in str(error):
            raise _DamagedError("it ended before its announced size") from error
        raise
    problem = _difference(path, announced.size, announced.etag)
    if problem is not None:
        path.resolve().unlink()
        path.unlink(missing_ok=True)
        raise _DamagedError(problem)
    return path


def _difference(path: Path, size: int | None, etag: str | None) -> str | None:
    """How a file differs from what the server announced; None where it does not.

    The hub's entity tag is the SHA-256 of a large file and the Git blob hash of a small one.
    """
    actual = path.stat().st_size
    if size is not None and actual != size:
        return f"it has {actual} bytes instead of {size}"
    if etag is None or not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", etag):
        return None  # a mirror may use other tags
    digest = hashlib.sha256() if len(etag) == 64 else hashlib.sha1(b"blob %d\0" % actual)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return None if digest.hexdigest() == etag else "its content does not match its hash"
