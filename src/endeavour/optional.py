"""Packages that not every command needs: imported when they are used, and named where they are missing."""

from importlib import import_module
from typing import Any

from endeavour.errors import UserError


def require(package: str, extra: str = "export") -> Any:
    """The module of that name. Raises `UserError`, saying what to install, if it is missing."""
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        top = package.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != top:
            raise  # it is installed, but something that it needs is not
        raise UserError(
            f"{top} is not installed: `pip install -e '.[{extra}]'` in endeavour's folder brings it"
        ) from error
