#include "api/pipeline.h"
#include "server/core/spec_check.h"
#include "tests/unit/unit.h"

/* The example's pipeline; each test breaks one thing in it. */
struct example {
	struct str needs[1], train_argv[3], evaluate_argv[2], inputs[2], datasets[2], models[1];
	struct spec_variable env[2];
	struct spec_output model[3], predictions[1];
	struct spec_step steps[2];
	struct spec spec;
};

static void example_init(struct example *x)
{
	*x = (struct example){
		.needs = { STR("train") },
		.train_argv = { STR("python3"), STR("train.py"), STR("--from=${inputs.from}") },
		.evaluate_argv = { STR("sh"), STR("${steps.train.outputs.rows} ${run.id}") },
		.inputs = { STR("from"), STR("alpha") },
		.datasets = { STR("history"), STR("labels") },
		.models = { STR("champion") },
		.env = { { STR("OMP_NUM_THREADS"), STR("1") },
			{ STR("A"), STR("${inputs.alpha}") } },
		.model = { { .name = STR("model"),
				   .path = STR("model"),
				   .kind = SPEC_OUTPUT_MODEL },
			{ .name = STR("notes"), .path = STR("docs/notes") },
			{ .name = STR("rows"), .path = STR("rows"), .kind = SPEC_OUTPUT_VALUE } },
		.predictions = { { .name = STR("predictions"),
			.path = STR("predictions.csv"),
			.kind = SPEC_OUTPUT_PREDICTIONS } },
	};
	x->steps[0] = (struct spec_step){ .name = STR("train"),
		.argv = x->train_argv,
		.argv_n = 3,
		.env = x->env,
		.env_n = 2,
		.outputs = x->model,
		.outputs_n = 3,
		.image = STR("tidemill/python-sklearn:1"),
		.wants_image = true };
	x->steps[1] = (struct spec_step){ .name = STR("evaluate"),
		.needs = x->needs,
		.needs_n = 1,
		.argv = x->evaluate_argv,
		.argv_n = 2,
		.outputs = x->predictions,
		.outputs_n = 1 };
	x->spec = (struct spec){ .steps = x->steps,
		.steps_n = 2,
		.inputs = x->inputs,
		.inputs_n = 2,
		.datasets = x->datasets,
		.datasets_n = 2,
		.models = x->models,
		.models_n = 1,
		.model_from = STR("train.model"),
		.training_dataset = STR("history"),
		.gate_predictions = STR("evaluate.predictions") };
}

static void fails(const struct example *x, const char *field, const char *msg)
{
	struct arena *a = arena_new(1 << 20);
	struct err e = { 0 };

	assert_int_equal(spec_check(&x->spec, a, NULL, &e), -1);
	assert_int_equal(e.code, ERR_INVALID);
	assert_string_equal(e.field, field);
	assert_string_equal(e.msg, msg);
	arena_drop(a);
}

void test_spec_check__takes_the_example(void **state)
{
	struct arena *a = arena_new(1 << 20);
	struct example x;
	struct dag d;
	struct err e = { 0 };

	(void)state;
	example_init(&x);
	if (spec_check(&x.spec, a, &d, &e) < 0)
		fail_msg("%s %s", e.field, e.msg);
	assert_int_equal(d.n, 2);
	assert_int_equal((int)SPEC_OUTPUT_MODEL, (int)OUTPUT_MODEL);
	assert_int_equal((int)SPEC_OUTPUT_PREDICTIONS, (int)OUTPUT_PREDICTIONS);
	assert_int_equal((int)SPEC_OUTPUT_OBSERVATIONS, (int)OUTPUT_OBSERVATIONS);
	assert_int_equal((int)SPEC_OUTPUT_VALUE, (int)OUTPUT_VALUE);
	arena_drop(a);
}

void test_spec_check__names(void **state)
{
	struct example x;

	(void)state;
	example_init(&x);
	x.needs[0] = STR("trian");
	fails(&x, "/steps/evaluate/needs/0", "there is no step 'trian'; did you mean 'train'?");
	example_init(&x);
	x.datasets[0] = STR("a-b");
	x.datasets[1] = STR("a.b");
	fails(&x, "/datasets/a.b", "would hide 'a-b': both become A_B in variables");
	example_init(&x);
	x.models[0] = STR("Champion");
	fails(&x, "/models/Champion",
		"is no name: 1 to 63 of a-z, 0-9, '.', '_' and '-', not first a sign");
	example_init(&x);
	x.model[1].name = STR("model");
	fails(&x, "/steps/train/outputs/model", "is the name of two outputs");
}

void test_spec_check__commands_and_references(void **state)
{
	struct example x;

	(void)state;
	example_init(&x);
	x.train_argv[2] = STR("${inputs.form}");
	fails(&x, "/steps/train/run/2", "there is no 'inputs.form'; did you mean 'inputs.from'?");
	example_init(&x);
	/* Not every run has one: that of a file of its own is of no pipeline that counts. */
	x.train_argv[2] = STR("${run.number}");
	fails(&x, "/steps/train/run/2", "there is no 'run.number'");
	example_init(&x);
	x.env[1].value = STR("${window.start}");
	fails(&x, "/steps/train/env/A", "there is no 'window.start'");
	example_init(&x);
	x.steps[1].needs_n = 0; /* its output may not exist yet */
	fails(&x, "/steps/evaluate/run/1",
		"'steps.train.outputs.rows' is not there yet: 'evaluate' does not need 'train'");
	example_init(&x);
	x.evaluate_argv[1] = STR("${steps.train.outputs.model}");
	fails(&x, "/steps/evaluate/run/1",
		"the output 'model' of 'train' is not of kind value: only values can be named "
		"here, files are in TIDEMILL_INPUT_<STEP>");
	example_init(&x);
	x.evaluate_argv[1] = STR("${steps.train.outputs.rosw}");
	fails(&x, "/steps/evaluate/run/1", "there is no 'steps.train.outputs.rosw'");
	example_init(&x);
	x.train_argv[1] = STR("a\0b");
	fails(&x, "/steps/train/run/1", "must not hold NUL");
	example_init(&x);
	x.train_argv[0] = STR("");
	fails(&x, "/steps/train/run", "must have 1 to 256 words, the first not empty");
	example_init(&x);
	x.steps[1].wants_image = true;
	fails(&x, "/steps/evaluate/image", "is needed: the step may run in a container");
}

void test_spec_check__conditions(void **state)
{
	static const char *const good[] = { "true", "false", "${inputs.from}",
		"${steps.train.outputs.rows}" };
	struct spec_step steps[3];
	struct str needs[1] = { STR("evaluate") };
	struct arena *a = arena_new(1 << 20);
	struct example x;
	struct err e;

	(void)state;
	example_init(&x);
	steps[0] = x.steps[0];
	steps[1] = x.steps[1];
	/* What is needed by others is needed, too. */
	steps[2] = (struct spec_step){ .name = STR("report"),
		.needs = needs,
		.needs_n = 1,
		.argv = x.train_argv,
		.argv_n = 2 };
	x.spec.steps = steps;
	x.spec.steps_n = 3;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		steps[2].condition = str_c(good[i]);
		assert_int_equal(spec_check(&x.spec, a, NULL, &e), 0);
	}
	steps[2].condition = STR("yes");
	fails(&x, "/steps/report/if", "must be true, false or a ${…} that is one of them");
	steps[2].condition = STR("${inputs.form}");
	fails(&x, "/steps/report/if", "there is no 'inputs.form'; did you mean 'inputs.from'?");
	arena_drop(a);
}

void test_spec_check__matrices(void **state)
{
	struct str keys[1] = { STR("alpha") };
	struct arena *a = arena_new(1 << 20);
	struct example x;
	struct err e;

	(void)state;
	example_init(&x);
	x.train_argv[1] = STR("${matrix.alpha}");
	fails(&x, "/steps/train/run/1", "there is no 'matrix.alpha'");
	x.steps[0].matrix = keys;
	x.steps[0].matrix_n = 1;
	fails(&x, "/steps/evaluate/run/1",
		"'train' has a matrix without select: it is not said which combination's 'rows' is "
		"meant");
	x.evaluate_argv[1] = STR("x");
	fails(&x, "/model/from",
		"the step 'train' has a matrix without select: it is not said which combination is "
		"meant");
	x.steps[0].selects = true;
	x.evaluate_argv[1] = STR("${steps.train.outputs.rows}");
	assert_int_equal(spec_check(&x.spec, a, NULL, &e), 0);
	x.evaluate_argv[0] = STR("${matrix.alpha}");
	fails(&x, "/steps/evaluate/run/0", "there is no 'matrix.alpha'");
	arena_drop(a);
}

void test_spec_check__texts_outside_of_steps(void **state)
{
	struct spec_text texts[] = { { "/model/training_data/from", STR("${inputs.from}") },
		{ "/model/training_data/to", STR("${inputs.form}") } };
	struct example x;

	(void)state;
	example_init(&x);
	x.spec.texts = texts;
	x.spec.texts_n = 2;
	fails(&x, "/model/training_data/to",
		"there is no 'inputs.form'; did you mean 'inputs.from'?");
	texts[1].text = STR("${steps.train.outputs.rows}");
	fails(&x, "/model/training_data/to", "there is no 'steps.train.outputs.rows'");
	example_init(&x);
	x.steps[0].image = STR("a:${inputs.tga}");
	fails(&x, "/steps/train/image", "there is no 'inputs.tga'");
	x.steps[0].image = STR("A:1");
	fails(&x, "/steps/train/image",
		"is no image reference, as name:tag or host/name@sha256:…; names are lower case");
}

void test_spec_check__outputs(void **state)
{
	struct example x;

	(void)state;
	example_init(&x);
	x.model[1].path = STR("model/../../etc");
	fails(&x, "/steps/train/outputs/notes/path", "must not have empty parts, '.' or '..'");
	example_init(&x);
	x.model[1].path = STR("model/notes");
	fails(&x, "/steps/train/outputs/notes/path", "overlaps the path of output 'model'");
	example_init(&x);
	x.model[1].path = STR("model-notes");
	struct arena *a = arena_new(1 << 20);
	struct err e;
	assert_int_equal(spec_check(&x.spec, a, NULL, &e), 0);
	arena_drop(a);
	x.predictions[0].kind = SPEC_OUTPUT_OBSERVATIONS;
	fails(&x, "/steps/evaluate/outputs/predictions/monitor",
		"observations name the monitor that they feed");
	x.predictions[0].kind = SPEC_OUTPUT_FILES;
	x.predictions[0].monitor = STR("ridership");
	fails(&x, "/steps/evaluate/outputs/predictions/monitor",
		"only outputs of kind observations feed a monitor");
}

void test_spec_check__model_and_gate(void **state)
{
	struct example x;

	(void)state;
	example_init(&x);
	x.spec.model_from = STR("train.modl");
	fails(&x, "/model/from", "is no STEP.OUTPUT of this pipeline; did you mean 'train.model'?");
	example_init(&x);
	x.spec.gate_predictions = STR("train.model");
	fails(&x, "/model/gate/predictions", "must be an output of kind predictions");
	example_init(&x);
	x.spec.training_dataset = STR("histry");
	fails(&x, "/model/training_data/dataset",
		"is no key of spec.datasets; did you mean 'history'?");
	example_init(&x);
	x.steps[0].name = STR("a");
	x.needs[0] = STR("a");
	x.evaluate_argv[1] = STR("x");
	x.model[0].name = STR("b.c");
	x.steps[1].name = STR("a.b");
	x.predictions[0].name = STR("c");
	x.spec.model_from = STR("a.b.c");
	fails(&x, "/model/from", "can be read in 2 ways; rename a step or an output");
}

void test_spec_check__environment_names(void **state)
{
	static const char *const bad[] = { "", "LD_PRELOAD", "LD_X", "PATH",
		"NVIDIA_VISIBLE_DEVICES", "TIDEMILL_TOKEN", "DOCKER_HOST", "BASH_ENV", "=x", "a=b",
		"1A", "a b", "a-b", "MLFLOW_RUN_ID" };
	static const char *const good[] = { "A", "_", "LD", "PATHS", "pathX1", "MLFLOW_X",
		"PYTHONPATH", "CUDA_VISIBLE_DEVICES" };
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		if (spec_check_env_name(str_c(bad[i]), &e) == 0)
			fail_msg("'%s' was taken", bad[i]);
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		if (spec_check_env_name(str_c(good[i]), &e) < 0)
			fail_msg("%s: %s", good[i], e.msg);
}

void test_spec_check__paths(void **state)
{
	static const char *const bad[] = { "", "/", "/a", "a/", "a//b", ".", "./a", "..", "a/..",
		"a/../b", "a\n", "a\\b", "\xff" };
	static const char *const good[] = { "a", "a/b.c", "...", "a..b", ".hidden", "späße" };
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		if (spec_check_path(str_c(bad[i]), &e) == 0)
			fail_msg("'%s' was taken", bad[i]);
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		if (spec_check_path(str_c(good[i]), &e) < 0)
			fail_msg("%s: %s", good[i], e.msg);
	assert_int_equal(spec_check_path((struct str){ "a\0b", 3 }, &e), -1);
}

/* What a text names is looked up without memory of its own for each time that it is named. */
void test_spec_check__a_text_that_names_much(void **state)
{
	enum { STEPS = 400, TIMES = 2000 };
	static struct spec_step steps[STEPS];
	static char names[STEPS][8];
	struct str argv[2] = { STR("true"), STR_NONE }, needs[1] = { STR("train") };
	struct arena *a = arena_new(1 << 20);
	struct example x;
	struct buf text;
	struct err e;
	struct dag dag;

	(void)state;
	example_init(&x);
	buf_init(&text, 1 << 20);
	for (int i = 0; i < TIMES; i++)
		buf_addf(&text, "${steps.train.outputs.rows}");
	argv[1] = buf_str(&text);
	steps[0] = x.steps[0];
	for (size_t i = 1; i < STEPS; i++) {
		(void)str_print(names[i], sizeof names[i], "s%zu", i);
		steps[i] = (struct spec_step){ .name = str_c(names[i]),
			.needs = needs,
			.needs_n = 1,
			.argv = argv,
			.argv_n = i + 1 < STEPS ? 1 : 2 };
	}
	x.spec = (struct spec){
		.steps = steps, .steps_n = STEPS, .inputs = x.inputs, .inputs_n = 2
	};
	assert_int_equal(spec_check(&x.spec, a, &dag, &e), 0);
	assert_int_equal(arena_check(a, &e), 0);
	buf_done(&text);
	arena_drop(a);
}
