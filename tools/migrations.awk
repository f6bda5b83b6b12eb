# What a migration may not do to a table that can be large, because it would keep everybody from it as long as it takes to read
# the table: schema/README.md says what to do instead. Files up to `landed` were there before this rule.
BEGIN {
	if (landed == "") landed = 30
	n = split("run run_dataset step attempt step_output event log log_chunk tracking_run param tag metric metric_latest artifact " \
		"observation observation_batch drift_metric decision monitor_window blob blob_project dataset_file idempotency", names, " ")
	for (i = 1; i <= n; i++) large[names[i]] = 1
}
function complain(what) {
	printf "%s:%d: %s\n", at, line, what
	bad = 1
}
function judge(s,   w, t) {
	gsub(/[ \t]+/, " ", s)
	sub(/^ /, "", s)
	if (match(s, /^CREATE TABLE (IF NOT EXISTS )?[a-z_]+/)) {
		w = substr(s, RSTART, RLENGTH)
		sub(/.* /, "", w)
		made[w] = 1
	}
	if (s ~ /^CREATE (UNIQUE )?INDEX /) {
		t = s
		sub(/^.* ON (ONLY )?/, "", t)
		sub(/[^a-z_].*/, "", t)
		if (t in large && !(t in made) && s !~ /^CREATE (UNIQUE )?INDEX CONCURRENTLY / && s !~ / ON ONLY /)
			complain("an index on " t ", which can be large: CREATE INDEX CONCURRENTLY, in a file of its own")
	}
	if (match(s, /^ALTER TABLE (ONLY )?[a-z_]+/)) {
		t = substr(s, RSTART, RLENGTH)
		sub(/.* /, "", t)
		if (!(t in large) || t in made) return
		if (s ~ / (SET DATA )?TYPE /) complain("another type of a column of " t " writes the whole table anew")
		if (s ~ / SET NOT NULL/) complain("SET NOT NULL reads all of " t ": add a CHECK as NOT VALID, and validate it in a file of its own")
		if (s ~ / ADD (CONSTRAINT [a-z_]+ )?(CHECK|FOREIGN KEY)/ && s !~ / NOT VALID/)
			complain("a constraint reads all of " t ": NOT VALID, and validate it in a file of its own")
		if (s ~ / ADD (CONSTRAINT [a-z_]+ )?(UNIQUE|PRIMARY KEY) ?\(/)
			complain("a constraint builds an index on " t ": CREATE UNIQUE INDEX CONCURRENTLY first, and ADD … USING INDEX")
	}
}
FNR == 1 {
	file = FILENAME
	sub(/.*\//, "", file)
	checked = file + 0 > landed
	at = FILENAME
	text = ""
	for (t in made) delete made[t]
}
!checked { next }
{
	rest = $0
	sub(/--.*/, "", rest)
	if (text == "") line = FNR
	text = text " " rest
	if (rest ~ /;[ \t]*$/) {
		judge(text)
		text = ""
	} else if (text ~ /^[ \t]*$/) {
		text = ""
	}
}
END { exit bad }
