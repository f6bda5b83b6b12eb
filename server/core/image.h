/*
 * References of container images: [host[:port]/]path[:tag][@algorithm:hex], by the grammar of the
 * distribution project ("reference"), with sha256 and sha512 as digests. Pure.
 */
#ifndef SERVER_CORE_IMAGE_H
#define SERVER_CORE_IMAGE_H
#include "lib/base/err.h"
#include "lib/base/str.h"

/* ERR_INVALID with an empty pointer. */
int image_check(struct str image, struct err *e) MUST_CHECK;

#endif
