#!/bin/bash
# Makes a minimal Debian root file system and imports it into Docker, so that images can be built without a registry.
#
#   docker/mkbase.sh TAG           e.g. docker/mkbase.sh tidemill/base:bookworm
#
# The packages come from the mirror that this machine's apt is configured with (one-line and deb822 sources), checked
# against Debian's archive keyring. Needs root (debootstrap), debootstrap, and a Docker daemon (DOCKER_HOST is heeded).
#
#   MKBASE_CACHE=DIR    keep the root file system there as a tarball and use it again (default: none is kept)
#   MKBASE_MAX_AGE=7    days after which a kept tarball is made anew
#   MKBASE_MIRROR=URL   another mirror
#   MKBASE_SUITE=bookworm
set -euo pipefail
umask 022

SUITE=${MKBASE_SUITE:-bookworm}
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

die() {
	echo "mkbase.sh: $*" >&2
	exit 1
}

# Prints "URI SUITE" for every binary entry of this machine's apt sources that carries SUITE, SUITE-updates or
# SUITE-security in its component main.
apt_sources() {
	local files=()
	shopt -s nullglob
	files=(/etc/apt/sources.list /etc/apt/sources.list.d/*.list)
	[ ${#files[@]} = 0 ] || cat /dev/null "${files[@]}" 2>/dev/null | sed 's/#.*//; s/\[[^]]*\]//' |
		awk '$1 == "deb" { for (i = 4; i <= NF; i++) if ($i == "main") print $2, $3 }'
	files=(/etc/apt/sources.list.d/*.sources)
	# RS="" splits stanzas; comments go first, since one may stand inside a stanza.
	[ ${#files[@]} = 0 ] || for f in "${files[@]}"; do
		sed '/^#/d' "$f"
		echo
	done | awk -v RS= -F '\n' '
		{
			split("", v)
			for (i = 1; i <= NF; i++) {
				if ($i ~ /^[ \t]/) { v[k] = v[k] " " $i; continue }
				k = tolower(substr($i, 1, index($i, ":") - 1))
				v[k] = substr($i, index($i, ":") + 1)
			}
			if (v["types"] !~ /(^|[ \t])deb([ \t]|$)/ || v["components"] !~ /(^|[ \t])main([ \t]|$)/) next
			if (tolower(v["enabled"]) ~ /no/) next
			n = split(v["uris"], uris, " "); m = split(v["suites"], suites, " ")
			for (i = 1; i <= n; i++) for (j = 1; j <= m; j++) print uris[i], suites[j]
		}'
}

debian_sources() {
	apt_sources | awk -v s="$SUITE" '($2 == s || $2 == s "-updates" || $2 == s "-security") && !seen[$0]++'
}

# make_rootfs TARBALL
make_rootfs() {
	local root=$TMP/rootfs mirror sources
	sources=$(debian_sources)
	mirror=${MKBASE_MIRROR:-$(awk -v s="$SUITE" '$2 == s { print $1; exit }' <<< "$sources")}
	[ -n "$mirror" ] || die "apt has no source for Debian $SUITE on this machine: set MKBASE_MIRROR"
	[ -r "$KEYRING" ] || die "$KEYRING is missing (apt-get install debian-archive-keyring)"
	echo "mkbase.sh: debootstrap $SUITE from $mirror" >&2
	debootstrap --variant=minbase --keyring="$KEYRING" "$SUITE" "$root" "$mirror" > "$TMP/log" 2>&1 || {
		tail -n 20 "$TMP/log" "$root/debootstrap/debootstrap.log" >&2 2>/dev/null || true
		die "debootstrap failed"
	}
	if [ -n "${MKBASE_MIRROR:-}" ]; then
		echo "deb $mirror $SUITE main"
	else
		sed 's/^/deb /; s/$/ main/' <<< "$sources"
	fi > "$root/etc/apt/sources.list"
	echo 'APT::Install-Recommends "false";' > "$root/etc/apt/apt.conf.d/90tidemill"
	rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/cache/apt/*.bin "$root"/var/lib/apt/lists/* \
		"$root"/var/log/* "$root"/usr/share/man/* "$root"/etc/machine-id
	find "$root/usr/share/doc" -type f ! -name copyright -delete
	: > "$root/etc/machine-id"
	tar -C "$root" --one-file-system --numeric-owner --sort=name -I 'gzip -1' -cf "$1.new" .
	mv "$1.new" "$1"
	rm -rf --one-file-system "$root"
}

[ $# = 1 ] && [ -n "$1" ] || die "usage: docker/mkbase.sh TAG"
TAG=$1
command -v docker > /dev/null || die "docker is missing (apt-get install docker.io)"
docker version --format '{{.Server.Version}}' > /dev/null || die "no Docker daemon answers at ${DOCKER_HOST:-its default address}"

TMP=$(mktemp -d "${TMPDIR:-/tmp}/tidemill-mkbase.XXXXXX")
trap 'rm -rf --one-file-system "$TMP"' EXIT
trap 'exit 130' INT TERM

if [ -n "${MKBASE_CACHE:-}" ]; then
	mkdir -p "$MKBASE_CACHE"
	exec 9> "$MKBASE_CACHE/lock"
	flock 9
	BALL=$MKBASE_CACHE/debian-$SUITE-$(dpkg --print-architecture).tar.gz
else
	BALL=$TMP/rootfs.tar.gz
fi
if [ -z "$(find "$BALL" -mtime "-${MKBASE_MAX_AGE:-7}" 2>/dev/null)" ]; then
	[ "$(id -u)" = 0 ] || die "debootstrap needs root"
	command -v debootstrap > /dev/null || die "debootstrap is missing (apt-get install debootstrap)"
	make_rootfs "$BALL"
fi

SUM=$(sha256sum < "$BALL" | cut -d ' ' -f 1)
HAVE=$(docker image inspect --format '{{index .Config.Labels "tidemill.rootfs"}}' "$TAG" 2>/dev/null || true)
if [ "$HAVE" != "$SUM" ]; then
	docker import --change 'CMD ["bash"]' --change 'ENV LC_ALL=C.UTF-8' --change "LABEL tidemill.rootfs=$SUM" \
		"$BALL" "$TAG" > /dev/null
fi
echo "mkbase.sh: $TAG is $(docker image inspect --format '{{.Id}}' "$TAG")" >&2
