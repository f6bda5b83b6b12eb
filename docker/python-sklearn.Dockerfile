# What the example's steps run in: Debian's Python with scikit-learn and pandas.
#   docker build --build-arg BASE=… -t tidemill/python-sklearn:1 -f docker/python-sklearn.Dockerfile docker
# Steps run as an unprivileged uid that no passwd file knows, on a read-only root: nothing here needs a home or a cache.
ARG BASE=debian:bookworm-slim
FROM ${BASE}
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
	python3 python3-numpy python3-pandas python3-sklearn \
 && apt-get clean \
 && rm -rf /var/lib/apt/lists/* /var/log/*
# Byte code is compiled by the packages; a step must not try to write any. One BLAS thread unless the step asks for more.
ENV LC_ALL=C.UTF-8 \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    OMP_NUM_THREADS=1 \
    HOME=/tmp
RUN python3 -c "import pandas, sklearn.linear_model"
USER 65534:65534
WORKDIR /tmp
CMD ["python3"]
