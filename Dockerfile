# The server and its workers as one image; compose.yaml starts them with a database. A wheel is built from this folder.
FROM python:3.12-slim AS build
WORKDIR /src
COPY requirements.lock requirements-dev.lock ./
RUN python -m venv /opt/pitboss \
    && /opt/pitboss/bin/pip install --no-cache-dir --no-deps -r requirements.lock \
    && /opt/pitboss/bin/pip install --no-cache-dir --constraint requirements-dev.lock "psycopg[binary]"
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN /opt/pitboss/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels . \
    && /opt/pitboss/bin/pip install --no-cache-dir --no-deps /wheels/*.whl \
    && /opt/pitboss/bin/pip check

FROM python:3.12-slim
RUN useradd --create-home --uid 10001 pitboss && install -d -o pitboss -g pitboss -m 700 /data
COPY --from=build /opt/pitboss /opt/pitboss
ENV PATH=/opt/pitboss/bin:$PATH PITBOSS_HOME=/data PYTHONUNBUFFERED=1
USER pitboss
WORKDIR /home/pitboss
VOLUME /data
EXPOSE 8700
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8700/health', timeout=3)"]
ENTRYPOINT ["pitboss"]
CMD ["serve", "--host", "0.0.0.0"]
