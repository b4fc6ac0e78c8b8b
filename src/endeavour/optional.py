"""Packages that not every command needs: imported when they are used, and named where they are missing."""

import sys
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
        remedy = f"`pip install {top}`, or `pip install -e '.[{extra}]'` in endeavour's folder, brings it"
        if top == "eldc" and sys.version_info >= (3, 14):
            # There is no wheel yet, so the extra leaves it out.
            remedy = "`pip install eldc` compiles it, with a C compiler and Python's headers"
        raise UserError(f"{top} is not installed: {remedy}") from error
