// RE2 behind regex.h. It reports by values and throws nothing; a container that cannot grow ends
// the process as mem_new() does.
#include "lib/regex/regex.h"

#include <re2/re2.h>

#include <algorithm>
#include <cstring>
#include <memory>

struct regex {
	RE2 re;
};

namespace
{

constexpr int64_t MEMORY_MAX = 4 << 20;

RE2::Options options_of(unsigned flags)
{
	RE2::Options o;

	o.set_literal((flags & REGEX_LITERAL) != 0);
	o.set_case_sensitive((flags & REGEX_IGNORE_CASE) == 0);
	o.set_log_errors(false);
	o.set_never_capture(true);
	o.set_max_mem(MEMORY_MAX);
	return o;
}

void say(char why[REGEX_WHY_MAX], const std::string &text)
{
	const size_t n = std::min(text.size(), size_t{ REGEX_WHY_MAX } - 1);

	std::memcpy(why, text.data(), n);
	why[n] = '\0';
}

} // namespace

struct regex *regex_new(const char *pattern, size_t n, unsigned flags, char why[REGEX_WHY_MAX])
{
	if (n > REGEX_PATTERN_MAX) {
		say(why, "is longer than " + std::to_string(REGEX_PATTERN_MAX) + " bytes");
		return nullptr;
	}
	auto r = std::unique_ptr<regex>(
		new regex{ { re2::StringPiece(pattern, n), options_of(flags) } });
	if (r->re.ok())
		return r.release();
	say(why, "is no regular expression: " + r->re.error());
	return nullptr;
}

void regex_free(struct regex *r)
{
	delete r;
}

bool regex_matches(const struct regex *r, const char *text, size_t n)
{
	return RE2::PartialMatch(re2::StringPiece(text, n), r->re);
}
