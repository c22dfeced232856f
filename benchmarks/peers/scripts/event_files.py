"""Runs in the peers' environment: writes event files, starts TensorBoard's data server on them, reads by gRPC.

`python event_files.py JSON`, where JSON has folder, points (of each of ten series) and runs; prints figures as JSON.
"""

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import grpc
import tensorboard_data_server
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.data.proto import data_provider_pb2 as messages
from tensorboard.data.proto import data_provider_pb2_grpc as services
from tensorboard.summary.writer.event_file_writer import EventFileWriter

SERIES = 10
SMALL = 10
MOST_SAMPLES = 6000


def event(number: int, tag: str) -> event_pb2.Event:
    """A scalar as TensorBoard's writers for PyTorch make it."""
    value = summary_pb2.Summary.Value(tag=tag, simple_value=1 / (number + 1))
    return event_pb2.Event(
        wall_time=1_700_000_000 + number / 1000, step=number, summary=summary_pb2.Summary(value=[value])
    )


def write(folder: str, points: int) -> dict[str, float]:
    """Write the series into one event file."""
    writer = EventFileWriter(folder)
    started, used = time.perf_counter(), time.process_time()
    for number in range(points):
        for series in range(SERIES):
            writer.add_event(event(number, f"metric {series}"))
    writer.flush()
    events = points * SERIES
    rate, cpu = events / (time.perf_counter() - started), (time.process_time() - used) / events * 1e9
    writer.close()
    size = sum(path.stat().st_size for path in Path(folder).iterdir())
    return {"write_rate": rate, "write_cpu_ns": cpu, "bytes_a_point": size / events}


def small(folder: str, runs: int) -> dict[str, float]:
    """Milliseconds until ten events are in the file."""
    writer, taken = EventFileWriter(folder), []
    for run in range(runs * 10):
        started = time.perf_counter()
        for number in range(SMALL):
            writer.add_event(event(run * SMALL + number, "small"))
        writer.flush()
        taken.append((time.perf_counter() - started) * 1000)
    writer.close()
    return {"small_ms": statistics.median(taken)}


def cpu_seconds(pid: int) -> float:
    """CPU time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def memory_mb(pid: int) -> float:
    """Resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


def loaded(stub: services.TensorBoardDataProviderStub, last: int) -> bool:
    """Whether every series is there up to its last step."""
    request = messages.ListScalarsRequest(experiment_id="")
    request.plugin_filter.plugin_name = "scalars"
    tags = [tag for run in stub.ListScalars(request).runs for tag in run.tags]
    return len(tags) == SERIES and all(tag.metadata.max_step == last for tag in tags)


def read(stub: services.TensorBoardDataProviderStub, samples: int) -> None:
    """Read all series, downsampled."""
    request = messages.ReadScalarsRequest(experiment_id="")
    request.plugin_filter.plugin_name = "scalars"
    request.downsample.num_points = samples
    answer = stub.ReadScalars(request)
    assert sum(len(tag.data.step) for run in answer.runs for tag in run.tags)


def serve(folder: str, points: int, runs: int) -> dict[str, float]:
    """Start the server, wait until it has read the file, read from it."""
    port_file = Path(folder).with_name("port")
    kept = f"scalars={MOST_SAMPLES}"
    command = [tensorboard_data_server.server_binary(), "--logdir", folder, "--host", "127.0.0.1", "--port", "0"]
    started = time.perf_counter()
    server = subprocess.Popen([*command, "--port-file", str(port_file), "--samples-per-plugin", kept])
    try:
        while not (port_file.exists() and port_file.read_text().endswith("\n")):
            time.sleep(0.002)
        channel = grpc.insecure_channel(
            f"127.0.0.1:{port_file.read_text().strip()}", [("grpc.max_receive_message_length", -1)]
        )
        stub = services.TensorBoardDataProviderStub(channel)
        grpc.channel_ready_future(channel).result(timeout=30)
        found = {"start_ms": (time.perf_counter() - started) * 1000}
        while not loaded(stub, points - 1):
            time.sleep(0.002)
        events = points * SERIES
        found["load_rate"] = events / (time.perf_counter() - started)
        found["load_cpu_ns"] = cpu_seconds(server.pid) / events * 1e9
        for samples in (100, 2000, 6000):
            taken = []
            for _ in range(runs + 1):
                before = time.perf_counter()
                read(stub, samples)
                taken.append((time.perf_counter() - before) * 1000)
            found[f"read_{samples}_ms"] = statistics.median(taken[1:])
        found["memory_mb"] = memory_mb(server.pid)
        return found
    finally:
        server.kill()
        server.wait()


def main() -> None:
    """Measure, and print the figures."""
    wanted = json.loads(sys.argv[1])
    folder, points, runs = f"{wanted['folder']}/events", wanted["points"], wanted["runs"]
    found = write(folder, points)
    found |= serve(folder, points, runs)
    found |= small(f"{wanted['folder']}/small", runs)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
