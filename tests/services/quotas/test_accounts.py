"""Accounts: which there are, and which are remembered."""

from __future__ import annotations

import pytest

from apiserver.events.model import Owner
from apiserver.services.quotas.accounts import Account, Accounts, shown
from apiserver.settings.values import Quota

COMPANY = "c"


def account_of(accounts: Accounts, task: str, **document: str) -> Account:
    """The account of a task."""
    return next(one for one in accounts.sender(Owner(COMPANY, task), document).accounts if one.subject.of == "task")


def test_an_owner_has_the_same_accounts_each_time_and_others_after_it_was_moved() -> None:
    accounts = Accounts([Quota("task", bytes=1), Quota("project", "p", series=1), Quota("project", bytes=1)])
    owner, document = Owner(COMPANY, "t"), {"project": "p", "user": "u"}
    first = accounts.sender(owner, document)
    assert [(str(one.subject), one.quota.series) for one in first.accounts] == [("task t", 0), ("project p", 1)]
    assert first.has_bound_of_series
    for same in (document, {**document, "name": "renamed"}):
        assert accounts.sender(owner, same) is first
    for other in ({**document, "project": "q"}, {**document, "user": "v"}):
        assert accounts.sender(owner, other) is not first
    moved = accounts.sender(owner, {"project": "q", "user": "u"})
    assert moved.accounts[0] is first.accounts[0]
    assert (str(moved.accounts[1].subject), moved.accounts[1].quota.bytes) == ("project q", 1)
    assert not moved.has_bound_of_series


def test_what_is_far_below_a_bound_is_so_also_while_files_come_and_a_sum_is_made() -> None:
    sender = Accounts([Quota("task", bytes=1000)]).sender(Owner(COMPANY, "t"), {})
    (account,) = sender.accounts
    account.set_near_from()
    assert not sender.count_if_far(1, 800, 0.0)
    assert sender.count_if_far(1, 300, 0.0)
    account.begin_sum()
    assert not sender.count_if_far(1, 500, 0.0)
    account.come(200)
    assert not sender.count_if_far(1, 300, 0.0)
    assert sender.count_if_far(1, 299, 0.0)
    account.come(-200)
    assert sender.count_if_far(1, 200, 0.0)
    assert account.bytes == 799


@pytest.mark.test
def test_many_accounts_take_a_bounded_room_and_those_with_most_are_remembered() -> None:
    accounts = Accounts([Quota("task", bytes=1000, events_per_second=10)], most=1000)
    full, in_debt = account_of(accounts, "full"), account_of(accounts, "in debt")
    full.added_bytes = 900
    assert in_debt.bucket is not None
    in_debt.bucket.full_at = float("inf")
    for number in range(20_000):
        account_of(accounts, str(number)).added_bytes = 1
        assert len(accounts.of_company(COMPANY)) <= 1000
    assert account_of(accounts, "full") is full
    assert account_of(accounts, "in debt") is in_debt
    assert account_of(accounts, "0").bytes == 0


def test_an_account_that_was_made_while_a_sum_was_gets_what_the_sum_found() -> None:
    accounts = Accounts([Quota("task", bytes=1000)])
    made = account_of(accounts, "t")
    made.added_bytes = 5
    accounts.take_over(COMPANY, [Account(made.subject, made.quota, summed_bytes=100)])
    assert account_of(accounts, "t") is made
    assert made.bytes == 105


def test_a_sum_fills_accounts_up_to_a_bound() -> None:
    accounts = Accounts([Quota("task", bytes=1000)], most=100)
    known = account_of(accounts, "known")
    (quota,) = {known.quota}
    found = [Account(known.subject._replace(id=str(n)), quota, summed_bytes=1000 - n) for n in range(500)]
    accounts.take_over(COMPANY, found)
    assert len(accounts.of_company(COMPANY)) == 90
    assert account_of(accounts, "0").bytes == 1000
    assert account_of(accounts, "known") is known
    accounts.take_over(COMPANY, [*found, Account(known.subject, quota, summed_bytes=7)])
    assert known.bytes == 7


def test_a_name_is_shown_in_one_line_and_not_long() -> None:
    assert shown("a\nWARNING b\x1b[1m\u202e") == "a WARNING b [1m "
    assert shown("ä" * 5000) == "ä" * 80 + "…"
