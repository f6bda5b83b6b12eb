#include "lib/base/str.h"
#include "lib/vcs/confine.h"
#include "lib/vcs/cred.h"
#include "lib/vcs/tree.h"
#include "lib/vcs/url.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const unsigned all = VCS_ALLOW_HTTP | VCS_ALLOW_LOCAL;

static void accepts(
	const char *url, enum vcs_scheme scheme, const char *user, const char *host, unsigned port)
{
	struct vcs_url u;
	struct err e;

	if (vcs_url_parse(str_c(url), all, &u, &e) < 0)
		fail_msg("%s: %s", url, e.msg);
	assert_int_equal(u.scheme, scheme);
	assert_string_equal(u.user, user);
	assert_string_equal(u.host, host);
	assert_int_equal(u.port, port);
}

void test_vcs__good_addresses(void **state)
{
	struct vcs_url u;
	struct err e;

	(void)state;
	accepts("https://example.org/team/repo.git", VCS_HTTPS, "", "example.org", 0);
	accepts("https://example.org:8443/r", VCS_HTTPS, "", "example.org", 8443);
	accepts("https://[2001:db8::1]:443/r", VCS_HTTPS, "", "2001:db8::1", 443);
	accepts("https://[2001:db8::12]/r", VCS_HTTPS, "", "2001:db8::12", 0);
	accepts("http://127.0.0.1:80/r/", VCS_HTTP, "", "127.0.0.1", 80);
	accepts("ssh://git@example.org/~me/r", VCS_SSH, "git", "example.org", 0);
	accepts("ssh://example.org:2222/r", VCS_SSH, "", "example.org", 2222);
	accepts("git@example.org:team/repo.git", VCS_SSH, "git", "example.org", 0);
	assert_int_equal(vcs_url_parse(STR("file:///srv/git/a.git"), all, &u, &e), 0);
	assert_int_equal(u.scheme, VCS_LOCAL);
	assert_string_equal(u.text, "/srv/git/a.git");
}

void test_vcs__bad_addresses(void **state)
{
	static const char *const bad[] = { "", "-x", "--upload-pack=x", "ssh://-oProxyCommand=x/r",
		"ssh://git@-oProxyCommand=x/r", "ssh://-x@h/r", "-x@h:r", "git@h:-x",
		"ext::sh -c id", "git://h/r", "ftp://h/r", "file://host/r", "file://", "//h/r",
		"h/r", "r", "https:///r", "https://h", "https://h/", "https://u@h/r",
		"https://u:p@h/r", "https://good\\@evil/r", "https://good/../evil",
		"https://h/a/./b", "https://h//b", "https://h:0/r", "https://h:65536/r",
		"https://h:/r", "https://h./r", "https://.h/r", "https://[::1/r", "https://h/r?x",
		"https://h/r#x", "https://h/r\n", "https://h/a b", "https://h/\x7f", "https://h/-x",
		"https://h$(id)/r", "/a/../b", "/", "HTTPS://h/r", "host:path",
		"https://127.0.0.1%2f@h/r", "https://h:22:33/r" };
	char longest[VCS_URL_MAX + 2];
	struct vcs_url u;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		if (vcs_url_parse(str_c(bad[i]), all, &u, &e) == 0)
			fail_msg("accepted: %s", bad[i]);
		assert_int_equal(e.code, ERR_INVALID);
	}
	assert_int_equal(vcs_url_parse(STR("/srv/r"), VCS_ALLOW_HTTP, &u, &e), -1);
	assert_int_equal(vcs_url_parse(STR("http://h/r"), VCS_ALLOW_LOCAL, &u, &e), -1);
	memset(longest, 'a', sizeof longest);
	memcpy(longest, "https://h/", 10);
	assert_int_equal(vcs_url_parse((struct str){ longest, VCS_URL_MAX }, 0, &u, &e), 0);
	assert_int_equal(vcs_url_parse((struct str){ longest, VCS_URL_MAX + 1 }, 0, &u, &e), -1);
	assert_int_equal(vcs_url_parse((struct str){ "https://h/\0r", 12 }, 0, &u, &e), -1);
}

void test_vcs__revisions(void **state)
{
	static const char *const good[] = { "main", "HEAD", "v1.0", "feature/x-1",
		"refs/heads/main", "0123456789abcdef0123456789abcdef01234567", "$(id)", "a;b",
		"\xc3\xa9t\xc3\xa9" };
	static const char *const bad[] = { "", "-x", "--upload-pack=x", "a b", "a..b", "a~1", "a^",
		"a:b", "a?", "a*", "a[", "a\\b", "a/", "/a", "a//b", ".a", "a/.b", "a.lock",
		"a.lock/b", "a.", "@", "a@{1}", "a\n", "a\x7f", "\xff" };
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		if (vcs_ref_check(str_c(good[i]), &e) < 0)
			fail_msg("refused: %s", good[i]);
	}
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		if (vcs_ref_check(str_c(bad[i]), &e) == 0)
			fail_msg("accepted: %s", bad[i]);
	}
	assert_true(vcs_is_commit(str_c(good[5])));
	assert_false(vcs_is_commit(STR("0123456789ABCDEF0123456789abcdef01234567")));
	assert_false(vcs_is_commit(STR("0123456")));
}

void test_vcs__paths(void **state)
{
	static const char *const bad[] = { "", "/a", "a/", "..", "a/../b", "./a", "a//b", "a\nb",
		"\x1b", "\xff" };
	struct err e;

	(void)state;
	assert_int_equal(vcs_path_check(STR("dir/tidemill.yaml"), &e), 0);
	assert_int_equal(vcs_path_check(STR("-x"), &e), 0);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		if (vcs_path_check(str_c(bad[i]), &e) == 0)
			fail_msg("accepted: %s", bad[i]);
	}
}

void test_vcs__names_in_trees(void **state)
{
	static const char *const bad[] = { "", ".", "..", "a/b", ".git", ".GIT", ".Git", ".git.",
		".git ", ".git. .", ".git:x", ".git......", "git~1", "GIT~1", ".g\xe2\x80\x8cit",
		"\xef\xbb\xbf.git", ".git\xe2\x81\xaf", "a\nb", "\x1b[0m", "\x7f" };
	static const char *const good[] = { ".gitignore", ".gi", "git", "git~2", ".git-x", ".git.x",
		".github", "a b", "-x", "\xc3\xa9", "\xe2\x80\x8c", "...", ".gitmodules" };

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		if (tree_name_ok(str_c(bad[i])))
			fail_msg("accepted: %s", bad[i]);
	}
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		if (!tree_name_ok(str_c(good[i])))
			fail_msg("refused: %s", good[i]);
	}
	assert_false(tree_name_ok((struct str){ ".git\0", 5 }));
}

void test_vcs__links_in_trees(void **state)
{
	(void)state;
	assert_true(tree_link_ok(STR("a"), 0));
	assert_true(tree_link_ok(STR("a/b/./c/"), 0));
	assert_true(tree_link_ok(STR("../../a"), 2));
	assert_true(tree_link_ok(STR("./../a"), 1));
	assert_true(tree_link_ok(STR(".."), 1));
	assert_false(tree_link_ok(STR(".."), 0));
	assert_false(tree_link_ok(STR("../../a"), 1));
	assert_false(tree_link_ok(STR("a/../b"), 5)); /* a may itself be a link */
	assert_false(tree_link_ok(STR("/a"), 5));
	assert_false(tree_link_ok(STR(""), 5));
	assert_false(tree_link_ok(STR("a\nb"), 5));
}

void test_vcs__known_hosts(void **state)
{
	static const char hosts[] = "# comment\n\n"
				    "|1|hash|hash ssh-ed25519 AAEC/w==\n"
				    "example.org,10.0.0.1 ssh-ed25519 AAEC/w== me@here\r\n"
				    "[example.org]:2222 ssh-rsa /////w==\n"
				    "short";
	struct str key = STR("\0\1\2\xff"), other = STR("\xff\xff\xff\xff");
	struct str known = STR(hosts);
	struct vcs_url u;
	struct err e;

	(void)state;
	assert_int_equal(vcs_url_parse(STR("git@Example.org:r"), 0, &u, &e), 0);
	assert_true(cred_known_host(known, &u, key));
	assert_false(cred_known_host(known, &u, other));
	assert_false(cred_known_host(known, &u, STR("\0\1\2")));
	assert_false(cred_known_host(known, &u, STR("\0\1\2\xff\0")));
	assert_false(cred_known_host(STR_NONE, &u, key));
	assert_int_equal(vcs_url_parse(STR("ssh://git@example.org:2222/r"), 0, &u, &e), 0);
	assert_true(cred_known_host(known, &u, other));
	assert_false(cred_known_host(known, &u, key));
	assert_int_equal(vcs_url_parse(STR("git@example.com:r"), 0, &u, &e), 0);
	assert_false(cred_known_host(known, &u, key));
}

/* What a confined process finds: 0 when all is as it should be, else the number of the check. */
static int confined(const char *inside, const char *outside)
{
	const char *const writable[] = { inside };
	char path[64], name[] = "/bin/true", *const argv[] = { name, NULL };
	bool done = false;
	struct err e;

	if (confine_files(writable, 1, &done, &e) < 0)
		return 1;
	if (!done)
		return 0; /* a kernel without Landlock has nothing to show */
	(void)str_print(path, sizeof path, "%s/new", inside);
	if (open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) < 0)
		return 2;
	(void)str_print(path, sizeof path, "%s/new", outside);
	if (open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) >= 0 || errno != EACCES)
		return 3;
	if (mkdir(path, 0700) == 0 || symlink("x", path) == 0 || rmdir(outside) == 0)
		return 4;
	if (open(outside, O_RDONLY | O_CLOEXEC) < 0)
		return 5; /* reading is not confined */
	execv(argv[0], argv);
	return errno == EACCES ? 0 : 6;
}

void test_vcs__confined_to_its_folders(void **state)
{
	char inside[] = "/tmp/tidemill-in-XXXXXX", outside[] = "/tmp/tidemill-out-XXXXXX", path[64];
	int status = -1;
	pid_t pid;

	(void)state;
	assert_non_null(mkdtemp(inside));
	assert_non_null(mkdtemp(outside));
	pid = fork();
	if (pid == 0) {
		confine_process(1 << 20, 60);
		_exit(confined(inside, outside));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	(void)str_print(path, sizeof path, "%s/new", inside);
	(void)unlink(path);
	assert_int_equal(rmdir(inside), 0);
	assert_int_equal(rmdir(outside), 0);
}
