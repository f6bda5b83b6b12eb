# Turns schema/queries/*.sql into an enum (mode=h) or a table (mode=c).
# A statement stands under "-- name: noun_verb :kind" and "-- params: name type, name type"; kinds are
# :one (exactly one row or none), :many (rows) and :exec (no rows wanted). Types are PostgreSQL's names.
function flush_q() {
	if (name == "") return
	n++; names[n] = name; kinds[n] = kind; params[n] = npar; oids[n] = oid; text[n] = body; where[n] = at
	name = ""; body = ""; npar = 0; oid = ""
}
BEGIN {
	o["bool"] = 16; o["bytea"] = 17; o["int8"] = o["bigint"] = 20; o["int2"] = 21; o["int4"] = o["int"] = 23; o["text"] = 25
	o["json"] = 114; o["float8"] = 701; o["timestamptz"] = 1184; o["jsonb"] = 3802; o["date"] = 1082
	o["bool[]"] = 1000; o["bytea[]"] = 1001; o["int4[]"] = o["int[]"] = 1007; o["int2[]"] = 1005; o["text[]"] = 1009
	o["int8[]"] = o["bigint[]"] = 1016; o["float8[]"] = 1022; o["timestamptz[]"] = 1185; o["jsonb[]"] = 3807
}
/^-- name:/ {
	flush_q(); name = $3; kind = $4; at = FILENAME ":" FNR
	if (kind !~ /^:(one|many|exec)$/) { print at ": kind must be :one, :many or :exec" > "/dev/stderr"; bad = 1 }
	if (name in seen) { print at ": duplicate query " name > "/dev/stderr"; bad = 1 }
	seen[name] = 1; next
}
/^-- params:/ {
	s = $0; sub(/^-- params: */, "", s); npar = split(s, x, /, */)
	for (i = 1; i <= npar; i++) {
		split(x[i], y, " ")
		if (!(y[2] in o)) { print FILENAME ":" FNR ": unknown type " y[2] > "/dev/stderr"; bad = 1 }
		oid = oid (i > 1 ? ", " : "") o[y[2]]
	}
	next
}
/^--/ || /^[ \t]*$/ { next }
{ gsub(/\\/, "\\\\"); gsub(/"/, "\\\""); body = body "\n\t  \"" $0 "\\n\"" }
END {
	flush_q(); if (bad) exit 1
	if (mode == "h") {
		print "/* generated from schema/queries; do not edit */\n#ifndef GEN_SQL_H\n#define GEN_SQL_H\n#include <stdint.h>\nenum sql_id {"
		for (i = 1; i <= n; i++) printf "\tSQL_%s, /* %s */\n", toupper(names[i]), where[i]
		print "\tSQL_COUNT\n};\nstruct sql {\n\tconst char *name, *text;\n\tint nparams;\n\tchar kind; /* 'o'ne, 'm'any, 'e'xec */\n\tconst uint32_t *types;\n};\nextern const struct sql sql_table[SQL_COUNT + 1];\n#endif"
	} else {
		print "/* generated from schema/queries; do not edit */\n#include \"gen/sql.h\"\n#include <stddef.h>"
		for (i = 1; i <= n; i++) if (params[i]) printf "static const uint32_t types_%d[] = { %s };\n", i, oids[i]
		print "const struct sql sql_table[SQL_COUNT + 1] = {"
		for (i = 1; i <= n; i++) printf "\t[SQL_%s] = { \"%s\",%s,\n\t  %d, '%s', %s },\n", toupper(names[i]), names[i], text[i], params[i], substr(kinds[i], 2, 1), params[i] ? "types_" i : "NULL"
		print "\t[SQL_COUNT] = { .name = NULL },\n};"
	}
}
