/* tidemill: the command line. The only place that exits. */
#include "cli/cli.h"
#include "lib/base/log.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static struct cli cli;

/* What goes on without us is said, and the terminal shows again what is typed, by what a signal
 * handler may call. */
static void on_interrupt(int signo)
{
	const char *note = cli.note;

	(void)signo;
	if (cli.hidden)
		(void)tcsetattr(STDIN_FILENO, TCSANOW, &cli.shown);
	if (note != NULL) {
		ssize_t ignored = write(STDERR_FILENO, note, strlen(note));
		(void)ignored;
	}
	_exit(EXIT_INTERRUPTED);
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = on_interrupt };

	(void)sigaction(SIGINT, &sa, NULL);
	/* What a service would write down, such as a turn of the loop that a pager held up. */
	log_set_level(LOG_ERROR);
	return cli_main(&cli, argc, (const char *const *)argv);
}
