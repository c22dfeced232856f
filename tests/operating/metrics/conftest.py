"""The fixtures of tests of data."""

from tests.data.conftest import data, data_anywhere

__all__ = ["data", "data_anywhere"]
