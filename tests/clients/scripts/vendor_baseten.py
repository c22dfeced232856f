"""Baseten's own client: `vendor_baseten.py URL KEY PROJECT JOB` prints the answers to POST and GET, or the error."""

import json
import sys

from baseten.client import ManagementClient
from baseten.client.managementapi import (
    GetTrainingJobMetricsRequest,
    GetTrainingProjectsJobsMetricsParams,
    ResponseError,
)

url, key, project, job = sys.argv[1:]
client = ManagementClient(api_key="", base_url_override=url, headers={"Authorization": f"Api-Key {key}"})
place = {"training_project_id": project, "training_job_id": job}
try:
    posted = client.api.post_training_projects_jobs_metrics(
        **place, request=GetTrainingJobMetricsRequest(start_epoch_millis=None, end_epoch_millis=None)
    )
    got = client.api.get_training_projects_jobs_metrics(
        **place, params=GetTrainingProjectsJobsMetricsParams(step_seconds=60)
    )
    answer = {"posted": json.loads(posted.model_dump_json()), "got": json.loads(got.model_dump_json())}
except ResponseError as error:
    answer = {"status": error.status_code, "body": json.loads(error.body)}
print(json.dumps(answer))
