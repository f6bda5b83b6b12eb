# usage: awk -f checksrc.awk files...   House rules that a compiler does not know. Silent when all is well.
function say(what) { print FILENAME ":" FNR ": " what; bad = 1 }
function in_tests() { return FILENAME ~ /^tests\// }
BEGIN {
	split("strcpy strcat strncpy strncat sprintf vsprintf gets scanf sscanf strtok atoi atol atof strtol strtoul strtoll strtoull alloca system popen tmpnam mktemp rand srand gmtime localtime setjmp wordexp usleep sleep", b, " ")
	for (i in b) banned[b[i]] = 1
}
FNR == 1 { if (FILENAME != "" && last != "") finish(); last = FILENAME; infn = 0; lines = 0; incomment = 0 }
{ lines = FNR }
FNR == 601 && !in_tests() { say("the file is longer than 600 lines: split it by resource or by step") }
length($0) > 0 {
	width = 0; n = split($0, ch, ""); for (i = 1; i <= n; i++) width += ch[i] == "\t" ? 8 - width % 8 : 1
	if (width > 110) say("the line is wider than 100 columns (" width ")")
}
{
	code = $0
	if (incomment) { if (code ~ /\*\//) { sub(/^.*\*\//, "", code); incomment = 0 } else code = "" }
	gsub(/\/\*[^*]*\*\//, "", code)
	if (code ~ /\/\*/) { sub(/\/\*.*/, "", code); incomment = 1 }
	gsub(/"([^"\\]|\\.)*"/, "\"\"", code)
	sub(/\/\/.*/, "", code)
	rest = code
	while (match(rest, /[A-Za-z_][A-Za-z_0-9]*[ ]*\(/)) {
		name = substr(rest, RSTART, RLENGTH); sub(/[ ]*\($/, "", name)
		if (name in banned) say("banned call " name)
		if (name ~ /^(malloc|calloc|realloc|reallocarray|free|strdup|strndup|asprintf)$/ && FILENAME !~ /^lib\/base\/mem\.c$/ && FILENAME !~ /^worker\/init\// && FILENAME !~ /^lib\/stats\/.*\.cc$/ && !in_tests()) say(name " outside lib/base/mem")
		if (name == "exit" && FILENAME !~ /(^|\/)main\.c$/ && !in_tests()) say("exit outside main.c")
		rest = substr(rest, RSTART + RLENGTH)
	}
	if ($0 ~ /(TODO|FIXME|(^|[^X])XXX([^X]|$)|HACK)/) say("unfinished work belongs in an issue, not in the source")
}
# Function length: from the opening brace in column 1 to the closing brace in column 1.
/^\{/ { infn = FNR }
/^\}/ {
	if (infn && !in_tests()) {
		len = FNR - infn - 1
		limit = marked ? 100 : 60
		if (len > limit) say("the function is " len " lines long (limit " limit ")")
	}
	infn = 0; marked = 0
}
/LONG_SWITCH/ { marked = 1 }
function finish() { }
END { exit bad }
