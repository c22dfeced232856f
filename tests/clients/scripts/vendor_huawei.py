"""Huawei Cloud's own client: `vendor_huawei.py QUESTION…` prints metrics and log, or the error, of each.

A question is `[URL, TOKEN, PROJECT, JOB, TASK]`. The client signs each request with keys that nobody here can check, so
the token goes along in a header.
"""

import json
import sys

from huaweicloudsdkcore.auth.credentials import BasicCredentials
from huaweicloudsdkcore.exceptions.exceptions import ServiceResponseException
from huaweicloudsdkmodelarts.v1 import (
    ModelArtsClient,
    ShowTrainingJobLogsPreviewRequest,
    ShowTrainingJobMetricsRequest,
)


def answer(url, token, project, job, task):
    credentials = BasicCredentials("unused", "unused", project)
    client = ModelArtsClient.new_builder().with_endpoint(url).with_credentials(credentials).build()
    metrics = client.show_training_job_metrics_invoker(ShowTrainingJobMetricsRequest(job, task))
    log = client.show_training_job_logs_preview_invoker(ShowTrainingJobLogsPreviewRequest(job, task))
    try:
        return {
            "metrics": metrics.add_header("X-Auth-Token", token).invoke().to_dict()["metrics"],
            "log": log.add_header("X-Auth-Token", token).invoke().to_dict(),
        }
    except ServiceResponseException as error:
        return {"status": error.status_code, "code": error.error_code, "message": error.error_msg}


answers = [answer(*json.loads(question)) for question in sys.argv[1:]]
print(json.dumps({"answers": answers}, default=float))  # numbers with a fraction are Decimal there
