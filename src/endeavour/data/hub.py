"""Downloads plain files of a dataset repository from the Hugging Face Hub, verified, and fails soon and clearly.

The hub's own client transfers the files and keeps the cache. Runs no repository code. Knows nothing of what the files
hold.
"""

import errno
import os
import re
import time
from pathlib import Path

from endeavour.errors import UserError, first_line
from endeavour.progress import Report
from endeavour.storage import file_digest

# Seconds before each further attempt. `hf_hub_download` and `snapshot_download` have retries of their own, but those
# take half a minute where there is no network at all; so the first request is made here, without them.
_WAITS = (0.5, 1.0)
TIMEOUT = 5.0  # seconds that the hub may be silent
# Seconds after which no further attempt begins: an unreachable name server can take that long.
_PATIENCE = 8.0
_WITHOUT_NETWORK = (
    "corpus=textbook and corpus=files need no network, and corpus.path=FOLDER reads a local copy of the files"
)
_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS)


def endpoint() -> str:
    """The address of the hub, read now; the client itself reads it only when it is imported."""
    from huggingface_hub import constants

    return os.environ.get("HF_ENDPOINT", constants.ENDPOINT).rstrip("/")


def fetch(
    repository: str,
    revision: str,
    name: str,
    *,
    corpus: str,
    progress: Report,
) -> Path:
    """The local path of a file of a dataset repository at a commit, downloaded if the cache lacks it.

    Args:
        revision: a full commit hash; a file once in the cache is then never asked for again.
        corpus: the name to use in messages.
        progress: called as (what, 0, 1) before the file.

    Raises:
        UserError: the hub cannot be reached, has no such file, or keeps sending damaged ones.
    """
    # Imported here: a prepare with nothing to download should not wait for it.
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.utils import disable_progress_bars

    disable_progress_bars()  # the caller reports progress, and two bars would overwrite each other
    try:
        cached = try_to_load_from_cache(repository, name, revision=revision, repo_type="dataset")
    except ValueError as error:  # a name that no repository or file can have
        raise UserError(
            f"corpus {corpus}: the hub has no {name} of {repository} ({first_line(error)}); check "
            "corpus.repository and corpus.splits, or read your own files with corpus=files or corpus.path=FOLDER"
        ) from error
    if isinstance(cached, str):
        return Path(cached)
    progress(f"download {name} of {repository}", 0, 1)
    address = endpoint()
    begin = time.monotonic()
    for wait in (*_WAITS, None):
        try:
            return _download(repository, revision, name, endpoint=address)
        # The transport's errors belong to whichever HTTP library this version of the client uses.
        except Exception as error:
            explained = _explain_permanent(error)
            if explained is None and wait is not None and time.monotonic() - begin < _PATIENCE:
                time.sleep(wait)
                continue
            reason, remedy = explained or (first_line(error), _WITHOUT_NETWORK)
            raise UserError(
                f"corpus {corpus}: cannot download {name} of {repository} at revision {revision[:12]} from {address} "
                f"({reason}); {remedy}"
            ) from error
    raise AssertionError("the last attempt returns or raises")


def _explain_permanent(error: Exception) -> tuple[str, str] | None:
    """Reason and remedy of an error that another attempt would not mend; None for all others."""
    from huggingface_hub.errors import OfflineModeIsEnabled

    if isinstance(error, OfflineModeIsEnabled):
        return "it is not in the cache, and HF_HUB_OFFLINE is set", _WITHOUT_NETWORK
    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(status, int) and status < 500 and status not in (408, 429):
        check = "check corpus.repository, corpus.revision and corpus.splits"
        return f"HTTP {status}", f"{check}. {_WITHOUT_NETWORK}"
    if isinstance(error, OSError) and error.errno in _DISK_ERRORS:
        return first_line(error), "HF_HOME=FOLDER moves the hub's cache"
    return None


def _download(repository: str, revision: str, name: str, *, endpoint: str) -> Path:
    """One attempt: ask for the file's hash, download it, compare. The client itself compares the sizes alone."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
    from huggingface_hub.utils.sha import git_hash

    url = hf_hub_url(repository, name, repo_type="dataset", revision=revision, endpoint=endpoint)
    tag = get_hf_file_metadata(url, timeout=TIMEOUT).etag or ""
    path = Path(
        hf_hub_download(
            repository,
            name,
            repo_type="dataset",
            revision=revision,
            endpoint=endpoint,
            etag_timeout=TIMEOUT,
        )
    )
    # The hub's entity tag is the SHA-256 of a large file and the Git blob hash of a small one; a mirror may use others.
    if re.fullmatch(r"[0-9a-f]{64}", tag):
        intact = file_digest(path) == tag
    else:
        intact = not re.fullmatch(r"[0-9a-f]{40}", tag) or git_hash(path.read_bytes()) == tag
    if not intact:
        path.resolve().unlink()
        path.unlink(missing_ok=True)
        raise OSError("the downloaded file is damaged: its content does not match its hash")
    return path
