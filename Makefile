# Tidemill. `make help` lists what there is to make; docs/ARCHITECTURE.md says how it is built up.
# Variables: V=debug|release|tsan|cov|fuzz, CC, CFLAGS, LDFLAGS, DESTDIR, PREFIX, GROUP (of tests), ONLY (of benchmarks).

CC      ?= gcc
V       ?= debug
PREFIX  ?= /usr/local
B       := build/$(V)
GEN     := build/gen
VERSION := 0.1.0
MAKEFLAGS += --no-builtin-rules

PKGS := jansson yaml-0.1 libpq libevent_core libevent_extra libevent_openssl libevent_pthreads libcurl libgit2 openssl libzstd zlib
PKG_CFLAGS := $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
PKG_LIBS   := $(shell pkg-config --libs $(PKGS) 2>/dev/null) -lcctz -lre2 -lstdc++ -lm -ldl -pthread

IS_CLANG := $(findstring clang,$(shell $(CC) --version 2>/dev/null | head -n 1))
ifeq ($(origin CXX),default)
CXX := $(if $(IS_CLANG),clang++,g++)
endif

WARN := -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wformat=2 -Wshadow -Wcast-qual -Wnull-dereference \
	-Wundef -Wwrite-strings -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wpointer-arith -Wvla \
	-Walloca -Wdate-time -Wframe-larger-than=16384 -Wunused-result -Wdouble-promotion -Wno-missing-field-initializers
WARN_gcc := -Wno-variadic-macros -Wformat-overflow=2 -Wformat-truncation=2 -Wformat-signedness -Wstringop-overflow=4 -Walloc-zero \
	-Wcast-align=strict -Wduplicated-cond -Wduplicated-branches -Wlogical-op -Wimplicit-fallthrough=5 -Wjump-misses-init \
	-Wtrampolines -Wbidi-chars=any
WARN_clang := -Wno-gnu-zero-variadic-macro-arguments -Wthread-safety -Wcomma -Wimplicit-fallthrough -Wcast-align -Wno-format-pedantic
WARN += $(if $(IS_CLANG),$(WARN_clang),$(WARN_gcc))

HARDEN := -fstack-protector-strong -fno-strict-aliasing -fno-delete-null-pointer-checks -fcf-protection=full
HARDEN_gcc := -fstack-clash-protection
HARDEN += $(if $(IS_CLANG),,$(HARDEN_gcc))
CFLAGS_debug   := -O1 -g -fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined
CFLAGS_release := -O2 -g -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=$(if $(IS_CLANG),2,3) -fno-strict-overflow $(if $(IS_CLANG),,-ftrivial-auto-var-init=zero -fzero-call-used-regs=used-gpr)
CFLAGS_tsan    := -O1 -g -fsanitize=thread -fno-omit-frame-pointer
CFLAGS_cov     := -O0 -g --coverage
CFLAGS_fuzz    := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
LDFLAGS_debug   := -fsanitize=address,undefined
LDFLAGS_release :=
LDFLAGS_tsan    := -fsanitize=thread
LDFLAGS_cov     := --coverage
LDFLAGS_fuzz    := -fsanitize=fuzzer,address,undefined
LINK := -pie -Wl,-z,relro,-z,now,-z,noexecstack,-z,separate-code,--as-needed,--gc-sections

CPPFLAGS_ALL := -D_GNU_SOURCE -DTIDEMILL_VERSION='"$(VERSION)"' -I. -Ibuild
CFLAGS_ALL = -std=gnu11 $(CPPFLAGS_ALL) $(WARN) $(HARDEN) -fPIE -ffunction-sections -fdata-sections \
	-ffile-prefix-map=$(CURDIR)=. $(CFLAGS_$(V)) $(patsubst -I%,-isystem %,$(PKG_CFLAGS)) $(CFLAGS)
WARN_CXX := -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wnull-dereference -Wdouble-promotion
CXXFLAGS_ALL = -std=c++17 $(CPPFLAGS_ALL) $(WARN_CXX) $(HARDEN) -fPIE -ffunction-sections -fdata-sections \
	-ffile-prefix-map=$(CURDIR)=. $(CFLAGS_$(V)) $(CFLAGS)

# Sources. A file named main.c is a program's entry and is linked into that program only.
LIB_SRC    := $(filter-out %/main.c,$(wildcard lib/*/*.c api/*.c)) $(GEN)/sql.c
LIB_CXX    := $(wildcard lib/*/*.cc)
SERVER_SRC := $(filter-out server/main.c,$(wildcard server/*.c server/*/*.c)) $(GEN)/assets.c
WORKER_SRC := $(filter-out worker/main.c worker/init/%,$(wildcard worker/*.c worker/*/*.c))
CLI_SRC    := $(filter-out cli/main.c,$(wildcard cli/*.c))
INIT_SRC   := $(wildcard worker/init/*.c)
UNIT_SRC   := $(wildcard tests/unit/*.c) $(GEN)/unit_main.c
HEADERS    := $(wildcard lib/*/*.h api/*.h server/*.h server/*/*.h worker/*.h worker/*/*.h cli/*.h)
SOURCES    := $(wildcard lib/*/*.c lib/*/*.cc api/*.c server/*.c server/*/*.c worker/*.c worker/*/*.c cli/*.c)
TOOLS      := $(patsubst tests/tools/%.c,%,$(wildcard tests/tools/*.c))
TEST_SOURCES := $(wildcard tests/*/*.c tests/*/*.h tests/*/*/*.c tests/*/*/*.h)

obj = $(patsubst %.cc,$(B)/%.o,$(patsubst %.c,$(B)/%.o,$(1)))

# keep_names,LIST,FILES: what is made of a list of files is made again, too, when one of them has gone or is called otherwise.
keep_names = $(shell mkdir -p $(GEN); echo '$(2)' | cmp -s - $(GEN)/$(1).names || echo '$(2)' > $(GEN)/$(1).names)
$(call keep_names,sources,$(SOURCES))

PROGRAMS := $(if $(wildcard server/main.c),tidemill-server) $(if $(wildcard worker/main.c),tidemill-worker) \
	$(if $(wildcard cli/main.c),tidemill) $(if $(wildcard worker/init/main.c),tidemill-init) \
	$(if $(wildcard lib/vcs/main.c),tidemill-git)

.DEFAULT_GOAL := all
.SECONDARY:
.DELETE_ON_ERROR:

all: programs extras ## Build all programs of the chosen variant
programs: $(PROGRAMS:%=$(B)/%)
extras: $(TOOLS:%=$(B)/%) $(B)/db_exercise $(B)/checksql $(B)/sim_place $(if $(wildcard /usr/include/http_parser.h),$(B)/h1_diff)

$(B)/%.o: %.c | $(GEN)/sql.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(CFLAGS_FILE) -MMD -MP -c -o $@ $<

$(B)/%.o: %.cc
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS_ALL) $(CFLAGS_FILE) -MMD -MP -c -o $@ $<

$(B)/%.o: %.S
	@mkdir -p $(@D)
	$(CC) -I. -Ibuild -c -o $@ $<

# The kernels of the statistics are vectorised by the compiler; -ffast-math stays forbidden.
$(B)/lib/stats/%.o: CFLAGS_FILE := -O3 -ffp-contract=off

$(B)/libtidemill.a: $(call obj,$(LIB_SRC) $(LIB_CXX)) $(GEN)/sources.names
	@rm -f $@
	ar rcs $@ $(filter %.o,$^)

LINK_CMD = $(CC) $(LDFLAGS_$(V)) $(LINK) -o $@ $(1) $(B)/libtidemill.a $(PKG_LIBS) $(LDFLAGS)

$(PROGRAMS:%=$(B)/%) $(B)/unit: $(GEN)/sources.names
$(B)/tidemill-server: $(call obj,server/main.c $(SERVER_SRC)) $(B)/gen/assets_data.o $(B)/libtidemill.a
	$(call LINK_CMD,$(filter %.o,$^))
$(B)/tidemill-worker: $(call obj,worker/main.c $(WORKER_SRC)) $(B)/libtidemill.a
	$(call LINK_CMD,$(filter %.o,$^))
$(B)/tidemill: $(call obj,cli/main.c $(CLI_SRC)) $(B)/libtidemill.a
	$(call LINK_CMD,$(filter %.o,$^))
$(B)/tidemill-git: $(call obj,lib/vcs/main.c) $(B)/libtidemill.a
	$(call LINK_CMD,$(filter %.o,$^))
$(B)/runtime_tool: $(call obj,$(wildcard worker/runtime/*.c))
$(TOOLS:%=$(B)/%): $(B)/%: $(B)/tests/tools/%.o $(B)/libtidemill.a
	$(call LINK_CMD,$(filter %.o,$^))
$(B)/drift_case: $(call obj,$(wildcard tests/tools/drift_case/*.c server/core/*.c))
$(B)/cron_tool: $(call obj,server/core/cron.c)
$(B)/bench_drift: $(call obj,tests/bench/drift.c) $(B)/libtidemill.a
	$(call LINK_CMD,$(filter %.o,$^))
$(B)/bench_floor_pg: $(call obj,tests/bench/floor_pg.c) $(B)/libtidemill.a
	$(call LINK_CMD,$(filter %.o,$^))
$(B)/bench_http: $(call obj,tests/bench/http.c) $(B)/libtidemill.a
	$(call LINK_CMD,$(filter %.o,$^))
$(B)/bench_load: $(call obj,tests/bench/load.c tests/bench/wire.c)
	$(CC) $(LDFLAGS_$(V)) $(LINK) -o $@ $^ $(LDFLAGS)
$(B)/bench_track: $(call obj,tests/bench/track.c tests/bench/wire.c)
	$(CC) $(LDFLAGS_$(V)) $(LINK) -o $@ $^ $(LDFLAGS)
$(B)/bench_place: $(call obj,tests/bench/place.c $(wildcard server/core/place*.c) server/core/gpus.c) $(B)/libtidemill.a
	$(call LINK_CMD,$(filter %.o,$^))
$(B)/sim_place: $(call obj,$(wildcard tests/sim/*.c server/core/place*.c) server/core/gpus.c server/core/names.c \
		$(wildcard server/sched/snapshot*.c) server/sched/replay.c) $(B)/libtidemill.a
	$(call LINK_CMD,$(filter %.o,$^))
$(B)/h1_diff: $(call obj,tests/fuzz/h1_diff.c) $(B)/libtidemill.a
	$(call LINK_CMD,$(filter %.o,$^)) -lhttp_parser

# Against a real database, with statements of its own.
DB_EXERCISE := $(wildcard tests/db_exercise/*.c)
DB_EXERCISE_SQLGEN := -v prefix=X -v table=x_table -v header=gen/db_exercise_sql.h -f tools/sqlgen.awk
$(GEN)/db_exercise_sql.h: tests/db_exercise/statements.sql tools/sqlgen.awk
	@mkdir -p $(@D)
	awk -v mode=h $(DB_EXERCISE_SQLGEN) $< > $@
$(GEN)/db_exercise_sql.c: tests/db_exercise/statements.sql $(GEN)/db_exercise_sql.h
	awk -v mode=c $(DB_EXERCISE_SQLGEN) $< > $@
$(call obj,$(DB_EXERCISE)): $(GEN)/db_exercise_sql.h
$(B)/db_exercise: $(call obj,$(DB_EXERCISE) $(GEN)/db_exercise_sql.c) $(B)/libtidemill.a
	$(call LINK_CMD,$(filter %.o,$^))

# Static, libc only, never sanitised: it is PID 1 of other people's containers.
$(B)/tidemill-init: $(INIT_SRC) $(wildcard worker/init/*.h) api/frame.h
	@mkdir -p $(@D)
	$(CC) -std=c11 $(CPPFLAGS_ALL) $(WARN) $(HARDEN) -Os -static -ffile-prefix-map=$(CURDIR)=. $(CFLAGS) -o $@ $(INIT_SRC)

# Libraries that play hardware, and the system, for tests.
FAKES := $(addprefix $(B)/libfake_,nvml.so nvml_old.so clock.so io.so)
$(B)/libfake_nvml_old.so: CFLAGS_FILE := -DFAKE_NVML_OLD
$(B)/libfake_nvml_old.so: tests/fakes/fake_nvml.c
$(filter-out %_old.so,$(FAKES)): $(B)/libfake_%.so: tests/fakes/fake_%.c
$(FAKES):
	@mkdir -p $(@D)
	$(CC) -std=c11 $(CPPFLAGS_ALL) $(WARN) -Wno-missing-prototypes $(CFLAGS_FILE) -O1 -fPIC -shared $(CFLAGS) -o $@ $<

$(B)/tests/%.o: CFLAGS_FILE := -Wno-missing-prototypes
$(B)/build/gen/%.o: CFLAGS_FILE := -Wno-missing-prototypes

# ---- generated sources -------------------------------------------------------------------------
QUERIES := $(wildcard schema/queries/*.sql)
$(call keep_names,queries,$(QUERIES))
$(GEN)/sql.h: $(QUERIES) $(GEN)/queries.names tools/sqlgen.awk
	@mkdir -p $(@D)
	awk -v mode=h -f tools/sqlgen.awk $(QUERIES) > $@
$(GEN)/sql.c: $(GEN)/sql.h
	awk -v mode=c -f tools/sqlgen.awk $(QUERIES) > $@
$(B)/build/gen/%.o: build/gen/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(CFLAGS_FILE) -MMD -MP -c -o $@ $<
$(call keep_names,unit,$(wildcard tests/unit/*_test.c))
$(GEN)/unit_main.c: $(wildcard tests/unit/*_test.c) $(GEN)/unit.names tools/testgen.awk
	@mkdir -p $(@D)
	awk -f tools/testgen.awk $(wildcard tests/unit/*_test.c) > $@

# The dashboard and the migrations are compiled in. Without web/dist the server says so at /.
ASSET_FILES := $(shell find web/dist -type f 2>/dev/null | sort) $(sort $(wildcard schema/migrations/*.sql))
$(call keep_names,assets,$(ASSET_FILES))
$(GEN)/assets.c $(GEN)/assets_data.S &: $(ASSET_FILES) $(GEN)/assets.names tools/assets.sh
	@mkdir -p $(GEN)
	sh tools/assets.sh $(GEN)
$(B)/gen/assets_data.o: $(GEN)/assets_data.S
	@mkdir -p $(@D)
	$(CC) -c -o $@ $<

# ---- tests ---------------------------------------------------------------------------------------
$(B)/unit: $(call obj,$(UNIT_SRC) $(SERVER_SRC) $(WORKER_SRC) $(CLI_SRC)) $(B)/gen/assets_data.o $(B)/libtidemill.a | $(FAKES) $(B)/tidemill-init
	$(CC) $(LDFLAGS_$(V)) $(LINK) -o $@ $(filter %.o,$^) $(B)/libtidemill.a $(PKG_LIBS) -lcmocka $(LDFLAGS)

unit: $(B)/unit ## Run the unit tests (FILTER=pattern runs some)
	$(B)/unit $(FILTER)

test: ## Install what is missing and run all tests (GROUP=unit|integration|faults|distributed|e2e|peers runs one)
	bash tests/run.sh $(GROUP)
FUZZ   := $(filter-out h1_diff,$(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/*.c)))
FUZZ_S := 60
$(B)/fuzz_core: $(call obj,$(wildcard server/core/*.c))
$(B)/fuzz_%: $(B)/tests/fuzz/%.o $(B)/libtidemill.a
	$(call LINK_CMD,$(filter %.o,$^))
fuzz: ## Run each fuzz target for FUZZ_S seconds (clang and libclang-rt-14-dev)
	$(MAKE) V=fuzz CC=clang $(FUZZ:%=build/fuzz/fuzz_%)
	for t in $(FUZZ); do \
		mkdir -p build/corpus/$$t; \
		(cd build && fuzz/fuzz_$$t -max_total_time=$(FUZZ_S) corpus/$$t $$(ls -d ../tests/fuzz/corpus/$$t 2>/dev/null)) || exit 1; \
	done
soak: ## The long campaigns in full
	SOAK=1 bash tests/run.sh faults
bench: ## Run the benchmarks (ONLY=name runs one) and write build/bench.json
	bash tests/bench/run.sh $(ONLY)

# ---- house rules ---------------------------------------------------------------------------------
check: layercheck srccheck formatcheck headercheck checksql openapicheck docscheck ## House rules: layers, headers, banned calls, format, SQL, OpenAPI, settings
layercheck:
	awk -f tools/checklayers.awk tools/layers.txt $(SOURCES) $(HEADERS)
srccheck:
	awk -f tools/checksrc.awk $(SOURCES) $(HEADERS) $(TEST_SOURCES)
	sh tools/checktree.sh
formatcheck:
	clang-format --dry-run -Werror $(SOURCES) $(HEADERS) $(TEST_SOURCES)
format: ## Format all C sources
	clang-format -i $(SOURCES) $(HEADERS) $(TEST_SOURCES)
headercheck: $(HEADERS:%=$(B)/headers/%.ok)
$(B)/headers/%.ok: % | $(GEN)/sql.h
	@mkdir -p $(@D)
	@$(CC) $(CFLAGS_ALL) -Wno-unused-function -Werror -fsyntax-only -x c $< && touch $@
checksql: $(B)/checksql ## Prepare every statement against a migrated database
	V=$(V) bash tools/checksql.sh
$(B)/checksql: $(B)/tools/checksql.o $(B)/libtidemill.a
	$(call LINK_CMD,$(filter %.o,$^))
openapi: $(B)/tidemill-server ## Write api/openapi.json from the route and field tables
	$(B)/tidemill-server --openapi > api/openapi.json
openapicheck: $(if $(wildcard server/main.c),$(B)/tidemill-server)
	$(if $(wildcard server/main.c),$(B)/tidemill-server --openapi | diff -u api/openapi.json - )
docs: $(B)/tidemill-server $(B)/tidemill-worker ## Write docs/config.md and the keys of docs/files.md from the tables
	bash tools/config.sh $(B) > docs/config.md
	bash tools/files.sh $(B) docs/files.md > $(B)/files.md
	cp $(B)/files.md docs/files.md
docscheck: $(B)/tidemill-server $(B)/tidemill-worker
	bash tools/config.sh $(B) | diff -u docs/config.md -
	bash tools/files.sh $(B) docs/files.md | diff -u docs/files.md -
tidy: ## clang-tidy over all sources
	clang-tidy --quiet $(filter %.c,$(SOURCES)) -- $(CFLAGS_ALL)
clang: ## Compile everything with clang, warnings as errors
	$(MAKE) V=release B=build/clang CC=clang CFLAGS=-Werror programs

# ---- web, demo, install --------------------------------------------------------------------------
web: ## Build the dashboard into web/dist
	bash tools/web.sh
demo: ## Install what is missing, build, and run the whole loop on real data
	bash examples/demo.sh start
demo-stop: ## Stop what `make demo` left running
	bash examples/demo.sh stop

install: ## Install programs, manual, completions and units; V=release first (DESTDIR=, PREFIX=)
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/libexec/tidemill
	install -m 0755 $(B)/tidemill $(B)/tidemill-server $(B)/tidemill-worker $(DESTDIR)$(PREFIX)/bin
	install -m 0755 $(B)/tidemill-git $(B)/tidemill-init $(DESTDIR)$(PREFIX)/libexec/tidemill
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system
	install -d $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/bash-completion/completions \
		$(DESTDIR)$(PREFIX)/share/zsh/site-functions $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	$(B)/tidemill help man > $(DESTDIR)$(PREFIX)/share/man/man1/tidemill.1
	$(B)/tidemill completion bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/tidemill
	$(B)/tidemill completion zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_tidemill
	$(B)/tidemill completion fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/tidemill.fish
	for unit in server worker; do sed 's|@PREFIX@|$(PREFIX)|' systemd/tidemill-$$unit.service \
		> $(DESTDIR)$(PREFIX)/lib/systemd/system/tidemill-$$unit.service || exit 1; done

clean: ## Remove what was built
	rm -rf build web/dist
help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

-include $(shell find $(B) -name '*.d' 2>/dev/null)
.PHONY: all programs extras unit test fuzz soak bench check layercheck srccheck formatcheck format headercheck checksql \
	openapi openapicheck docs docscheck tidy clang web demo demo-stop install clean help
