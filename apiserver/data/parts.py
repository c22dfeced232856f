"""The parts of a server that addresses of data use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from fastapi import FastAPI

from apiserver.data.exports import Exports
from apiserver.data.links import DataLinks
from apiserver.rpc.admission import Admission
from apiserver.services.backend import Backend


@dataclass(frozen=True, slots=True)
class DataParts:
    """What answers below `/data` are made of."""

    backend: Backend
    admission: Admission
    """Who reads when."""
    exports: Exports
    links: DataLinks
    validate_tasks: Callable[[dict[str, Any]], dict[str, Any]]
    """Checks a request to tasks.get_all, whose filters the parameter `where` has."""

    def put_into(self, app: FastAPI) -> None:
        """Let the addresses of this app find the parts."""
        app.state.data_parts = self

    @classmethod
    def of(cls, app: FastAPI) -> DataParts:
        """The parts that were put into the app."""
        return cast(DataParts, app.state.data_parts)
