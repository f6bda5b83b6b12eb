# The control plane with the dashboard.
#   docker build -t tidemill/server -f docker/server.Dockerfile .
ARG BASE=debian:bookworm-slim

# server.Dockerfile and worker.Dockerfile begin with the same stage, so that it is built once.
FROM ${BASE} AS build
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
	ca-certificates gcc g++ libc6-dev make pkg-config \
	libcctz-dev libcurl4-openssl-dev libevent-dev libgit2-dev libjansson-dev libpq-dev libre2-dev libssl-dev libyaml-dev libzstd-dev \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
# The dashboard is compiled in. Where web/dist was built before (make web), it is taken as it is.
RUN if [ -f web/package.json ] && [ ! -f web/dist/index.html ]; then \
	apt-get update \
	&& DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends nodejs npm \
	&& make web && rm -rf web/node_modules; \
    fi
RUN make V=release -j"$(nproc)" programs && make V=release install DESTDIR=/out PREFIX=/usr/local

FROM ${BASE}
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
	ca-certificates libcctz2 libcurl4 libevent-2.1-7 libevent-core-2.1-7 libevent-extra-2.1-7 libevent-openssl-2.1-7 \
	libevent-pthreads-2.1-7 libgit2-1.5 libjansson4 libpq5 libre2-9 libssl3 libyaml-0-2 libzstd1 tzdata \
 && apt-get clean && rm -rf /var/lib/apt/lists/* /var/log/* \
 && groupadd --system --gid 10001 tidemill \
 && useradd --system --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/tidemill --shell /usr/sbin/nologin tidemill \
 && install -d -o tidemill -g tidemill -m 0750 /var/lib/tidemill \
 && install -d -o tidemill -g tidemill -m 0755 /run/tidemill
COPY --from=build /out/usr/local/bin/tidemill-server /out/usr/local/bin/tidemill /usr/local/bin/
COPY --from=build /out/usr/local/libexec/tidemill/ /usr/local/libexec/tidemill/
# A library that is missing above is seen here.
RUN tidemill-server --version && tidemill --version
COPY docker/server-entrypoint.sh /usr/local/libexec/tidemill/entrypoint
USER 10001:10001
ENV TIDEMILL_DATA_DIR=/var/lib/tidemill \
    TIDEMILL_LISTEN=0.0.0.0:8080
VOLUME /var/lib/tidemill
EXPOSE 8080
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/libexec/tidemill/entrypoint"]
