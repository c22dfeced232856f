"""Files count for quotas of bytes: an upload as far as it has come, and then the file that was stored."""

from __future__ import annotations

from collections.abc import Callable

from apiserver.files.room import Taken
from apiserver.rpc.errors import ApiError
from apiserver.services.quotas.amounts import Amounts, Share
from apiserver.services.quotas.subjects import Held, Subject
from apiserver.stores.files.disk import Former


class Upload(Taken):
    """The room that a file takes from everybody whose quota it counts for."""

    def __init__(self, amounts: Amounts, company: str, bounds: Held, counts: Held, refused: Callable[[Subject], None]):
        """`bounds`: whoever needs to have room. `counts`: those of them for whom the file counts."""
        self._amounts = amounts
        self._company = company
        self._bounds = bounds
        self._counts = counts
        self._refused = refused
        self._bytes = 0

    def check(self, bytes: int) -> None:
        """507 if there is no room for so many bytes."""
        for subject, quota in self._bounds:
            for share in self._amounts.shares(subject, quota):
                used = share.used if (subject, quota) in self._counts else share.used + self._bytes
                if share.what == "bytes" and used + bytes > share.bound:
                    self._refused(subject)
                    raise ApiError(507, 0, f"The file was not stored: {over(share)}")

    def take(self, bytes: int) -> None:
        """Count more bytes that came. 507 if there is no room for them."""
        self.check(bytes)
        self._come(bytes)

    def stored(self, former: Former | None) -> None:
        """Count the file, in place of the one that it replaced."""
        bytes = self._bytes
        self._come(-bytes)
        gone = self._amounts.gone(self._company, former)
        for subject, quota in self._counts:
            self._amounts.add(subject, quota, bytes=bytes - gone)

    def __exit__(self, *error: object) -> None:
        """What was not stored counts no more."""
        self._come(-self._bytes)

    def _come(self, bytes: int) -> None:
        self._bytes += bytes
        for subject, _ in self._counts:
            self._amounts.comes(subject, bytes)


def over(share: Share) -> str:
    """Says who is over which quota."""
    return f"Over quota: {share.subject} may have {share.bound:,} {share.what}, and has {share.used:,}"
