// RE2 behind regex.h. It reports by values and throws nothing; a container that cannot grow ends
// the process as mem_new() does.
#include "lib/regex/regex.h"

#include <re2/re2.h>
#include <re2/set.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

struct regex {
	RE2 re;
};

struct regex_set {
	RE2::Set all;
	std::vector<std::unique_ptr<RE2>> each; // for places, and when the set runs out of memory
	std::vector<int> found;
};

namespace
{

constexpr int64_t MEMORY_MAX = 4 << 20;
constexpr int64_t SMALL_MEMORY_MAX = 1 << 20;
constexpr int SMALL_PROGRAM_MAX = 3000; // instructions; REGEX_SET_MAX of them fit into MEMORY_MAX

RE2::Options options_of(unsigned flags)
{
	RE2::Options o;

	o.set_literal((flags & REGEX_LITERAL) != 0);
	o.set_case_sensitive((flags & REGEX_IGNORE_CASE) == 0);
	o.set_log_errors(false);
	o.set_never_capture(true);
	o.set_max_mem((flags & REGEX_SMALL) != 0 ? SMALL_MEMORY_MAX : MEMORY_MAX);
	return o;
}

void say(char why[REGEX_WHY_MAX], const std::string &text)
{
	const size_t n = std::min(text.size(), size_t{ REGEX_WHY_MAX } - 1);

	std::memcpy(why, text.data(), n);
	why[n] = '\0';
}

bool readable(const RE2 &re, unsigned flags, char why[REGEX_WHY_MAX])
{
	const bool large =
		re.ok() ? (flags & REGEX_SMALL) != 0 && re.ProgramSize() > SMALL_PROGRAM_MAX
			: re.error_code() == RE2::ErrorPatternTooLarge;

	if (large)
		say(why, "is too large: it repeats too much");
	else if (!re.ok())
		say(why, "is no regular expression: " + re.error());
	return re.ok() && !large;
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
	if (!readable(r->re, flags, why))
		return nullptr;
	return r.release();
}

void regex_free(struct regex *r)
{
	delete r;
}

bool regex_matches(const struct regex *r, const char *text, size_t n)
{
	return RE2::PartialMatch(re2::StringPiece(text, n), r->re);
}

struct regex_set *regex_set_new(
	const char *const *patterns, size_t n, size_t *ret_bad, char why[REGEX_WHY_MAX])
{
	auto s = std::unique_ptr<regex_set>(
		new regex_set{ RE2::Set(options_of(0), RE2::UNANCHORED), {}, {} });

	for (size_t i = 0; i < n && i < REGEX_SET_MAX; i++) {
		const re2::StringPiece pattern(patterns[i]);
		s->each.push_back(std::make_unique<RE2>(pattern, options_of(REGEX_SMALL)));
		*ret_bad = i;
		if (!readable(*s->each[i], REGEX_SMALL, why) || s->all.Add(pattern, nullptr) < 0)
			return nullptr;
	}
	if (n <= REGEX_SET_MAX && s->all.Compile())
		return s.release();
	*ret_bad = n;
	say(why, "are too large together");
	return nullptr;
}

void regex_set_free(struct regex_set *s)
{
	delete s;
}

uint64_t regex_set_matches(struct regex_set *s, const char *text, size_t n)
{
	const re2::StringPiece piece(text, n);
	RE2::Set::ErrorInfo why{ RE2::Set::kNoError };
	uint64_t bits = 0;

	s->found.clear();
	if (s->all.Match(piece, &s->found, &why)) {
		for (const int i : s->found)
			bits |= uint64_t{ 1 } << i;
	} else if (why.kind == RE2::Set::kOutOfMemory) {
		for (size_t i = 0; i < s->each.size(); i++)
			if (RE2::PartialMatch(piece, *s->each[i]))
				bits |= uint64_t{ 1 } << i;
	}
	return bits;
}

size_t regex_set_find(const struct regex_set *s, size_t i, const char *text, size_t n)
{
	const re2::StringPiece piece(text, n);
	re2::StringPiece at;

	if (i >= s->each.size() || !s->each[i]->Match(piece, 0, n, RE2::UNANCHORED, &at, 1))
		return n;
	return static_cast<size_t>(at.data() - text);
}
