/*
 * The control folder of an attempt: how the worker and tidemill-init speak with each other. Both
 * may die and come back; the folder stays. libc only, so that both sides can include this.
 *
 *     lock    held with F_OFD_SETLK by the init as long as it lives: a second start of the
 *             attempt is refused, and whoever asks (F_OFD_GETLK) knows whether the init is gone
 *     prologue  notes of the worker from before the start, as frames; copied to the head of the
 *             spool, so that it may be shipped before there is a spool
 *     spool   the output of the command (api/frame.h), appended by the init, never rewritten
 *     taken   how much of the output the init has read, as two 64-bit numbers in the host's byte
 *             order, stdout and stderr: counts when the init was killed before its last word
 *     status  what became of the command: lines of key=value, replaced as a whole, synced
 *     alive   renewed by the worker; its mtime, on the elapsed clock, is where --deadman counts
 *             from
 *     go      made by the worker; --barrier holds the command back until it is there, and its
 *             environment gets what stands in it: KEY=VALUE, each ended by a NUL
 *     usage   what command and descendants use now (--usage): lines of key=value, replaced as a
 *             whole every so often, and for the last time just before the last status
 *     init.log  complaints of the init itself
 *
 * Keys of the status (numbers are decimal; a key that does not apply is left out):
 *     state        waiting | running | exited | signaled | not_started
 *     reason       deadman | stopped: why the init ended the command, when it did
 *     code, signal exit code (exited), signal's number (signaled)
 *     errno, error why it was not started, as number and in words
 *     init_pid, init_start   the init itself; start in clock ticks since boot (/proc/PID/stat)
 *     boot_id      of the kernel that it runs on
 *     pid          of the command, also its process group, as the init sees it
 *     pid_start    its start as above, while it runs
 *     started_us, ended_us   microseconds since 1970; the end is the start and what has elapsed
 *     started_elapsed   the start on the elapsed clock, microseconds; of the boot above
 *     max_rss_kb, user_us, system_us   of the command and all its descendants
 *     oom_kills, memory_peak, memory_limit, read_bytes, written_bytes, throttled_us   what the
 *                  kernel has counted for this container (cgroup.h; PID 1 only)
 *     spool_bytes  length of the spool
 *     stdout_bytes, stderr_bytes   what the command wrote, stored or not
 *     dropped_bytes, lost_bytes    not stored: beyond --max-log; because writing failed
 *
 * Keys of the usage, left out when not known; counts are from the start of container or command on:
 *     at_us        microseconds since 1970: the start of the command and what has elapsed
 *     cpu_us       processor time
 *     memory       bytes, without files that are only cached
 *     read_bytes, written_bytes      of block devices
 *     periods, throttled_periods, throttled_us   of the limit of processor time
 *     oom_kills, stalled_us          killed for memory; time in which one at least waited for it
 *     received_bytes, sent_bytes     by all network devices that the init sees, but the loopback
 *     scope        cgroup | processes: what was counted (usage.h)
 *
 * Signals to the init: TERM asks the command's process group to end (reason=stopped) and kills it
 * after --grace; QUIT kills it at once; INT, HUP, USR1 and USR2 are passed on.
 */
#ifndef WORKER_INIT_CTL_H
#define WORKER_INIT_CTL_H

#define CTL_LOCK       "lock"
#define CTL_SPOOL      "spool"
#define CTL_PROLOGUE   "prologue"
#define CTL_TAKEN      "taken"
#define CTL_STATUS     "status"
#define CTL_STATUS_TMP "status.tmp"
#define CTL_USAGE      "usage"
#define CTL_USAGE_TMP  "usage.tmp"
#define CTL_ALIVE      "alive"
#define CTL_GO         "go"
#define CTL_LOG        "init.log"
#define CTL_SECRET_ENV "env" /* in --secrets: KEY=VALUE, each ended by a NUL */

/* How the init exits, beside the command's own code and 128 + signal. */
enum { CTL_EXIT_INIT = 125, CTL_EXIT_NOT_RUN = 126, CTL_EXIT_NOT_FOUND = 127 };
enum { CTL_STATUS_MAX = 4096, CTL_SECRET_ENV_MAX = 1 << 20, CTL_PROLOGUE_MAX = 65536 };

#endif
