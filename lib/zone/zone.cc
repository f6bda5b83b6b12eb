// cctz behind zone.h. Nothing here throws across the border: names are checked before they are
// looked up, and a container that cannot grow ends the process as mem_new() does.
#include "lib/zone/zone.h"

#include <cctz/civil_time.h>
#include <cctz/time_zone.h>

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>

struct zone {
	cctz::time_zone tz;
};

namespace
{

constexpr int64_t SECOND = 1000000;
const cctz::civil_day EPOCH(1970, 1, 1);

struct registry {
	std::mutex lock;
	std::map<std::string, std::unique_ptr<zone>> zones;
};

// Zones are handed out for as long as the process lives, so this is never taken down.
registry &all()
{
	static registry *r = new registry;

	return *r;
}

// A name below the data base's folder: no path that leads out, none of its other files and trees.
bool may_be_zone(const std::string &name)
{
	static const char *const known =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/";

	return !name.empty() && name.size() <= ZONE_NAME_MAX && name.front() >= 'A' &&
	       name.front() <= 'Z' && name.find_first_not_of(known) == std::string::npos &&
	       name.find("//") == std::string::npos && name.back() != '/';
}

int64_t micros(const cctz::time_point<cctz::seconds> &t)
{
	return t.time_since_epoch().count() * SECOND;
}

} // namespace

const struct zone *zone_find(const char *name)
{
	const std::string key(name);

	if (!may_be_zone(key))
		return nullptr;
	registry &r = all();
	const std::lock_guard<std::mutex> held(r.lock);
	const auto found = r.zones.find(key);
	if (found != r.zones.end())
		return found->second.get();
	auto z = std::make_unique<zone>();
	if (!cctz::load_time_zone(key, &z->tz))
		return nullptr;
	return r.zones.emplace(key, std::move(z)).first->second.get();
}

struct zone_instants zone_instants_of(const struct zone *z, int64_t day, int second)
{
	const auto at = z->tz.lookup(cctz::civil_second(EPOCH + day) + second);

	switch (at.kind) {
	case cctz::time_zone::civil_lookup::SKIPPED:
		return { ZONE_NEVER, micros(at.trans), micros(at.trans) };
	case cctz::time_zone::civil_lookup::REPEATED:
		return { ZONE_TWICE, micros(at.pre), micros(at.post) };
	case cctz::time_zone::civil_lookup::UNIQUE: break;
	}
	return { ZONE_ONCE, micros(at.pre), micros(at.pre) };
}

struct zone_time zone_time_of(const struct zone *z, int64_t us)
{
	const int64_t s = us / SECOND - (us % SECOND < 0 ? 1 : 0);
	const auto at = z->tz.lookup(cctz::time_point<cctz::seconds>(cctz::seconds(s))).cs;

	return { cctz::civil_day(at) - EPOCH, at.hour() * 3600 + at.minute() * 60 + at.second() };
}
