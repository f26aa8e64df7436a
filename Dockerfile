# docker build -t regard . && docker run --rm -v "$PWD/runs:/runs" regard translate /runs/mine "A sentence."
# To keep torch without CUDA (gigabytes smaller), name the index of its CPU builds: --build-arg TORCH_INDEX=URL
FROM python:3.11-slim AS build
ARG TORCH_INDEX=""
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN python -m venv /opt/regard \
 && /opt/regard/bin/pip install --no-cache-dir --constraint constraints.txt ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} .

FROM python:3.11-slim
RUN useradd --create-home --uid 1000 regard
COPY --from=build /opt/regard /opt/regard
ENV PATH=/opt/regard/bin:$PATH PYTHONUNBUFFERED=1
USER regard
WORKDIR /home/regard
ENTRYPOINT ["regard"]
CMD ["--help"]
