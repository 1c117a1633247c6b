# Python 3.11 costs the least per request of the versions measured; see docs/decisions/002.
FROM python:3.11-slim-trixie AS build

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_NO_INPUT=1

WORKDIR /src
RUN python -m venv /opt/gateway
COPY requirements/build.lock requirements/runtime.lock requirements/
RUN /opt/gateway/bin/pip install --require-hashes --only-binary :all: \
      -r requirements/build.lock -r requirements/runtime.lock
COPY pyproject.toml README.md LICENSE ./
COPY gateway gateway
RUN /opt/gateway/bin/pip install --no-deps --no-build-isolation . \
    && /opt/gateway/bin/pip uninstall --yes setuptools pip


FROM python:3.11-slim-trixie

ENV PATH=/opt/gateway/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/data \
    XDG_DATA_HOME=/data

# Variables win over files, so that the health check asks where the gateway is, whatever a mounted file says.
ENV GATEWAY_SERVER__HOST=0.0.0.0 \
    GATEWAY_SERVER__PORT=4000

RUN useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin gateway \
    && install --directory --owner=10001 --group=10001 --mode=0700 /data
COPY --from=build /opt/gateway /opt/gateway

# The root file system may be read-only: everything that is written goes to /data.
VOLUME ["/data"]
WORKDIR /data
USER 10001
EXPOSE 4000 4001
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
  CMD ["python", "-c", "import os; from urllib.request import ProxyHandler, build_opener; build_opener(ProxyHandler({})).open('http://127.0.0.1:' + os.environ['GATEWAY_SERVER__PORT'] + '/livez', timeout=2)"]
ENTRYPOINT ["gateway"]
CMD ["serve"]
