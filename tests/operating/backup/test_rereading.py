"""What was damaged at the destination is found by reading it again, a little at a time, and copied anew."""

from __future__ import annotations

import asyncio
import io
import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from apiserver import cli
from apiserver.operating.backup import command, manifest, pieces
from apiserver.operating.backup.bounds import BackupBounds
from apiserver.operating.backup.check_schedule import ScheduledChecks
from apiserver.operating.backup.checking import REMEMBERED_ADVICE, check
from apiserver.operating.backup.folder import Folder
from apiserver.operating.backup.forgetting import forget
from apiserver.operating.backup.progress import Progress
from apiserver.operating.backup.rereading import State, look_again, read_on, read_state
from apiserver.operating.backup.schedule import ScheduledBackups
from apiserver.operating.backup.storage import BackupError
from apiserver.settings.settings import Settings
from apiserver.stores.data_folder import DataFolder
from tests.harness import served, wait_until
from tests.operating.backup.conftest import backed_up, quiet
from tests.operating.backup.test_schedule import number

#: Hours in which everything is to be read.
HOURS = 1e-6


@pytest.fixture
def destination(data: Path, tmp_path: Path) -> Path:
    """A folder with a backup of `data`, in many pieces."""
    backed_up(data, tmp_path / "backups", piece_bytes=2**17)
    return tmp_path / "backups"


@pytest.fixture
def noted(data: Path) -> DataFolder:
    """The folder that remembers checks."""
    return DataFolder(data)


def flip(path: Path) -> None:
    """Change a bit of a block: the table of the piece stays as it was."""
    content = bytearray(path.read_bytes())
    content[len(pieces.MAGIC) + 3] ^= 1
    path.write_bytes(content)


def names_of(destination: Path) -> list[Path]:
    found = sorted((destination / "pieces").glob("*/*"))
    assert len(found) >= 5
    return found


class Watched(Folder):
    """Notes which pieces are read, and fails from the one on whose turn comes at `fails_at`."""

    def __init__(self, root: Path, fails_at: int = -1) -> None:
        super().__init__(root)
        self.read_pieces: list[str] = []
        self.fails_at = fails_at

    def stream(self, name: str) -> Iterator[bytes]:
        if name.startswith("pieces/"):
            if len(self.read_pieces) == self.fails_at:
                raise BackupError("the network is away")
            self.read_pieces.append(name.rpartition("/")[2])
        return super().stream(name)

    def sizes(self, folder: str) -> dict[str, int]:
        if folder != "pieces" and len(self.read_pieces) == self.fails_at:
            raise BackupError("the network is away")
        return super().sizes(folder)


def test_a_damaged_piece_is_found_and_the_next_backup_copies_anew_what_it_had(
    data: Path, destination: Path, noted: DataFolder
) -> None:
    folder = Folder(destination)
    (id,) = [manifest.id_of(name) for name in manifest.names(folder)]
    assert read_on(folder, noted, HOURS, quiet()).wrong == []
    path = names_of(destination)[2]
    flip(path)
    state = read_on(folder, noted, HOURS, quiet())
    assert state.wrong == [f"the piece {path.name} is damaged, which {id} needs"]
    assert read_state(noted, folder.address).suspects == [path.name]
    made = backed_up(data, destination).manifest
    assert made.copied > 0
    assert all(pieces.read(folder, piece.sha256) for piece in made.pieces)
    look_again(folder, noted, quiet())
    assert read_state(noted, folder.address).wrong in ([], state.wrong)  # the older backup may need the piece still
    forget(folder, 1)
    look_again(folder, noted, quiet())
    assert read_state(noted, folder.address).wrong == []
    assert check(folder, quiet()) == []


def test_a_backup_uses_a_suspect_that_is_well_and_not_one_that_is_damaged(
    data: Path, destination: Path, noted: DataFolder
) -> None:
    folder = Folder(destination)
    well, damaged, *_ = names_of(destination)
    flip(damaged)
    state = noted.backup_check(folder.address)
    state.parent.mkdir()
    state.write_text(f'{{"destination": "{folder.address}", "suspects": ["{well.name}", "{damaged.name}"]}}')
    used = [piece.sha256 for piece in backed_up(data, destination).manifest.pieces]
    assert well.name in used
    assert all(pieces.read(folder, sha256) for sha256 in used)


def test_what_is_wrong_is_told_in_a_line_each(data: Path, destination: Path, noted: DataFolder) -> None:
    folder = Folder(destination)
    backed_up(data, destination)
    missing, cut, *_ = names_of(destination)
    missing.unlink()
    cut.write_bytes(cut.read_bytes()[:-1])
    newest = manifest.names(folder)[-1]
    needs = f"which 2 backups need, the newest of them is {manifest.id_of(newest)}"
    expected = [f"the piece {cut.name} is damaged, {needs}", f"the piece {missing.name} is missing, {needs}"]
    assert read_on(folder, noted, HOURS, quiet()).wrong == expected
    (destination / newest).write_bytes(b"{}")
    lines = read_on(folder, noted, HOURS, quiet()).wrong
    assert f"the manifest {newest} is damaged" in lines[0]
    assert len(lines) == 3


def test_an_interrupted_reading_goes_on_where_it_was(destination: Path, noted: DataFolder) -> None:
    names = [path.name for path in names_of(destination)]
    flip(names_of(destination)[0])
    one = Watched(destination, fails_at=3)
    with pytest.raises(BackupError, match="the network is away"):
        read_on(one, noted, HOURS, quiet(), noted_every=0)
    assert read_state(noted, one.address).place == names[2]
    other = Watched(destination)
    state = read_on(other, noted, HOURS, quiet())
    assert other.read_pieces == [*names[3:], names[0]]  # the suspect once more
    assert state.pieces == len(names)
    assert len(state.wrong) == 1
    assert read_state(noted, other.address).place == ""
    assert read_state(noted, "another destination") == State("another destination")


def test_a_piece_that_could_not_be_read_for_a_moment_is_not_told(
    destination: Path, noted: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = names_of(destination)[1]
    real, failures = Folder.stream, [path.name]

    def stream(self: Folder, name: str) -> Iterator[bytes]:
        if name.endswith(tuple(failures)):
            failures.clear()
            raise BackupError(f"{name} cannot be read: Input/output error")
        return real(self, name)

    monkeypatch.setattr(Folder, "stream", stream)
    assert read_on(Folder(destination), noted, HOURS, quiet()).wrong == []
    assert failures == []


def test_a_piece_that_is_deleted_meanwhile_is_not_told_if_no_backup_needs_it(
    destination: Path, noted: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Watched(destination)
    stray = pieces.name_of("ff" * 32)
    folder.write(stray, b"of a backup that was killed")
    real = folder.sizes

    def sizes(name: str) -> dict[str, int]:
        found = real(name)
        folder.delete(stray)
        return found

    monkeypatch.setattr(folder, "sizes", sizes)
    state = read_on(folder, noted, HOURS, quiet())
    assert "ff" * 32 in folder.read_pieces
    assert (state.suspects, state.wrong) == ([], [])


def test_what_is_missing_of_a_backup_that_is_deleted_meanwhile_is_not_told(
    data: Path, destination: Path, noted: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    backed_up(data, destination)
    folder = Folder(destination)
    real, listed = folder.sizes, list[str]()

    def sizes(name: str) -> dict[str, int]:
        listed.append(name)
        if name == "pieces" and listed.count(name) == 2:  # manifests were read before
            for manifest_name in manifest.names(Folder(destination)):
                folder.delete(manifest_name)
            names_of(destination)[0].unlink()
        return real(name)

    monkeypatch.setattr(folder, "sizes", sizes)
    assert read_on(folder, noted, HOURS, quiet()).wrong == []
    assert listed.count("pieces") == 2


def test_a_destination_that_is_not_mounted_is_not_taken_for_one_that_is_well(
    destination: Path, noted: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flip(names_of(destination)[0])
    names = [path.name for path in names_of(destination)]
    found = read_on(Folder(destination), noted, HOURS, quiet()).wrong
    assert len(found) == 1
    folder, real = Watched(destination), Folder.stream

    def stream(self: Folder, name: str) -> Iterator[bytes]:
        if name.endswith(names[3]) and destination.exists():
            destination.rename(tmp_path / "not mounted")
        return real(self, name)

    monkeypatch.setattr(Folder, "stream", stream)
    for _ in range(2):  # it goes away, and is away
        with pytest.raises(BackupError, match=r"there is no backup at .* any more"):
            read_on(folder, noted, HOURS, quiet(), noted_every=0)
        state = read_state(noted, folder.address)
        assert (state.place, state.suspects, state.wrong) == (names[2], names[:1], found)
    monkeypatch.undo()
    (tmp_path / "not mounted").rename(destination)
    state = read_on(folder, noted, HOURS, quiet())
    assert (state.pieces, state.wrong) == (len(names), found)


def test_no_more_is_read_in_a_second_than_it_may() -> None:
    clock = [100.0]

    def sleep(seconds: float) -> None:
        clock[0] += seconds

    progress = Progress(io.StringIO(), share=0.5, clock=lambda: clock[0], sleep=sleep)
    progress.step("pieces", 300, rate=10)
    for seconds in (1, 8):  # of work for 100 bytes
        clock[0] += seconds
        progress.advance(100)
    assert clock[0] == 100 + 10 + 16
    progress.step("something else")
    progress.advance(100)
    assert clock[0] == 126


def test_rereading_suspects_rests_as_all_other_reading_does(
    data: Path, destination: Path, noted: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in names_of(destination)[:3]:
        flip(path)
    sizes = [path.stat().st_size for path in names_of(destination)]
    folder, rested = Folder(destination), list[int]()
    monkeypatch.setattr(Progress, "advance", lambda self, bytes: rested.append(bytes))
    read_on(folder, noted, HOURS, quiet())
    assert rested == [*sizes, *sizes[:3]]
    rested.clear()
    look_again(folder, noted, quiet())
    assert rested == sizes[:3]


def test_what_is_known_of_a_destination_stays_known_if_another_one_is_checked(
    data: Path, destination: Path, noted: DataFolder, tmp_path: Path
) -> None:
    flip(names_of(destination)[0])
    wrong = read_on(Folder(destination), noted, HOURS, quiet()).wrong
    backed_up(data, tmp_path / "others")
    assert read_on(Folder(tmp_path / "others"), noted, HOURS, quiet()).wrong == []
    assert read_state(noted, str(destination)).wrong == wrong != []
    assert read_state(noted, str(tmp_path / "others")).ended != ""


def test_the_command_reads_gently_and_remembers(
    data: Path,
    destination: Path,
    noted: DataFolder,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.nice", lambda _: 0)
    gently = ["backup", str(destination), "--data", str(data), "--check", "--gently"]
    assert cli.main(gently) == 0
    assert "all backups are well" in capsys.readouterr().out
    flip(names_of(destination)[0])
    assert cli.main(gently) == 1
    assert "is damaged, which" in (said := capsys.readouterr().err)
    assert said.endswith(f"\n{REMEMBERED_ADVICE}\n")
    assert read_state(noted, str(destination)).wrong != []
    assert cli.main(["backup", str(destination), "--data", str(data), "--fast", "--keep", "1"]) == 0
    assert read_state(noted, str(destination)).wrong == []
    assert cli.main([*gently[:-2], "--gently"]) == 2
    assert "--gently: it goes only with --check" in capsys.readouterr().err


def test_the_command_does_not_call_a_folder_well_that_has_no_backup(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.nice", lambda _: 0)
    assert cli.main(["backup", str(tmp_path / "nowhere"), "--data", str(data), "--check", "--gently"]) == 1
    said = capsys.readouterr()
    assert "well" not in said.out
    assert said.err.endswith(f"apiserver: there is no backup at {tmp_path / 'nowhere'}\n")


@pytest.mark.anyio
async def test_a_server_tells_what_it_finds_until_a_backup_mends_it_also_after_a_restart(
    data: Path, destination: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    flip(path := names_of(destination)[0])
    settings = Settings(data=data, backup_to=str(destination), backup_check_every=1, backup_every=1, backup_keep=1)
    checks = ScheduledChecks(settings)
    assert checks.report() == {"state": "ok", "ended": None, "findings": 0, "why": None}
    with caplog.at_level(logging.INFO):
        await checks.check_if_due()
    assert f"the piece {path.name} is damaged" in caplog.text
    assert "pieces were read; 1 finding" in caplog.text
    assert REMEMBERED_ADVICE in caplog.text
    clock = [now := time.time()]
    again, asked = ScheduledChecks(settings, clock=lambda: clock[0]), list[tuple[str, ...]]()
    real = command.run

    async def run(settings: Settings, *flags: str, ending: float) -> command.Ended:
        asked.append(flags)
        return await real(settings, *flags, ending=ending)

    monkeypatch.setattr(command, "run", run)
    await again.check_if_due()
    assert asked == []  # it is not due yet
    assert again.state == "damaged"
    assert again.report()["ended"] is not None
    assert again.gauges()["backup_check_findings"][1]() == 1
    clock[0] = now + 3601
    await ScheduledBackups(settings, clock=lambda: clock[0]).make_if_due()
    asked.clear()
    again._every = 7200.0
    await again.check_if_due()
    assert (asked, again.state) == ([], "ok")
    clock[0] = now + 3 * 7200
    assert again.state == "late"
    assert again.gauges()["backup_check_well"][1]() == 0
    await again.check_if_due()
    assert asked == [("--check", "--gently")]


@pytest.mark.anyio
async def test_a_server_stops_though_its_destination_holds_the_process(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that waits for a disk of the network cannot be killed."""
    waits = asyncio.Event()

    class Held:
        returncode = None

        def kill(self) -> None:
            pass

        async def wait(self) -> None:
            await asyncio.Event().wait()

        async def communicate(self) -> None:
            waits.set()
            await self.wait()

    async def started(*arguments: object, **options: object) -> Held:
        return Held()

    monkeypatch.setattr(asyncio, "create_subprocess_exec", started)
    checks = ScheduledChecks(Settings(data=data, backup_to=str(tmp_path / "backups")), BackupBounds(ending_seconds=0))
    checks.job.start()
    await waits.wait()
    async with asyncio.timeout(120):
        await checks.job.close()
    assert checks.report()["why"] is None


@pytest.mark.anyio
async def test_a_check_that_fails_is_told_and_tried_again_later(data: Path, tmp_path: Path) -> None:
    (tmp_path / "backups").write_text("this is no folder")
    checks = ScheduledChecks(Settings(data=data, backup_to=str(tmp_path / "backups")))
    with pytest.raises(BackupError, match="cannot be listed"):
        await checks.check_if_due()
    assert checks.state == "failed"
    assert checks.report()["why"] == "the destination cannot be listed: Not a directory"
    await checks.check_if_due()  # too soon
    (tmp_path / "backups").unlink()
    checks._attempts._next = 0
    await checks.check_if_due()
    assert checks.state == "ok"
    assert checks.report()["ended"] is not None


def test_health_and_metrics_tell_of_checks(tmp_path: Path) -> None:
    with served(tmp_path / "data", backup_to=str(tmp_path / "backups")) as server, server.client() as client:
        wait_until(lambda: client.get("/health").json()["backup_check"]["ended"] is not None)
        assert client.get("/health").json()["backup_check"]["state"] == "ok"
        assert number(server, "apiserver_backup_check_findings") == 0
        assert number(server, "apiserver_backup_check_ended_seconds") > 0
        assert number(server, "apiserver_backup_check_well") == 1
    others = str(tmp_path / "others")
    with served(tmp_path / "other", backup_to=others, backup_check_every=0) as server, server.client() as client:
        assert "backup_check" not in client.get("/health").json()
