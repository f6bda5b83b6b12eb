# usage: awk -f checklayers.awk layers.txt files...
# Fails on an include that goes up a layer, on a foreign header outside its folder, and on an include cycle.
function dir(p) { if (!sub(/\/[^\/]*$/, "", p)) p = "."; return p }
FNR == NR {
	if ($0 ~ /^#/ || $0 == "") next
	if ($1 == "foreign") { h = $2; sub(/:$/, "", h); order[++nf] = h; for (i = 3; i <= NF; i++) owner[h, $i] = 1; next }
	l = $1; sub(/:$/, "", l); for (i = 2; i <= NF; i++) ok[l, $i] = 1; layer[l] = 1; next
}
FNR == 1 { me = dir(FILENAME); if (!(me in layer)) { print FILENAME ": no layer for " me; bad = 1 } }
/^#include "/ {
	split($0, q, "\""); d = dir(q[2]); edge[FILENAME] = edge[FILENAME] " " q[2]
	if (d != me && !((me, d) in ok)) { print FILENAME ":" FNR ": " me " may not include " q[2]; bad = 1 }
}
/^#include </ {
	h = $2; gsub(/[<>]/, "", h)
	for (i = 1; i <= nf; i++) if (index(h, order[i]) == 1) {
		if (!((order[i], me) in owner)) { print FILENAME ":" FNR ": " h " may not be included in " me; bad = 1 }
		break
	}
}
function walk(f, path,   a, n, i) {
	if (state[f] == 2) return
	if (state[f] == 1) { print "include cycle:" path " " f; bad = 1; return }
	state[f] = 1; n = split(edge[f], a, " "); for (i = 1; i <= n; i++) walk(a[i], path " " f); state[f] = 2
}
END { for (f in edge) walk(f, ""); exit bad }
