# syntax=docker/dockerfile:1
FROM node:22-slim AS pages
WORKDIR /viewer
COPY viewer/package.json viewer/package-lock.json viewer/.npmrc ./
RUN npm ci
COPY viewer .
RUN npm run build

# It has the compiler of the accelerator, which the slim one lacks.
FROM python:3.13 AS build
WORKDIR /source
RUN python -m venv /opt/apiserver
COPY requirements requirements
RUN /opt/apiserver/bin/pip install --no-cache-dir --require-hashes \
    -r requirements/build.txt -r requirements/core.txt -r requirements/imports.txt -r requirements/oidc.txt \
    -r requirements/parquet.txt -r requirements/s3.txt -r requirements/traces.txt
COPY accelerator accelerator
RUN /opt/apiserver/bin/pip install --no-cache-dir --no-deps --no-build-isolation ./accelerator
COPY . .
COPY --from=pages /viewer/dist viewer/dist
RUN /opt/apiserver/bin/pip install --no-cache-dir --no-deps --no-build-isolation . \
    && /opt/apiserver/bin/pip uninstall --yes setuptools pip

FROM python:3.13-slim
RUN useradd --system --uid 10001 --no-create-home apiserver \
    && install --directory --owner apiserver --mode 700 /data
COPY --from=build /opt/apiserver /opt/apiserver
ENV PATH=/opt/apiserver/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    APISERVER_HOST=0.0.0.0 \
    APISERVER_DATA=/data
USER apiserver
VOLUME /data
EXPOSE 8008 8081
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 \
    CMD ["apiserver", "health"]
CMD ["apiserver", "serve"]
