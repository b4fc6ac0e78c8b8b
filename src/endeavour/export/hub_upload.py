"""An exported folder as a model repository of the Hugging Face Hub. The token comes from HF_TOKEN alone.

Knows a folder and the name of a repository; not what is in it.
"""

import os
import re
from pathlib import Path

from endeavour.data import hub
from endeavour.errors import UserError, first_line

TOKEN = "HF_TOKEN"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")


def check_upload(repository: str) -> None:
    """Raises `UserError` for a name that no repository has, and where there is no token."""
    if not _NAME.fullmatch(repository):
        raise UserError(f"push={repository} is not the name of a repository: push=OWNER/NAME")
    _token()


def upload(folder: Path, repository: str) -> str:
    """Uploads all files in one commit; a repository that is not there yet is made, and is private.

    Returns:
        The address of the commit.

    Raises:
        UserError: the hub cannot be reached, or refuses; the folder stays as it is.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.utils import disable_progress_bars

    disable_progress_bars()
    endpoint = hub.endpoint()
    api = HfApi(endpoint=endpoint, token=_token())
    try:
        api.create_repo(repository, private=True, exist_ok=True)
        commit = api.upload_folder(
            repo_id=repository, folder_path=folder, commit_message="Export by endeavour"
        )
    # The transport's errors belong to whichever HTTP library this version of the client uses.
    except Exception as error:
        status = getattr(getattr(error, "response", None), "status_code", None)
        refused = status in (401, 403)
        remedy = (
            f"{TOKEN} must hold a token that may write there" if refused else "the same command tries again"
        )
        reason = f"HTTP {status}" if status else first_line(error)
        raise UserError(
            f"push={repository}: cannot upload to {endpoint} ({reason}); {folder} is complete\n{remedy}"
        ) from error
    return commit.commit_url


def _token() -> str:
    token = os.environ.get(TOKEN)
    if not token:
        raise UserError(f"push=… needs a token of the hub that may write: set {TOKEN} in the environment")
    return token
