# syntax=docker/dockerfile:1
#
# docker build -t mindbridge .
# docker run --init --read-only -v ./config:/config:ro -v mindbridge-journal:/journal mindbridge
#
# /config/config.yaml is the configuration. It must say `journal: /journal`, the one place that is written to: the
# default, ./journal, would be a folder beside the configuration.

FROM python:3.11-slim AS build
WORKDIR /src
COPY constraints.txt ./
RUN pip install --no-cache-dir --constraint constraints.txt pip
COPY pyproject.toml README.md LICENSE ./
COPY mindbridge ./mindbridge
RUN pip wheel --no-cache-dir --constraint constraints.txt --build-constraint constraints.txt --wheel-dir /wheels .

FROM python:3.11-slim
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-index --no-deps /wheels/*.whl
# A number, so that a volume's owner can be told beforehand. A new volume takes owner and mode from the folder here.
RUN groupadd --gid 10001 mindbridge \
 && useradd --uid 10001 --gid mindbridge --no-create-home --home-dir /journal --shell /usr/sbin/nologin mindbridge \
 && install --directory --owner=mindbridge --group=mindbridge --mode=0700 /journal
USER 10001:10001
WORKDIR /config
VOLUME /journal
STOPSIGNAL SIGTERM
ENTRYPOINT ["mindbridge"]
CMD ["run", "-c", "/config/config.yaml"]
