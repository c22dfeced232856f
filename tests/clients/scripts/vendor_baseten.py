"""Baseten's own client: `vendor_baseten.py QUESTION…` prints the answers to POST and GET, or the error, of each.

A question is `[URL, KEY, PROJECT, JOB]`.
"""

import json
import sys

from baseten.client import ManagementClient
from baseten.client.managementapi import (
    GetTrainingJobMetricsRequest,
    GetTrainingProjectsJobsMetricsParams,
    ResponseError,
)


def answer(url, key, project, job):
    client = ManagementClient(api_key="", base_url_override=url, headers={"Authorization": f"Api-Key {key}"})
    place = {"training_project_id": project, "training_job_id": job}
    try:
        posted = client.api.post_training_projects_jobs_metrics(
            **place, request=GetTrainingJobMetricsRequest(start_epoch_millis=None, end_epoch_millis=None)
        )
        got = client.api.get_training_projects_jobs_metrics(
            **place, params=GetTrainingProjectsJobsMetricsParams(step_seconds=60)
        )
    except ResponseError as error:
        return {"status": error.status_code, "body": json.loads(error.body)}
    return {"posted": json.loads(posted.model_dump_json()), "got": json.loads(got.model_dump_json())}


print(json.dumps({"answers": [answer(*json.loads(question)) for question in sys.argv[1:]]}))
