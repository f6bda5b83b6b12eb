#include "worker/killed.h"

#include "lib/base/num.h"

#include <signal.h>
#include <string.h>

static void say_memory(const struct runtime_status *s, char text[KILLED_TEXT_MAX])
{
	char limit[NUM_SIZE_MAX], peak[NUM_SIZE_MAX];

	if (s->memory_limit > 0)
		(void)str_print(text, KILLED_TEXT_MAX,
			"the kernel killed it for want of memory: the limit is %s, its peak was %s",
			num_format_size(limit, (uint64_t)s->memory_limit),
			num_format_size(peak, (uint64_t)s->memory_peak));
	else if (s->memory_peak > 0)
		(void)str_print(text, KILLED_TEXT_MAX,
			"the kernel killed it for want of memory of the host: it has no limit of "
			"its "
			"own, its peak was %s",
			num_format_size(peak, (uint64_t)s->memory_peak));
	else
		text[0] = '\0';
}

static void say_client(const struct runtime_status *s, char text[KILLED_TEXT_MAX])
{
	if (s->killer_signo != 0)
		(void)str_print(text, KILLED_TEXT_MAX,
			"somebody asked the container daemon to end it (signal %d, as docker kill "
			"and docker stop do), not Tidemill",
			s->killer_signo);
	else if (s->end == RUNTIME_END_LOST)
		(void)str_print(text, KILLED_TEXT_MAX, "%s", s->message);
	else
		(void)str_print(text, KILLED_TEXT_MAX,
			"something other than Tidemill asked the command to end");
}

bool killed_by(const struct runtime_status *s, enum reason *ret, char text[KILLED_TEXT_MAX])
{
	switch (s->killer) {
	case RUNTIME_KILLER_KERNEL:
		*ret = REASON_OOM_KILLED;
		say_memory(s, text);
		return true;
	case RUNTIME_KILLER_DAEMON:
		*ret = REASON_DAEMON_RESTARTED;
		(void)str_print(text, KILLED_TEXT_MAX,
			"the container daemon ended or restarted, and took the container along: "
			"its "
			"live-restore is off");
		return true;
	case RUNTIME_KILLER_CLIENT:
		*ret = REASON_KILLED_OUTSIDE;
		say_client(s, text);
		return true;
	case RUNTIME_KILLER_HOST:
		*ret = REASON_KILLED_OUTSIDE;
		(void)str_print(text, KILLED_TEXT_MAX,
			"a process of the host ended the container; neither Tidemill nor anybody "
			"who "
			"asked the container daemon");
		return true;
	case RUNTIME_KILLER_NONE:
	case RUNTIME_KILLER_US:
	case RUNTIME_KILLER_COUNT: break;
	}
	if (!s->outside)
		return false;
	*ret = REASON_KILLED_OUTSIDE;
	say_client(s, text);
	return true;
}

void killed_words(const struct runtime_status *s, char text[KILLED_TEXT_MAX])
{
	static const char not_us[] = "not by Tidemill, and not by the kernel for want of memory";

	if (s->signo == SIGKILL)
		(void)str_print(text, KILLED_TEXT_MAX,
			"the command was ended by signal %d (%s), by itself or by another process, "
			"%s",
			s->signo, strsignal(s->signo), not_us);
	else if (s->signo != 0)
		(void)str_print(text, KILLED_TEXT_MAX, "the command was ended by signal %d (%s)",
			s->signo, strsignal(s->signo));
	else if (s->code == 128 + SIGKILL)
		(void)str_print(text, KILLED_TEXT_MAX,
			"the command ended with exit code %d: a process that it had started was "
			"ended by signal %d, %s",
			s->code, SIGKILL, not_us);
	else
		(void)str_print(
			text, KILLED_TEXT_MAX, "the command ended with exit code %d", s->code);
}
