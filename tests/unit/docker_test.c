/* worker/runtime/docker*: names of images, the stream of a pull, credentials of registries. */
#include "lib/base/fs.h"
#include "tests/unit/unit.h"
#include "worker/runtime/docker_auth.h"
#include "worker/runtime/docker_images.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

void test_docker__image_names(void **state)
{
	static const char *const good[] = { "a", "a:1", "host:5000/a/b:tag", "a@sha256:0123",
		"ghcr.io/x/y_z-1.2" };
	static const char *const bad[] = { "", "/a", "-a", "../a", "a/../b", "a b", "a?b", "a#b",
		"a//b", "a%2f", "a\n" };

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		assert_true(docker_image_valid(good[i]));
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_false(docker_image_valid(bad[i]));
	assert_false(docker_image_valid(NULL));
}

void test_docker__image_names_are_split_for_pulling(void **state)
{
	static const char *const cases[][2] = {
		{ "a", "/images/create?fromImage=a&tag=latest" },
		{ "a/b:1", "/images/create?fromImage=a/b&tag=1" },
		{ "h:5000/a", "/images/create?fromImage=h:5000/a&tag=latest" },
		{ "h:5000/a:2", "/images/create?fromImage=h:5000/a&tag=2" },
		{ "a:1@sha256:ab", "/images/create?fromImage=a:1&tag=sha256:ab" },
	};
	char path[DOCKER_PATH_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_string_equal(docker_pull_path(path, cases[i][0]), cases[i][1]);
}

static void push(struct docker_pull *p, const char *text)
{
	struct err e;

	for (; *text != '\0'; text++) /* in the smallest pieces */
		assert_int_equal(docker_pull_push(p, (struct str){ text, 1 }, &e), 0);
}

static void expect_progress(struct docker_pull *p, const char *line, bool progress)
{
	p->moved = -1;
	push(p, line);
	push(p, "\r\n");
	assert_int_equal(p->moved != -1, progress);
}

void test_docker__a_pull_is_read_in_pieces(void **state)
{
	struct docker_pull p;
	char far[128];

	(void)state;
	docker_pull_init(&p);
	expect_progress(&p, "{\"status\":\"Pulling from x\",\"id\":\"1\"}", true);
	expect_progress(&p, "{\"status\":\"Pulling fs layer\",\"id\":\"aaaaaaaaaaaa\"}", true);
	expect_progress(&p, "{\"status\":\"Pulling fs layer\",\"id\":\"bbbbbbbbbbbb\"}", true);
	expect_progress(&p, "{\"status\":\"Waiting\",\"id\":\"bbbbbbbbbbbb\"}", false);
	expect_progress(&p, "not json", false);
	expect_progress(&p,
		"{\"status\":\"Downloading\",\"id\":\"aaaaaaaaaaaa\",\"progressDetail\":{"
		"\"current\":1024,\"total\":4096}}",
		true);
	docker_pull_say(&p, far, sizeof far);
	assert_string_equal(far, "0 of 2 layers, 1 KiB of 4 KiB");
	/* The same again is none, nor is a countdown. */
	expect_progress(&p,
		"{\"status\":\"Downloading\",\"id\":\"aaaaaaaaaaaa\",\"progressDetail\":{"
		"\"current\":1024,\"total\":4096}}",
		false);
	expect_progress(
		&p, "{\"status\":\"Retrying in 5 seconds\",\"id\":\"aaaaaaaaaaaa\"}", false);
	expect_progress(&p, "{\"status\":\"Download complete\",\"id\":\"aaaaaaaaaaaa\"}", true);
	docker_pull_say(&p, far, sizeof far);
	assert_string_equal(far, "1 of 2 layers, 4 KiB of 4 KiB");
	assert_string_equal(p.error, "");
	push(&p, "{\"errorDetail\":{\"message\":\"no space\"},\"error\":\"other\"}\r\n");
	assert_string_equal(p.error, "no space");
	docker_pull_done(&p);
}

void test_docker__what_is_wrong_with_an_image(void **state)
{
	/* As Docker 20.10 to 28, Podman 4 and their registries say it. */
	static const struct {
		const char *words;
		enum runtime_image_fault fault;
	} cases[] = {
		{ "manifest for x:1 not found: manifest unknown: manifest unknown",
			RUNTIME_IMAGE_NOT_FOUND },
		{ "pull access denied for x, repository does not exist or may require 'docker "
		  "login': denied: requested access to the resource is denied",
			RUNTIME_IMAGE_DENIED },
		{ "Head \"http://h/v2/x/manifests/1\": no basic auth credentials",
			RUNTIME_IMAGE_DENIED },
		{ "Get \"http://127.0.0.1:1/v2/\": dial tcp 127.0.0.1:1: connect: connection "
		  "refused",
			RUNTIME_IMAGE_UNREACHABLE },
		{ "filesystem layer verification failed for digest sha256:ab",
			RUNTIME_IMAGE_DAMAGED },
		{ "write /data/x: no space left on device", RUNTIME_IMAGE_NO_SPACE },
		{ "something new", RUNTIME_IMAGE_OTHER },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_int_equal(docker_image_fault(cases[i].words), cases[i].fault);
}

void test_docker__a_reference_that_may_stand_for_an_image(void **state)
{
#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	static const struct {
		const char *image, *ref;
		bool fits;
	} cases[] = {
		{ "h:5000/a/x:1", "h:5000/a/x@sha256:" HEX64, true },
		{ "busybox:1.36", "docker.io/library/busybox@sha256:" HEX64, true },
		{ "x", "x@sha512:" HEX64 HEX64, true },
		{ "x:1", "sha256:" HEX64, true },
		{ "x@sha256:" HEX64, "x@sha256:" HEX64, true },
		{ "x@sha256:" HEX64, "x@sha512:" HEX64 HEX64, false },
		{ "x@sha256:" HEX64, "sha256:" HEX64, false },
		{ "h:5000/a/x:1", "h:5001/a/x@sha256:" HEX64, false },
		{ "h:5000/a/x:1", "a/x@sha256:" HEX64, false },
		{ "a/x:1", "evil/x@sha256:" HEX64, false },
		{ "x:1", "x:2", false },
		{ "x:1", "x@sha256:00", false },
		{ "x:1", "x@sha256:" HEX64 "0", false },
		{ "x:1", "sha256:" HEX64 "@x", false },
		{ "x:1", "", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		if (docker_ref_fits(cases[i].image, cases[i].ref) != cases[i].fits)
			fail_msg("%s for %s", cases[i].ref, cases[i].image);
}

void test_docker__the_reference_of_an_image(void **state)
{
	static const char text[] = "{\"Id\":\"sha256:aa\",\"RepoDigests\":[\"other/"
				   "x@sha256:00\",\"h:5000/a/x@sha256:bb\","
				   "\"docker.io/library/busybox@sha256:cc\"]}";
	static const char *const cases[][2] = {
		{ "h:5000/a/x:1", "h:5000/a/x@sha256:bb" },
		{ "h:5000/a/x", "h:5000/a/x@sha256:bb" },
		{ "busybox:1.36", "docker.io/library/busybox@sha256:cc" },
		{ "mine:1", "sha256:aa" },
		{ "a/x:1", "sha256:aa" },
		{ "h/x@sha256:dd", "h/x@sha256:dd" },
	};
	char ref[RUNTIME_IMAGE_MAX];
	struct jsn_doc *doc;
	struct err e;

	(void)state;
	assert_int_equal(jsn_parse(str_c(text), &doc, &e), 0);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		docker_image_ref(jsn_root(doc), cases[i][0], ref);
		assert_string_equal(ref, cases[i][1]);
	}
	jsn_doc_free(doc);
	/* Podman's ids are bare. */
	assert_int_equal(jsn_parse(STR("{\"Id\":\"aa\"}"), &doc, &e), 0);
	docker_image_ref(jsn_root(doc), "x", ref);
	assert_string_equal(ref, "sha256:aa");
	jsn_doc_free(doc);
}

#define HEADER "X-Registry-Auth: "

void test_docker__credentials_are_those_of_the_registry(void **state)
{
	static const char text[] =
		"{\"auths\":{\"h:5000\":{\"auth\":\"YW5uOnA6cQ==\"},"
		"\"https://index.docker.io/v1/\":{\"username\":\"bob\",\"password\":\"x\"},"
		"\"https://ghcr.io\":{\"identitytoken\":\"t\"},\"bad.example\":{\"auth\":\"%%\"}}}";
	/* base64 of {"username":"ann","password":"p:q","serveraddress":"h:5000"}, and so on. */
	static const char *const cases[][2] = {
		{ "h:5000/a/b:1", HEADER
			"eyJ1c2VybmFtZSI6ImFubiIsInBhc3N3b3JkIjoicDpxIiwic2VydmVyYWRkcmVzcyI6"
			"Img6NTAwMCJ9" },
		{ "busybox", HEADER
			"eyJ1c2VybmFtZSI6ImJvYiIsInBhc3N3b3JkIjoieCIsInNlcnZlcmFkZHJlc3MiOiJk"
			"b2NrZXIuaW8ifQ==" },
		{ "a/b@sha256:00", HEADER
			"eyJ1c2VybmFtZSI6ImJvYiIsInBhc3N3b3JkIjoieCIsInNlcnZlcmFkZHJlc3MiOiJk"
			"b2NrZXIuaW8ifQ==" },
		{ "ghcr.io/a/b:1",
			HEADER "eyJpZGVudGl0eXRva2VuIjoidCIsInNlcnZlcmFkZHJlc3MiOiJnaGNyLmlvIn0=" },
		{ "h:5001/a", "" },
		{ "localhost/a", "" },
	};
	char path[] = "/tmp/tidemill-auth-XXXXXX", out[DOCKER_AUTH_MAX];
	int fd = mkstemp(path);
	struct err e;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fs_write_all(fd, str_c(text), path, &e), 0);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		assert_int_equal(docker_auth_header(path, cases[i][0], out, &e), 0);
		assert_string_equal(out, cases[i][1]);
	}
	assert_int_equal(docker_auth_header(path, "bad.example/x", out, &e), -1);
	assert_int_equal(e.code, ERR_INVALID);
	assert_non_null(strstr(e.msg, "bad.example"));
	assert_null(strstr(e.msg, "%%"));
	assert_int_equal(fchmod(fd, 0640), 0);
	assert_int_equal(docker_auth_check(path, &e), -1);
	(void)close(fd);
	(void)unlink(path);
}
