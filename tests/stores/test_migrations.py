"""The runner of migrations, on an engine that is but a dictionary."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from apiserver.stores.migrations import SchemaError, Step, migrate, pending, require, steps_of

pytestmark = pytest.mark.anyio

STEPS = [Step(1, "0001_first", {"a": 1}), Step(2, "0002_second", {"b": 2})]


class Engine:
    """A schema of fields; `broken` makes applying step 2 fail."""

    name = "The engine"

    def __init__(self, *, broken: bool = False) -> None:
        self.fields: dict[str, int] = {}
        self.records: list[int] = []
        self.broken = broken

    async def applied(self) -> dict[int, str]:
        return dict.fromkeys(self.records, "9.8.7")

    async def apply(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if self.broken and step.number == 2:
                raise RuntimeError("broken")
            self.fields |= step.content

    async def record(self, steps: Sequence[Step]) -> None:
        self.records += [step.number for step in steps]

    async def problems(self, steps: Sequence[Step]) -> list[str]:
        wanted = {name for step in steps for name in step.content}
        return [f"there is no field '{name}'" for name in sorted(wanted - self.fields.keys())]


async def test_steps_are_applied_once_and_in_order() -> None:
    engine = Engine()
    assert await pending(engine, STEPS) == STEPS
    assert await migrate(engine, STEPS) == STEPS
    assert (engine.fields, engine.records) == ({"a": 1, "b": 2}, [1, 2])
    assert await migrate(engine, STEPS) == []
    await require(engine, STEPS, migrating=False)


async def test_what_was_interrupted_goes_on() -> None:
    engine = Engine(broken=True)
    with pytest.raises(RuntimeError):
        await migrate(engine, STEPS)
    assert engine.records == []
    engine.broken = False
    assert await migrate(engine, STEPS) == STEPS
    assert (engine.fields, engine.records) == ({"a": 1, "b": 2}, [1, 2])


async def test_steps_after_one_that_is_not_recorded_are_applied_again() -> None:
    """A server was killed while it recorded them. What an early step changes, the later ones change further."""
    engine = Engine()
    engine.records = [2]
    assert await pending(engine, STEPS) == STEPS
    engine.records = [1]
    assert await pending(engine, STEPS) == STEPS[1:]


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([], "The engine has no schema yet: run `apiserver migrate`"),
        ([1], "The engine has schema 1 of 2: run `apiserver migrate`"),
        ([1, 2, 3], "The engine has schema 3, made by a newer version of apiserver (9.8.7); this one knows up to 2"),
        ([1, 2], "The engine is not as it must be: there is no field 'a'; there is no field 'b'"),
    ],
)
async def test_another_schema_is_refused_and_says_what_to_do(records: list[int], message: str) -> None:
    engine = Engine()
    engine.records = records
    with pytest.raises(SchemaError) as caught:
        await require(engine, STEPS, migrating=False)
    assert str(caught.value).startswith(message)
    assert engine.fields == {}


async def test_a_newer_schema_is_not_migrated_either() -> None:
    engine = Engine()
    engine.records = [1, 2, 3]
    with pytest.raises(SchemaError, match="newer"):
        await require(engine, STEPS, migrating=True)
    assert engine.fields == {}


@pytest.mark.parametrize("looks", [3, 1000])
async def test_a_schema_that_another_server_migrates_is_looked_at_again(
    looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another server applies step 1 late, and then the others: for some looks, their fields are missing."""
    engine = Engine()
    await migrate(engine, STEPS)
    seen = iter([["there is no field 'b'"]] * looks)

    async def problems(steps: Sequence[Step]) -> list[str]:
        return next(seen, [])

    monkeypatch.setattr(engine, "problems", problems)
    if looks == 3:
        await require(engine, STEPS, migrating=True, pause=0)
    else:
        with pytest.raises(SchemaError, match="there is no field 'b'"):
            await require(engine, STEPS, migrating=True, pause=0)


async def test_a_schema_that_is_as_it_must_be_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look takes an engine many requests."""
    engine, looks = Engine(), 0
    await migrate(engine, STEPS)
    real = engine.problems

    async def problems(steps: Sequence[Step]) -> list[str]:
        nonlocal looks
        looks += 1
        return await real(steps)

    monkeypatch.setattr(engine, "problems", problems)
    await require(engine, STEPS, migrating=True)
    assert looks == 1


async def test_what_somebody_took_away_is_made_again() -> None:
    engine = Engine()
    engine.records = [1, 2]
    assert await migrate(engine, STEPS) == STEPS
    assert await engine.problems(STEPS) == []


@pytest.mark.parametrize("engine", ["elasticsearch", "mongo"])
def test_the_steps_of_an_engine_are_numbered_without_gaps(engine: str) -> None:
    steps = steps_of(engine)
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))
