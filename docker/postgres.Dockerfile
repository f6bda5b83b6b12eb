# Debian's PostgreSQL 15 for docker-compose.yml: no TCP, a unix socket that the server's container shares.
#   docker build -t tidemill/postgres -f docker/postgres.Dockerfile docker
ARG BASE=debian:bookworm-slim
FROM ${BASE}
# The package would make a cluster of its own at installation.
RUN mkdir -p /etc/postgresql-common \
 && echo "create_main_cluster = false" > /etc/postgresql-common/createcluster.conf \
 && apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends postgresql-15 \
 && apt-get clean && rm -rf /var/lib/apt/lists/* /var/log/postgresql \
 && groupadd --system --gid 10001 tidemill \
 && useradd --system --uid 10001 --gid 10001 --no-create-home --shell /usr/sbin/nologin tidemill \
 && install -d -o postgres -g postgres -m 0700 /var/lib/postgresql/data \
 && install -d -o postgres -g postgres -m 0755 /run/postgresql
COPY postgres-entrypoint.sh /usr/local/bin/postgres-entrypoint
ENV PATH=/usr/lib/postgresql/15/bin:/usr/local/bin:/usr/bin:/bin LC_ALL=C.UTF-8
USER postgres
VOLUME ["/var/lib/postgresql/data", "/run/postgresql"]
# Fast shutdown
STOPSIGNAL SIGINT
ENTRYPOINT ["postgres-entrypoint"]
