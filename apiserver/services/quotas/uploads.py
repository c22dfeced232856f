"""Files count for quotas of bytes: an upload as far as it has come, and then the file that was stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from apiserver.common.errors import Refusal, Why
from apiserver.fileserver.room import Taken
from apiserver.services.quotas.accounts import Account
from apiserver.services.quotas.amounts import Amounts
from apiserver.stores.files.disk import Former


class Upload(Taken):
    """The room that a file takes from everybody whose quota it counts for."""

    def __init__(
        self,
        amounts: Amounts,
        company: str,
        accounts: Sequence[Account],
        growing: Sequence[Account],
        size: int,
        refused: Callable[[Account, str], None],
    ):
        """`growing`: the accounts that have the bytes while they come; all `accounts` have the complete file.

        `size` is what the request says of the length of the file and of all that follows it, and 0 if it says nothing.
        `refused` is told whose quota has no room, and what is said of it.
        """
        self._amounts = amounts
        self._company = company
        self._accounts = accounts
        self._growing = growing
        self._size = size
        self._refused = refused
        self._bytes = 0

    def check(self, bytes: int) -> None:
        """Raises Refusal(NO_ROOM) if there is no room for so many bytes."""
        for account in self._accounts:
            bound, others = account.quota.bytes, account.bytes
            if account in self._growing:
                others -= self._bytes  # the account has those that came
            if others + self._bytes + bytes > bound:
                length = f"{self._size:,}" if self._size else f"at least {self._bytes + bytes:,}"
                left = f"{account} may have {bound:,} bytes, of which {max(bound - others, 0):,} are left"
                reason = f"{left}, and the upload has {length}"
                self._refused(account, reason)
                raise Refusal(Why.NO_ROOM, f"The file was not stored: Over quota: {reason}")

    def take(self, bytes: int) -> None:
        """Count more bytes that came. Raises Refusal(NO_ROOM) if there is no room for them."""
        self.check(bytes)
        self._come(bytes)

    def complete(self) -> None:
        """Count the file for all. Raises Refusal(NO_ROOM) if others have taken the room while it came."""
        self.check(0)
        for account in self._accounts:
            if account not in self._growing:
                account.come(self._bytes)
        self._growing = self._accounts

    def stored(self, former: Former | None) -> None:
        """Count the file, in place of the one that it replaced."""
        bytes = self._bytes
        self._come(-bytes)
        freed = self._amounts.freed(self._company, former)
        self._amounts.add(self._accounts, bytes=bytes - freed)

    def __exit__(self, *error: object) -> None:
        """Count no more the bytes that were not stored."""
        self._come(-self._bytes)

    def _come(self, bytes: int) -> None:
        self._bytes += bytes
        for account in self._growing:
            account.come(bytes)
